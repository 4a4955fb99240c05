"""Bounded choices: exactly these texts, large lists, letters of either case."""

from __future__ import annotations

import random
import time

from hypothesis import given
from hypothesis import strategies as st
from toys import Chaos, small_vocabulary

from redraft.guidance import OneOf
from redraft.guidance.one_of import _texts

LETTERS = "aAßẞsSſéÉİiıI日x"
words = st.text(LETTERS, max_size=4)


@given(st.lists(words, min_size=1, max_size=6), st.lists(words, min_size=5, max_size=5))
def test_exactly_the_choices(choices: list[str], others: list[str]) -> None:
    guide = OneOf([*choices, *choices])
    made = _texts(frozenset(guide.choices), False)
    for text in choices + others:
        assert made.accepts(text.encode()) == (text in choices) == (guide.check(text).status == "satisfied")


@given(st.lists(words, min_size=1, max_size=6), st.lists(words, min_size=5, max_size=5), st.randoms())
def test_either_case(choices: list[str], others: list[str], rng: random.Random) -> None:
    """What the language allows has a choice's casefold; every spelling letter by letter is allowed."""
    guide = OneOf(choices, ignore_case=True)
    made = _texts(frozenset(guide.choices), True)
    for text in choices + others:
        if made.accepts(text.encode()):
            assert guide.check(text).status == "satisfied"
    for choice in choices:
        forms = [
            [w for w in (c, c.upper(), c.lower()) if len(w) == 1 and w.casefold() == c.casefold()]
            for c in choice
        ]
        assert made.accepts("".join(rng.choice(ways) for ways in forms).encode())


def test_ten_thousand_choices() -> None:
    rng = random.Random(0)
    names = {"".join(rng.choices("aeinorst", k=rng.randint(4, 9))).capitalize() for _ in range(10_000)}
    began = time.process_time()
    made = _texts(frozenset(names), False)
    assert time.process_time() - began < 6
    assert all(made.accepts(name.encode()) for name in list(names)[:200])
    assert not made.accepts(b"Q")


def test_written_texts_are_choices() -> None:
    choices = ["storm", "a dark night", "é", "the lighthouse keeper"]
    results = Chaos(small_vocabulary()).write(OneOf(choices, ignore_case=True), samples=20, seed=0, steps=4)
    assert {result.text.casefold() for result in results} <= set(choices)
    assert all(result.satisfied for result in results)
