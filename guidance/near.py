"""Two keywords within so many words of each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser import Automaton, InvalidGuideError, Scene, Span, Verdict, Vocabulary
from redraft.denoiser.errors import UnwritableTextError
from redraft.denoiser.lift import lift
from redraft.guidance.anchoring import Anchoring
from redraft.guidance.occurrence import occurs
from redraft.guidance.sequence import Group, group, listed, places, plain
from redraft.guidance.spelling import Spelling, spellings, token_words

FARTHEST = 30
"""Most words apart: states grow with the square of it."""


@dataclass(frozen=True)
class Near(Anchoring):
    """`first` and `second` occur, in either order, at most `within` words apart.

    Two words side by side are 1 apart: the distance is that of their places in `text.split()`, for phrases
    from the last word of one to the first of the other. Keywords may have alternatives, are whole and in any
    case unless `exact_case`, as in `Keywords`.
    """

    name: ClassVar[str] = "near"
    first: str | tuple[str, ...]
    second: str | tuple[str, ...]
    within: int = 5
    exact_case: bool = False

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            object.__setattr__(self, name, plain(group(getattr(self, name), f"the {name} keyword of Near")))
        if (
            isinstance(self.within, bool)
            or not isinstance(self.within, int)
            or not 1 <= self.within <= FARTHEST
        ):
            raise InvalidGuideError(f"within is {self.within!r} words: use 1 to {FARTHEST}")

    @property
    def groups(self) -> tuple[Group, Group]:
        """Both keywords as the tuples of their alternatives."""
        one, two = ((word,) if isinstance(word, str) else word for word in (self.first, self.second))
        return one, two

    def language(self, scene: Scene) -> Automaton:
        """Both stand as the tokenizer itself spells them, each a word of its own."""
        items = []
        for k, options in enumerate(self.groups):
            own = [
                _Item(k, len(word.split()), s)
                for word in options
                for s in spellings(scene.vocabulary, word, exact_case=self.exact_case)
            ]
            if not own:
                scene.vocabulary.encode(options[0])
                raise UnwritableTextError(
                    f"the vocabulary cannot spell {options[0]!r} as a whole word: use another"
                )
            items += own
        return _near(tuple(items), self.within, scene.vocabulary)

    def outer(self, scene: Scene) -> Automaton:
        """Both occur, at any distance."""
        one, two = (
            lift(
                occurs(options, True, self.exact_case), scene.vocabulary.token_bytes, scene.vocabulary.prefix
            )
            for options in self.groups
        )
        return one & two

    def witness(self, text: str) -> Sequence[Span]:
        found = self._closest(text)
        return found[1:] if found and found[0] <= self.within else ()

    def check(self, text: str) -> Verdict:
        found = self._closest(text)
        if found is None:
            return self.verdict(False, note="they do not both occur")
        return self.verdict(found[0] <= self.within, None, found[1:], f"{found[0]} words apart")

    def _closest(self, text: str) -> tuple[int, Span, Span] | None:
        one, two = (places(text, options, exact_case=self.exact_case) for options in self.groups)
        pairs = [(a, b) if a.start < b.start else (b, a) for a in one for b in two]
        apart = [
            (len(text[: b.start + 1].split()) - len(text[: a.end].split()), a, b)
            for a, b in pairs
            if b.start >= a.end
        ]
        return min(apart, key=lambda found: (found[0], found[1].start), default=None)

    def __str__(self) -> str:
        one, two = map(listed, self.groups)
        return f"Near({one}, {two}, within={self.within})"


class _Item(NamedTuple):
    group: int
    words: int
    spelling: Spelling


class _State(NamedTuple):
    """active: (item, tokens matched); clean: no word character since the last white space; waiting: groups
    that stand there and count if white space comes before the next word character; near: the pair stands, if
    so; ages: words begun since each group's last word, capped; inside: the text so far ends inside a word."""

    active: frozenset[tuple[int, int]]
    clean: bool
    waiting: frozenset[int]
    near: bool
    ages: tuple[int, int]
    inside: bool


@lru_cache(maxsize=64)
def _near(items: tuple[_Item, ...], within: int, vocabulary: Vocabulary) -> Automaton:
    far = within + max(item.words for item in items)
    found = _State(frozenset(), True, frozenset(), True, (far, far), False)
    begins, leads, trails, broken = _word_starts(vocabulary)
    head, tail, space = token_words(vocabulary)
    special = sorted({token for item in items for token in item.spelling.tokens})
    classes = np.unique(
        np.stack([head, tail, space, leads, trails, broken, np.minimum(begins, far)]),
        axis=1,
        return_inverse=True,
    )[1].reshape(-1)
    classes[special] = classes.max() + 1 + np.arange(len(special))

    def step(state: _State, token: int) -> _State:
        if state == found:
            return state
        parting = bool(space[token]) and not head[token]
        if parting and state.near:
            return found
        begun = int(begins[token]) - int(state.inside and leads[token])
        ages = [0 if parting and k in state.waiting else age for k, age in enumerate(state.ages)]
        ages = [far if broken[token] else min(age + begun, far) for age in ages]
        waiting = set() if parting or head[token] else set(state.waiting)
        near, active = bool(waiting) and state.near, set()
        for s, at in state.active | _entered(items, state.clean):
            group, words, spelling = items[s]
            if spelling.tokens[at] != token:
                continue
            if at + 1 < len(spelling.tokens):
                active.add((s, at + 1))
                continue
            close = words <= ages[1 - group] <= within + words - 1
            if spelling.ends:
                waiting.add(group)
                near = near or close
            elif close:
                return found
            else:
                ages[group] = 0
        clean = not tail[token] and (bool(space[token]) or state.clean)
        inside = bool(trails[token])
        return _State(frozenset(active), clean, frozenset(waiting), near, (ages[0], ages[1]), inside)

    start = _State(frozenset(), True, frozenset(), False, (far, far), False)
    return Automaton.build(start, step, lambda state: state.near, len(vocabulary), classes=classes)


def _entered(items: Sequence[_Item], clean: bool) -> set[tuple[int, int]]:
    return {(s, 0) for s, (_, _, x) in enumerate(items) if x.spaced or clean or not x.begins}


@lru_cache(maxsize=16)
def _word_starts(
    vocabulary: Vocabulary,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Four arrays [V]: words that a token begins after white space, whether it begins and ends with anything
    but white space, and whether it is broken (part of a character, which may be white space)."""
    size = len(vocabulary)
    begins, leads, trails, broken = np.zeros(size, np.int64), *(np.zeros(size, dtype=bool) for _ in range(3))
    for token, raw in enumerate(vocabulary.token_bytes):
        text = (raw or b"\xff").decode(errors="replace")
        pieces = re.split(r"\s+", text)
        begins[token] = sum(map(bool, pieces))
        leads[token], trails[token] = bool(pieces[0]), bool(pieces[-1])
        broken[token] = "\ufffd" in text
    return begins, leads, trails, broken
