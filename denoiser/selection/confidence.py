"""Commit what the posterior is surest of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.selection.base import Proposal, Selection, highest


@dataclass(frozen=True)
class Confidence(Selection):
    """The quota's surest positions: score = log confidence + noise * Gumbel, noise >= 0 (0: no randomness).

    Without noise, repetition is likely: a sure position makes its neighbours surer.
    """

    name: ClassVar[str] = "confidence"
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.noise < float("inf"):
            raise InvalidGuideError(f"the noise of Confidence is {self.noise}: use a finite number from 0")

    def __call__(self, proposal: Proposal) -> Tensor:
        score = proposal.confidence.double().clamp_min(1e-300).log()
        if self.noise:
            gumbel = -(-(proposal.uniform.clamp(1e-300, 1 - 1e-16)).log()).log()
            score = score + self.noise * gumbel
        return highest(score, proposal.free, proposal.quota)
