"""A classifier on the denoiser's own hidden states, at home on canvases that are still half open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from redraft.classifiers.base import InvalidClassifierError
from redraft.classifiers.gradients import log_odds, pooled
from redraft.classifiers.heads import Array, Head
from redraft.denoiser.base import Denoiser
from redraft.denoiser.load import load
from redraft.denoiser.models.encoder import Encoder
from redraft.denoiser.step import Scene

RATES = (0.0, 0.25, 0.5, 0.75, 0.95)
"""Shares of a text's tokens that are masked, one example of each text at each."""


@lru_cache(maxsize=2)
def _loaded(name: str) -> Denoiser:
    return load(name)


@dataclass(frozen=True)
class NoiseAware(Head):
    """Softmax of a linear map of the mean hidden state over the text's positions, learnt at all mask rates.

    `denoiser` is the embedded one or a folder of `redraft train`; it must be the one that writes.
    """

    kind: ClassVar[str] = "noise-aware"
    denoiser: str = "embedded"
    seed: int = field(default=0, compare=False)

    def features(self, texts: Sequence[str]) -> Array:
        return self._states(texts, 0.0)

    def examples(self, texts: Sequence[str]) -> Array:
        return np.stack([self._states(texts, rate) for rate in RATES], axis=1)

    def _states(self, texts: Sequence[str], rate: float, batch: int = 16) -> Array:
        """float64 [N, D]: mean hidden states with a share `rate` of each text's tokens masked."""
        denoiser, network = self._network()
        vocabulary = denoiser.vocabulary
        generator = torch.Generator().manual_seed(self.seed)
        found: list[Array] = []
        for begin in range(0, len(texts), batch):
            rows = [
                vocabulary.encode(text)[: denoiser.max_length - 1] for text in texts[begin : begin + batch]
            ]
            width = max(map(len, rows)) + 1
            ids = torch.full((len(rows), width), vocabulary.pad_id or 0)
            text = torch.zeros(len(rows), width, dtype=torch.bool)
            for k, row in enumerate(rows):
                ids[k, : len(row)] = torch.tensor(row, dtype=torch.int64)
                ids[k, len(row)] = vocabulary.eos_id or 0
                text[k, : len(row)] = True
            hide = text & (torch.rand(ids.shape, generator=generator) < rate)
            ids = torch.where(hide, denoiser.noise.fill, ids)
            with torch.inference_mode():
                mean = pooled(self._run(denoiser, network, network.tokens(ids)), text.float())
            found += list(mean.double().numpy())
        return np.array(found)

    def _network(self) -> tuple[Any, Encoder]:
        denoiser: Any = _loaded(self.denoiser)
        if not isinstance(getattr(denoiser, "model", None), Encoder):
            raise InvalidClassifierError(
                f"{self.denoiser} has no hidden states that can be read: use the embedded denoiser, or a folder "
                "of `redraft train`"
            )
        return denoiser, denoiser.model

    def _run(self, denoiser: Any, network: Encoder, embeddings: Tensor) -> Tensor:
        """Hidden states [B, L, D] of a canvas of input embeddings, behind the denoiser's own lead."""
        lead = network.tokens(denoiser.prepare("", len(embeddings)).tokens)
        whole = torch.cat([lead.to(embeddings.dtype), embeddings], dim=1)
        place = torch.arange(whole.shape[1], device=whole.device)
        hidden: Tensor = network.body(network.norm(whole + network.positions(place)))
        return hidden[:, lead.shape[1] :]

    def table(self, scene: Scene) -> Tensor:
        denoiser, network = self._network()
        if denoiser.vocabulary.key != scene.vocabulary.key:
            raise InvalidClassifierError(
                f"{self.name} reads the hidden states of {self.denoiser}, which has another vocabulary: "
                "train one for this denoiser"
            )
        table: Tensor = network.tokens.weight
        return table

    def soft(self, embeddings: Tensor, weight: Tensor, goal: str) -> Tensor:
        denoiser, network = self._network()
        mean = pooled(self._run(denoiser, network, embeddings), weight)
        weights, offsets = (
            torch.from_numpy(a.astype(np.float32)).to(mean.device) for a in (self.weights, self.offsets)
        )
        return log_odds((mean @ weights.T + offsets) / self.temperature, self.number(goal))

    def meta(self) -> dict[str, Any]:
        return super().meta() | {"denoiser": self.denoiser}

    @classmethod
    def fields(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return super().fields(meta) | {"denoiser": str(meta["denoiser"])}
