"""What an unsatisfiable request is told: the smallest conflict, the length that would do, the part that fails."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_automaton import automata
from toys import Chaos, small_vocabulary

from redraft.denoiser import HardGuide, Scene, Steering, UnsatisfiableError, joint
from redraft.denoiser.automaton import Automaton
from redraft.denoiser.conflict import TOGETHER, smallest_conflict, unsatisfiable
from redraft.guidance import Characters, Forbid, Infill, Keywords, OneOf, Pattern, Sentences, Tokens, Words


def _possible(parts: Sequence[Automaton], length: int = 4) -> bool:
    met = reduce(lambda a, b: a & b, parts, Automaton.all(3))
    return any(met.accepts(word) for n in range(length + 1) for word in itertools.product(range(3), repeat=n))


def test_without_an_end_token_a_canvas_of_no_given_length_shrinks_to_what_the_guides_fill() -> None:
    toy = Chaos(small_vocabulary(eos=False, fragments=False))
    for guide, most in ((Characters(1, 1), 1), (Characters(0, 2), 2)):
        (made,) = toy.write(guide, seed=1, steps=2)
        assert (made.length, len(made.text)) == (most, most)
    with pytest.raises(UnsatisfiableError, match=r"give a shorter length \(1\)") as error:
        toy.write(Characters(1, 1), length=3)
    assert error.value.filled == (1,)
    calls = toy.calls
    with pytest.raises(UnsatisfiableError, match="canvas of 3 tokens"):  # the other guide wants more than 1
        toy.write([Characters(1, 1), Keywords("lighthouse")], seed=1)
    assert toy.calls == calls


@given(st.lists(automata(most=4), min_size=1, max_size=5))
def test_no_smaller_set_conflicts(parts: list[Automaton]) -> None:
    if _possible(parts):
        return
    found = smallest_conflict(parts, _possible)
    assert not _possible([parts[k] for k in found])
    if len(found) > TOGETHER:  # then at least none of them can be left out
        assert all(_possible([parts[k] for k in found if k != out]) for out in found)
    else:
        smaller = itertools.combinations(range(len(parts)), len(found) - 1)
        assert all(_possible([parts[k] for k in some]) for some in smaller)


def test_lengths_and_parts_are_said_where_they_help() -> None:
    one, two = Automaton.of_word((0, 1), 3), Automaton.of_word((0, 2), 3)

    def stages(name: str) -> list[tuple[str, Automaton]]:
        return [("the start", Automaton.of_word((0, 1), 3) | two), ("the end", one)] if name == "one" else []

    error = unsatisfiable([("one", one), ("two", two)], 9, _possible, lambda _: None, stages)
    assert str(error).endswith("drop or relax one; it fails at the end of one")
    error = unsatisfiable([("one", one)], 1, lambda p: _possible(p, 1), lambda _: 2)
    assert (error.needed, error.conflict) == (2, ("one",))
    assert "cannot fit a canvas of 1 tokens: allow at least 2" in str(error)


CASES: list[tuple[list[HardGuide], int, str, int, int | None]] = [
    (
        [Infill("the old dog ___ by the storm ___."), Forbid("storm")],
        40,
        "the text ' by the storm '",
        2,
        None,
    ),
    ([Infill("a [[2-3]] b"), Words(8, 9)], 30, "the text ' b'", 2, None),
    (
        [Words(5, 8), Keywords("storm"), Forbid("storm"), Sentences(1, 2)],
        30,
        "no text satisfies both",
        2,
        None,
    ),
    ([Words(1, 2), Keywords("storm"), Keywords("dog"), Keywords("sea")], 30, "satisfies all", 4, None),
    ([Sentences(1, 2), Words(30, 40)], 20, "allow at least 31", 1, 31),
]


@pytest.mark.parametrize("entries", [2**30, 2**6])
@pytest.mark.parametrize(("guides", "length", "said", "size", "needed"), CASES)
def test_guides_that_cannot_be_had_together(
    guides: list[HardGuide],
    length: int,
    said: str,
    size: int,
    needed: int | None,
    entries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same whether the joint language is one table or two side by side."""
    monkeypatch.setattr(joint, "ENTRIES", entries)
    with pytest.raises(UnsatisfiableError) as caught:
        Steering(guides, Scene(small_vocabulary(), torch.device("cpu"), 1, length, 4))
    assert said in str(caught.value)
    assert len(caught.value.conflict) == size
    assert caught.value.needed == needed


@pytest.mark.parametrize("entries", [2**30, 2**6])
@pytest.mark.parametrize(
    ("guides", "said"),
    [
        (
            [OneOf(["the dog", "the storm"]), Words(1, 9)],
            r"OneOf.* 12 tokens, .* give a shorter length \(2 to 9\)",
        ),
        ([Tokens(3, 3)], r"a canvas of 12 tokens, .* give a shorter length \(3\)"),
        ([Tokens(0, 0)], "relax it"),  # no canvas at all is no remedy
        ([Tokens(20, 30)], "allow at least 20"),
        ([Words(2, 3), Keywords("storm"), Forbid("storm")], "no text satisfies both"),
    ],
)
def test_a_text_without_an_end_fills_its_canvas(
    guides: list[HardGuide], said: str, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint, "ENTRIES", entries)
    scene = Scene(small_vocabulary(eos=False), torch.device("cpu"), 1, 12, 4)
    with pytest.raises(UnsatisfiableError, match=said) as caught:
        Steering(guides, scene)
    lengths = [int(n) for n in re.findall(r"\d+", str(caught.value).rpartition(" length (")[2])]
    if "shorter" in said:
        for length in (min(lengths), max(lengths)):
            Steering(guides, replace(scene, length=length))
        for length in (min(lengths) - 1, max(lengths) + 1):
            with pytest.raises(UnsatisfiableError):
                Steering(guides, replace(scene, length=length))


ODD = "t-it he e"  # "it" is whole, and no word of its own, as the keyword would be written


@pytest.mark.parametrize(
    ("guides", "said"),
    [
        (
            [Pattern(ODD), Keywords("it")],
            rf"and Keywords.* contradict: no text that they write satisfies both, though '{ODD}' does",
        ),
        (
            [Pattern(ODD) & Keywords("it")],
            rf"allows no text that it writes on a canvas .*, though '{ODD}' satisfies it",
        ),
        ([Pattern(ODD), Keywords("hat")], "no text satisfies both"),
        ([Keywords("storm"), Forbid("storm")], "no text satisfies both"),  # nor beyond ASCII
        ([Keywords("storm") & ~Keywords("storm")], "allows no text on a canvas"),
    ],
)
def test_what_is_accepted_and_never_written_is_told_apart(guides: list[HardGuide], said: str) -> None:
    scene = Scene(small_vocabulary(), torch.device("cpu"), 1, 12, 4)
    with pytest.raises(UnsatisfiableError, match=said):
        Steering(guides, scene)


@given(automata(most=5))
def test_the_shortest_word_is_one(automaton: Automaton) -> None:
    word = automaton.shortest_word()
    assert (None if word is None else len(word)) == automaton.shortest()
    assert word is None or automaton.accepts(word)
