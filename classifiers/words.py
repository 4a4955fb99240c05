"""Word scores: the independent judge of a decoded text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from redraft.classifiers.fitting import Shape
from redraft.classifiers.linear import Linear

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*|[!?]", re.IGNORECASE)


@dataclass(frozen=True)
class Evidence:
    """Characters [start, end) of a text and the nats they add for the wanted label."""

    start: int
    end: int
    nats: float


@dataclass(frozen=True)
class WordScores(Linear):
    """Linear in a text's words and pairs of neighbouring words, lower case; apart from `TokenScores`."""

    kind: ClassVar[str] = "words"
    shape: ClassVar[Shape] = Shape(least=3, shrink=2.0, most=4.0, keep=12000)

    def keys(self, text: str) -> frozenset[bytes]:
        words = [found.group().lower() for found in _WORD.finditer(text)]
        pairs = [f"{a} {b}" for a, b in pairwise(words)]
        return frozenset(key.encode() for key in (*words, *pairs))

    def evidence(self, text: str) -> list[Evidence]:
        """What each word adds, in the text's order: its own weight and half of each pair's it stands in.

        A key that occurs n times gives each of its places an n-th, so that the sum is the logit without
        the intercept.
        """
        found = [(m.group().lower(), m.start(), m.end()) for m in _WORD.finditer(text)]
        words = [word for word, _, _ in found]
        places: dict[str, list[tuple[int, ...]]] = {}
        for k, word in enumerate(words):
            places.setdefault(word, []).append((k,))
            if k + 1 < len(words):
                places.setdefault(f"{word} {words[k + 1]}", []).append((k, k + 1))
        nats = [0.0] * len(words)
        for key, spots in places.items():
            weight = self.table.get(key.encode(), 0.0) / len(spots)
            for spot in spots:
                for k in spot:
                    nats[k] += weight / len(spot)
        return [Evidence(start, end, n) for (_, start, end), n in zip(found, nats, strict=True)]
