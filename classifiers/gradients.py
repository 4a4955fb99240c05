"""What a classifier offers to steer by its gradient: log-odds of a label as a function of expected embeddings."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from redraft.denoiser.step import Scene


@runtime_checkable
class Differentiable(Protocol):
    """A score of a soft text.

    `table(scene)` [V, D] float32: the embedding of each token of the scene's vocabulary.
    `soft(embeddings, weight, goal)` [B], nats, differentiable: the score of expected embeddings [B, L, D] that
    count by `weight` [B, L] in [0, 1] (0: no text there); `goal` is what is wanted (a label).
    """

    def table(self, scene: Scene) -> Tensor: ...

    def soft(self, embeddings: Tensor, weight: Tensor, goal: str) -> Tensor: ...


def log_odds(logits: Tensor, number: int) -> Tensor:
    """[B]: log of P(label) / (1 - P(label)) from logits [B, K]."""
    others = torch.cat([logits[:, :number], logits[:, number + 1 :]], dim=1)
    return logits[:, number] - others.logsumexp(-1)


def pooled(hidden: Tensor, weight: Tensor) -> Tensor:
    """[B, D]: mean of hidden states [B, L, D] by weight [B, L]."""
    return (hidden * weight[..., None]).sum(1) / weight.sum(1, keepdim=True).clamp_min(1e-6)
