"""Similar meaning, and topics, by sentence embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.classifiers.sentences import OFFLINE, sentence_encoder
from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Verdict
from redraft.guidance.gradient import BoundGradient
from redraft.guidance.occurrence import phrase

SHARP = 10.0
"""Nats of score for a whole unit of cosine."""


class _Likeness:
    """S = SHARP * cos(embedding of the draft, embedding of the goal)."""

    def __init__(self, encoder: str, device: torch.device) -> None:
        self.encoder = sentence_encoder(encoder, str(device))
        self._goals: dict[str, Tensor] = {}

    def table(self, scene: Scene) -> Tensor:
        return self.encoder.bridge(scene.vocabulary)

    def soft(self, embeddings: Tensor, weight: Tensor, goal: str) -> Tensor:
        if goal not in self._goals:
            self._goals[goal] = self.encoder.embed([goal])[0]
        return SHARP * (self.encoder.embed_soft(embeddings, weight) @ self._goals[goal])


def similarity(text: str, other: str, encoder: str = OFFLINE) -> float:
    """Cosine of two texts' sentence embeddings, in [-1, 1]."""
    one, two = sentence_encoder(encoder).embed([text, other])
    return float(one @ two)


@dataclass(frozen=True)
class Similar(SoftGuide):
    """Prefer texts that mean what `text` means: the cosine of sentence embeddings, steered by its gradient.

    `least` in (0, 1): the cosine from which a text counts as satisfied, by the encoder that guided. Any
    sentence-transformers model by name or folder may be the `encoder`. Needs the extra "classifiers".
    """

    name: ClassVar[str] = "similar"
    text: str
    least: float = 0.5
    encoder: str = OFFLINE

    def __post_init__(self) -> None:
        phrase(self.text, f"the text of {type(self).__name__}")
        if not 0 < self.least < 1:
            raise InvalidGuideError(f"least is {self.least}: use a cosine between 0 and 1")

    def bind(self, scene: Scene) -> Bound:
        return BoundGradient(self, scene, _Likeness(self.encoder, scene.device), self.text, None)

    def check(self, text: str) -> Verdict:
        """Satisfied from a cosine of `least` on; an empty text is violated."""
        score = similarity(text, self.text, self.encoder) if text.strip() else 0.0
        note = f"cosine {score:.2f}, by the encoder that guided"
        return self.verdict(score >= self.least, min(1.0, max(0.0, score)), note=note)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.text!r})"


@dataclass(frozen=True)
class Topic(Similar):
    """Prefer texts about a topic, a word or a few: `Topic("the sea")`; as `Similar`, satisfied from 0.25 on."""

    name: ClassVar[str] = "topic"
    least: float = 0.25
