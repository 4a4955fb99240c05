"""A classifier on sentence embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from redraft.classifiers.gradients import log_odds
from redraft.classifiers.heads import Array, Head
from redraft.classifiers.sentences import OFFLINE, SentenceEncoder, sentence_encoder
from redraft.denoiser.step import Scene


@dataclass(frozen=True)
class SentenceHead(Head):
    """Softmax of a linear map of sentence embeddings; a few dozen texts a label are enough.

    It reads a denoiser's draft through a bridge between the vocabularies (`SentenceEncoder.bridge`).
    """

    kind: ClassVar[str] = "sentence"
    encoder: str = OFFLINE

    def features(self, texts: Sequence[str]) -> Array:
        return self.load_encoder().embed(texts).cpu().double().numpy()

    def load_encoder(self, device: torch.device | str = "cpu") -> SentenceEncoder:
        return sentence_encoder(self.encoder, str(device))

    def table(self, scene: Scene) -> Tensor:
        return self.load_encoder(scene.device).bridge(scene.vocabulary)

    def soft(self, embeddings: Tensor, weight: Tensor, goal: str) -> Tensor:
        found = self.load_encoder(embeddings.device).embed_soft(embeddings, weight)
        weights, offsets = (
            torch.from_numpy(a.astype(np.float32)).to(found.device) for a in (self.weights, self.offsets)
        )
        return log_odds((found @ weights.T + offsets) / self.temperature, self.number(goal))

    def meta(self) -> dict[str, Any]:
        return super().meta() | {"encoder": self.encoder}

    @classmethod
    def fields(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return super().fields(meta) | {"encoder": str(meta["encoder"])}
