"""A bounded choice: the text is one of so many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Verdict
from redraft.denoiser.automaton import STATE_BUDGET
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.lift import lift
from redraft.guidance.counts import shorten


@dataclass(frozen=True, init=False)
class OneOf(HardGuide):
    """The text is exactly one of `choices`; order and repetition mean nothing.

    With `ignore_case` every letter may be in either case, where that is one character: texts are compared by
    `str.casefold`.
    """

    name: ClassVar[str] = "one-of"
    choices: tuple[str, ...]
    ignore_case: bool

    def __init__(self, choices: Iterable[str], ignore_case: bool = False) -> None:
        if isinstance(choices, str):
            raise InvalidGuideError(f"the choices are the text {shorten(choices)!r}: give a list of texts")
        kept = tuple(dict.fromkeys(choices))
        if not kept:
            raise InvalidGuideError("OneOf has no choice: give at least one text")
        for choice in kept:
            if not isinstance(choice, str) or any("\ud800" <= char <= "\udfff" for char in choice):
                raise InvalidGuideError(f"a choice is {choice!r}: use text")
        object.__setattr__(self, "choices", kept)
        object.__setattr__(self, "ignore_case", ignore_case)

    def language(self, scene: Scene) -> Automaton:
        if not self.ignore_case and len(self.choices) == 1:
            scene.vocabulary.encode(self.choices[0])  # says which character cannot be written
        language = _texts(frozenset(self.choices), self.ignore_case)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def outer(self, scene: Scene) -> Automaton:
        """With `ignore_case`, any text: "ß" is as good as "SS" to the check."""
        if not self.ignore_case or all(choice.isascii() for choice in self.choices):
            return super().outer(scene)
        return Automaton.all(len(scene.vocabulary))

    def room(self) -> int | None:
        return 2 + max(len(choice.encode()) for choice in self.choices)

    def check(self, text: str) -> Verdict:
        return self.verdict((text.casefold() if self.ignore_case else text) in self._folded)

    @cached_property
    def _folded(self) -> frozenset[str]:
        return frozenset(c.casefold() if self.ignore_case else c for c in self.choices)

    def __str__(self) -> str:
        listed = ", ".join(repr(shorten(choice, 24)) for choice in self.choices[:4])
        return f"OneOf([{listed}{f', ... {len(self.choices):,} in all' if len(self.choices) > 4 else ''}])"


@lru_cache(maxsize=16)
def _texts(choices: frozenset[str], ignore_case: bool) -> Automaton:
    """The trie of the choices; the other cases of a letter lead to the same nodes."""
    forms = _forms(choices) if ignore_case else {}
    trie, ends = _Trie(), set()
    for choice in choices:
        if ignore_case:
            node = 0
            for char in choice:
                node = trie.extend(node, forms[char.casefold()])
        else:
            node = trie.extend(0, (choice.encode(),))
        ends.add(node)
    if trie.size > 8 * STATE_BUDGET:
        raise StateBudgetError(
            f"{len(choices):,} choices need more than {8 * STATE_BUDGET:,} states: give fewer or shorter ones",
            sizes=(trie.size,),
        )
    return trie.automaton(ends)


class _Trie:
    """Nodes numbered from 0; an edge leads from node * 256 + byte."""

    def __init__(self) -> None:
        self.edges: dict[int, int] = {}
        self.size = 1

    def extend(self, node: int, ways: tuple[bytes, ...]) -> int:
        """The node behind a text, all its spellings leading there."""
        end = -1
        for way in ways:
            here = node
            for byte in way[:-1]:
                here = self._step(here, byte)
            if end < 0 and way:
                end = self._step(here, way[-1])
            elif way:
                end = self.edges.setdefault(here * 256 + way[-1], end)
        return node if end < 0 else end

    def _step(self, node: int, byte: int) -> int:
        target = self.edges.setdefault(node * 256 + byte, self.size)
        self.size += target == self.size
        return target

    def automaton(self, ends: set[int]) -> Automaton:
        """The texts that end at one of these nodes."""
        source, byte = np.divmod(np.fromiter(self.edges, np.int64, len(self.edges)), 256)
        used = np.unique(byte)
        classes = np.zeros(256, dtype=np.int32)
        classes[used] = np.arange(1, len(used) + 1)
        delta = np.full((self.size + 1, len(used) + 1), self.size, dtype=np.int32)
        delta[source, classes[byte]] = np.fromiter(self.edges.values(), np.int32, len(self.edges))
        accept = np.zeros(self.size + 1, dtype=bool)
        accept[list(ends)] = True
        return Automaton(classes, delta, 0, accept).minimise()


def _forms(choices: Iterable[str]) -> dict[str, tuple[bytes, ...]]:
    """For each letter, as `casefold` has it, its spellings that are one character."""
    found: dict[str, set[bytes]] = {}
    for char in {char for choice in choices for char in choice}:
        key = char.casefold()
        ways = {
            w
            for w in (char, char.lower(), char.upper(), char.title(), key)
            if len(w) == 1 and w.casefold() == key
        }
        found.setdefault(key, set()).update(way.encode() for way in ways)
    return {key: tuple(sorted(ways)) for key, ways in found.items()}
