"""How many tokens a text has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from redraft.denoiser import Automaton, Bound, HardGuide, Scene, Verdict
from redraft.guidance.counts import check_range, shown
from redraft.guidance.ending import EndAnchored


@dataclass(frozen=True)
class Tokens(HardGuide):
    """At least `least` and at most `most` tokens of the denoiser's vocabulary, EOS and padding not counted."""

    name: ClassVar[str] = "tokens"
    least: int
    most: int | None = None

    def __post_init__(self) -> None:
        check_range("the number of tokens", self.least, self.most, 0)

    def language(self, scene: Scene) -> Automaton:
        size = len(scene.vocabulary)
        last = self.least if self.most is None else self.most + 1
        delta = np.minimum(np.arange(1, last + 2), last).astype(np.int32)[:, None]
        accept = np.arange(last + 1) >= self.least
        if self.most is not None:
            accept[last] = False
        return Automaton(np.zeros(size, dtype=np.int32), delta, 0, accept)

    def bind(self, scene: Scene) -> Bound:
        return _BoundTokens(self, scene, self.language(scene))

    def room(self) -> int | None:
        return max(1, self.least + 16 if self.most is None else self.most)

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown", note="needs the denoiser's vocabulary")

    def __str__(self) -> str:
        return f"Tokens({shown(self.least, self.most)})"


class _BoundTokens(EndAnchored):
    def check(self, text: str, tokens: Sequence[int] | None = None) -> Verdict:
        """The text's own tokens where given, else as the tokenizer would cut it."""
        guide, vocabulary = self.guide, self.scene.vocabulary
        assert isinstance(guide, Tokens)
        ids = vocabulary.encode(text) if tokens is None else tokens
        count = sum(vocabulary.token_bytes[token] is not None for token in ids)
        held = guide.least <= count and (guide.most is None or count <= guide.most)
        return guide.verdict(held, note=f"{count} tokens")
