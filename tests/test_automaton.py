"""The algebra of languages against sets of words."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.denoiser import automaton as automaton_module
from redraft.denoiser.automaton import Automaton, byte_classes
from redraft.denoiser.ending import fixed, with_eos
from redraft.denoiser.errors import RedraftError, StateBudgetError
from redraft.denoiser.nfa import aho_corasick, concat, of_words, repeat, star

ALPHABET = 3
WORDS = [w for n in range(6) for w in itertools.product(range(ALPHABET), repeat=n)]


@st.composite
def automata(draw: st.DrawFn, alphabet: int = ALPHABET, most: int = 6) -> Automaton:
    states = draw(st.integers(1, most))
    width = draw(st.integers(1, alphabet))
    classes = [draw(st.integers(0, width - 1)) for _ in range(alphabet)]
    delta = [[draw(st.integers(0, states - 1)) for _ in range(width)] for _ in range(states)]
    accept = [draw(st.booleans()) for _ in range(states)]
    return Automaton(np.array(classes), np.array(delta), draw(st.integers(0, states - 1)), np.array(accept))


def words(a: Automaton) -> set[tuple[int, ...]]:
    return {w for w in WORDS if a.accepts(w)}


@given(automata(), automata())
def test_operators_are_set_operations(a: Automaton, b: Automaton) -> None:
    one, two = words(a), words(b)
    assert words(a & b) == one & two
    assert words(a | b) == one | two
    assert words(a - b) == one - two
    assert words(a ^ b) == one ^ two
    assert words(~a) == set(WORDS) - one


@given(automata(), automata(), automata())
def test_laws_hold_as_equal_arrays(a: Automaton, b: Automaton, c: Automaton) -> None:
    for left, right in (
        (~(a & b), ~a | ~b),
        (a & (b | c), (a & b) | (a & c)),
        (a - b, a & ~b),
        (a ^ b, (a | b) - (a & b)),
        (a | ~a, Automaton.all(ALPHABET)),
        (a & ~a, Automaton.none(ALPHABET)),
    ):
        assert left.same(right)
        assert left.start == right.start
        for name in ("classes", "delta", "accept"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


@given(automata(), st.randoms(use_true_random=False))
def test_minimise_is_canonical_and_least(a: Automaton, random: object) -> None:
    least = a.minimise()
    assert words(least) == words(a)
    order = np.random.default_rng(a.states).permutation(a.states)
    where = np.argsort(order)
    shuffled = Automaton(a.classes, where[a.delta[order]], int(where[a.start]), a.accept[order])
    doubled = Automaton(
        a.classes,
        np.concatenate([a.delta + a.states, a.delta]),
        a.start,
        np.concatenate([a.accept, a.accept]),
    )
    for other in (shuffled, doubled):
        assert other.minimise().states == least.states
        np.testing.assert_array_equal(other.minimise().delta, least.delta)
        assert other.key == a.key
    assert least.states == len({_residual(least, q) for q in range(least.states)})


def _residual(a: Automaton, q: int) -> tuple[bool, ...]:
    return tuple(bool(a.accept[a.run(w, q)]) for w in WORDS)


def test_minimise_long_chain_and_large_random() -> None:
    chain = Automaton.build(0, lambda n, _: min(n + 1, 3001), lambda n: n == 3000, alphabet=2)
    assert chain.states == 3002
    assert chain.shortest() == 3000
    rng = np.random.default_rng(0)
    big = Automaton(np.arange(4), rng.integers(0, 5000, (5000, 4)), 0, rng.random(5000) < 0.5)
    assert (big & big).same(big)
    assert (big ^ big).empty()


@given(automata())
def test_shortest_and_empty(a: Automaton) -> None:
    lengths = [len(w) for w in WORDS if a.accepts(w)]
    assert a.empty() == (a.shortest() is None)
    if lengths:
        assert a.shortest() == min(lengths)
    else:
        assert a.shortest() is None or a.shortest() > 5  # type: ignore[operator]


def test_keys_tell_languages_apart() -> None:
    made = [Automaton.of_word(w, 2) for n in range(5) for w in itertools.product(range(2), repeat=n)]
    assert (
        len({a.key for a in [*made, Automaton.all(2), Automaton.none(2), Automaton.all(3)]}) == len(made) + 3
    )


def test_state_budget_names_both_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    def modulo(n: int) -> Automaton:
        return Automaton.build(0, lambda q, _: (q + 1) % n, lambda q: q == 0, alphabet=1)

    monkeypatch.setattr(automaton_module, "STATE_BUDGET", 500)
    assert (modulo(19) & modulo(23)).states == 19 * 23
    with pytest.raises(StateBudgetError, match=r"29 & 31 states need more than 500") as caught:
        modulo(29) & modulo(31)
    assert caught.value.sizes == (29, 31)
    assert isinstance(caught.value, RedraftError | ValueError)
    with pytest.raises(StateBudgetError, match="more than 500 states: ask for smaller numbers"):
        Automaton.build(0, lambda q, _: q + 1, lambda q: q > 3, alphabet=1)


def test_settled_pairs_do_not_count() -> None:
    """A product with the empty language is one state, whatever the other side is."""
    counter = Automaton.build(0, lambda q, s: (q + 1 + s) % 97, lambda q: q == 3, alphabet=2)
    assert (counter & Automaton.none(2)).states == 1
    assert (counter | Automaton.all(2)).states == 1


def test_build_none_is_a_dead_end_and_classes_are_trusted() -> None:
    calls: list[int] = []

    def step(lines: int, byte: int) -> int | None:
        calls.append(byte)
        return lines + (byte == 10) if lines + (byte == 10) < 3 else None

    three = Automaton.build(0, step, lambda n: n == 2, classes=byte_classes(b"\n"))
    assert set(calls) == {0, 10}
    assert three.accepts(b"a\nb\nc")
    assert not three.accepts(b"a\nb")
    assert not three.accepts(b"a\nb\nc\n")
    assert three.delta.shape == (4, 2)


def test_byte_classes() -> None:
    classes = byte_classes(b"aeiou", b"abc")
    assert len(set(classes.tolist())) == 4
    assert classes[ord("a")] != classes[ord("e")] != classes[ord("b")] != classes[ord("z")]
    assert classes[ord("b")] == classes[ord("c")]


@pytest.mark.parametrize("combine", [lambda a, b: a & b, lambda a, b: concat(a, b)])
def test_different_alphabets_are_refused(combine: Callable[[Automaton, Automaton], Automaton]) -> None:
    with pytest.raises(ValueError, match="alphabets"):
        combine(Automaton.all(2), Automaton.all(3))


def test_malformed_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="leaves the 1 states"):
        Automaton(np.zeros(2, int), np.ones((1, 1), int), 0, np.ones(1, bool))
    with pytest.raises(ValueError, match="outside the 1 columns"):
        Automaton(np.ones(2, int), np.zeros((1, 1), int), 0, np.ones(1, bool))


@given(automata(most=4), automata(most=4))
def test_concat_and_repeat(a: Automaton, b: Automaton) -> None:
    one, two = words(a), words(b)
    both = {v + w for v in one for w in two if len(v + w) < 6}
    assert words(concat(a, b)) == both
    powers = [{()}]
    for _ in range(6):
        powers.append({v + w for v in powers[-1] for w in one if len(v + w) < 6})
    assert words(repeat(a, 1, 3)) == powers[1] | powers[2] | powers[3]
    assert words(repeat(a, 0, 2)) == powers[0] | powers[1] | powers[2]
    assert words(repeat(a, 2)) == set().union(*powers[2:])
    assert words(star(a)) == set().union(*powers)
    assert words(repeat(a, 0, 0)) == {()}


def test_counted_gaps_between_literals_stay_small() -> None:
    """As one regular expression `a.{3,30}b.{3,30}c` this takes the determinisation beyond any budget."""
    gap = repeat(Automaton.build(0, lambda q, _: q + 1 if q < 1 else None, lambda q: q == 1, 4), 3, 30)
    a, b, c = (Automaton.of_word((letter,), 4) for letter in range(3))
    text = concat(a, gap, b, gap, c)
    assert text.states < 1_500
    for before, after in ((3, 30), (2, 20), (13, 3), (30, 31)):
        word = [0, *[3] * before, 1, *[3] * after, 2]
        assert text.accepts(word) == (3 <= before <= 30 and 3 <= after <= 30)
    assert text.accepts([0, *[1] * 20, 2])


@given(st.lists(st.binary(max_size=4).map(lambda b: bytes(x % 3 for x in b)), min_size=1, max_size=6))
def test_phrase_sets(phrases: list[bytes]) -> None:
    contains, exactly = aho_corasick(phrases), of_words(phrases)
    for word in WORDS:
        text = bytes(word)
        assert contains.accepts(text) == any(p in text for p in phrases)
        assert exactly.accepts(text) == (text in phrases)
    assert aho_corasick([]).empty()


def test_endings() -> None:
    text = with_eos(fixed(Automaton.of_word((1, 2), 5), [0, 3, 4]), 3, 4)
    assert text.accepts((1, 2, 3))
    assert text.accepts((1, 2, 3, 4, 4))
    assert not text.accepts((1, 2))
    assert not text.accepts((1, 2, 3, 3))
    assert not text.accepts((1, 2, 3, 4, 1))
    assert not text.accepts((1, 2, 4))
    same = with_eos(Automaton.of_word((1, 2), 5), 3)
    assert same.accepts((1, 2, 3, 3, 3))
    assert same.same(with_eos(Automaton.of_word((1, 2), 5), 3, 3))
    assert not fixed(Automaton.all(5), [3]).accepts((1, 3))
    with pytest.raises(ValueError, match="outside the vocabulary"):
        with_eos(Automaton.all(5), 5)
