"""Commit what the posterior is surest of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.selection.base import Proposal, Selection, highest


@dataclass(frozen=True)
class Confidence(Selection):
    """The quota's surest positions: score = log confidence + noise * Gumbel - lean * position, noise, lean >= 0.

    Without noise, repetition is likely: a sure position makes its neighbours surer. A lean (nats a token) lets what
    stands further left come first, more or less; position-aware confidence is from PC-Sampler (Huang et al. 2025).
    """

    name: ClassVar[str] = "confidence"
    noise: float = 0.0
    lean: float = 0.0

    def __post_init__(self) -> None:
        for what in ("noise", "lean"):
            if not 0 <= getattr(self, what) < float("inf"):
                raise InvalidGuideError(
                    f"the {what} of Confidence is {getattr(self, what)}: use a finite number from 0"
                )

    def __call__(self, proposal: Proposal) -> Tensor:
        score = proposal.confidence.double().clamp_min(1e-300).log()
        if self.noise:
            gumbel = -(-(proposal.uniform.clamp(1e-300, 1 - 1e-16)).log()).log()
            score = score + self.noise * gumbel
        if self.lean:
            score = score - self.lean * torch.arange(score.shape[-1], device=score.device, dtype=score.dtype)
        return highest(score, proposal.free, proposal.quota)
