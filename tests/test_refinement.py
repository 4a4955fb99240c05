"""The array algorithms against plain loops, on every branch they may take."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_automaton import automata, words

from redraft.denoiser import refinement
from redraft.denoiser.automaton import Automaton
from redraft.denoiser.refinement import Searches, first_seen
from redraft.guidance import occurrence
from redraft.guidance.occurrence import occurs


@given(st.lists(st.integers(0, 6), max_size=12), st.sets(st.integers(0, 6)))
def test_first_seen_keeps_order(items: list[int], known: set[int]) -> None:
    number = np.array([0 if k in known else -1 for k in range(7)], dtype=np.int32)
    expected = list(dict.fromkeys(k for k in items if k not in known))
    assert first_seen(np.array(items, dtype=np.int64), number).tolist() == expected


@pytest.mark.parametrize("rounds", [0, 2, 8])
@pytest.mark.parametrize("shape", ["random", "chain", "wide"])
def test_distances(rounds: int, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "_ROUNDS", rounds)
    rng = np.random.default_rng(len(shape) + rounds)
    states, width = {"random": (40, 2), "chain": (50, 1), "wide": (9, 60)}[shape]
    for _ in range(10):
        delta = rng.integers(0, states, (states, width)).astype(np.int32)
        if shape == "chain":
            delta = np.minimum(np.arange(states) + 1, states - 1).astype(np.int32)[:, None]
        goal = rng.random(states) < 0.1
        found = Searches(delta).distance(goal)
        for q in range(states):
            seen, todo, expected = {q}, deque([(q, 0)]), -1
            while todo and expected < 0:
                r, step = todo.popleft()
                expected = step if goal[r] else -1
                for t in set(delta[r].tolist()) - seen:
                    seen.add(t)
                    todo.append((t, step + 1))
            assert found[q] == expected


@given(automata(most=5), automata(most=5))
def test_products_do_not_depend_on_how_pairs_are_numbered(a: Automaton, b: Automaton) -> None:
    expected = (a & b, a | b, a ^ b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "_TABLE", -10)
        patch.setattr(refinement, "_PAIRS", -10)
        found = (a & b, a | b, a ^ b)
    for one, two in zip(expected, found, strict=True):
        assert one.same(two)
        np.testing.assert_array_equal(one.delta, two.delta)


@given(automata(most=6), st.integers(0, 5))
def test_within_keeps_the_words_up_to_a_length(a: Automaton, length: int) -> None:
    cut = a.within(length)
    assert {w for w in words(cut) if len(w) <= length} == {w for w in words(a) if len(w) <= length}
    assert words(cut) <= words(a)
    assert cut.states <= a.minimise().states + 1


@given(automata(most=5), automata(most=5), st.integers(0, 60))
def test_meet_within_entries(a: Automaton, b: Automaton, entries: int) -> None:
    met = a.meet(b, entries)
    assert met is None or met.same(a & b)
    assert a.meet(b, 10**6) is not None


phrases = st.lists(
    st.text("aAbé ß", min_size=1, max_size=4).filter(str.strip).map(str.strip), min_size=1, max_size=3
)


@given(phrases, st.booleans(), st.booleans())
def test_cases_that_share_nodes_make_the_same_language(texts: list[str], whole: bool, sure: bool) -> None:
    made = occurrence._occurs(tuple(texts), whole, False, sure)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occurrence, "_cases_agree", lambda _: False)
        assert occurrence._occurs(tuple(texts), whole, False, sure).same(made)


def test_letters_whose_cases_do_not_agree_are_kept_apart() -> None:
    """The Kelvin sign counts as a k, but a k does not count as a Kelvin sign."""
    assert not occurrence._cases_agree(["\u212am"])
    assert occurrence._cases_agree(["km", "é", "straße"])
    language = occurs(("\u212am", "kg"), False)
    for text, there in (("km", True), ("\u212am", True), ("Km", False), ("KG", True), ("\u212ag", False)):
        assert language.accepts(text.encode()) == there


def test_a_long_phrase_in_any_case_is_small() -> None:
    assert occurs(("the quick brown fox jumps over the lazy dog",)).states < 100
