"""A soft guide: a finite bias, one number a token."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Step, Verdict


@dataclass(frozen=True)
class Brevity(SoftGuide):
    """Prefer short words: -1 nat for each letter of a token beyond `letters`.

    Strength is `scale * Brevity(letters)`. Satisfied where words have at most `letters` letters on average.
    """

    name: ClassVar[str] = "brevity"
    letters: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.letters <= 40:
            raise InvalidGuideError(f"letters is {self.letters}: use a whole number from 1 to 40")

    def bind(self, scene: Scene) -> Bound:
        return _BoundBrevity(self, scene)

    def check(self, text: str) -> Verdict:
        words = re.findall(r"\w+", text)
        if not words:
            return self.verdict("unknown", note="there is no word")
        short = sum(len(word) <= self.letters for word in words)
        mean = sum(map(len, words)) / len(words)
        return self.verdict(mean <= self.letters, short / len(words), note=f"{mean:.1f} letters a word")


class _BoundBrevity(Bound):
    def __init__(self, guide: Brevity, scene: Scene) -> None:
        super().__init__(guide, scene)
        sizes = [len((raw or b"").strip()) for raw in scene.vocabulary.token_bytes]
        over = torch.tensor(sizes, dtype=torch.float32, device=scene.device) - guide.letters
        self.vector = -over.clamp_min(0.0)

    def bias(self, step: Step) -> Tensor | None:
        return self.vector
