"""Reopen at random by a schedule, or by a schedule and confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.revision.base import Revision, allowance, window
from redraft.denoiser.selection.base import highest
from redraft.denoiser.step import Step


@dataclass(frozen=True)
class ReMDM(Revision):
    """Each committed, unpinned position is reopened with probability sigma, independently.

    With a = (index + 1) / steps, the share committed after this step, and s = 1 / steps:

        sigma_max = min(1, (1 - a - s) / a)      what still leaves the run on its schedule
        cap:       sigma = min(rate, sigma_max)
        rescale:   sigma = rate * sigma_max

    `by` "confidence": sigma_i = min(1, n sigma softmax_i(-confidence)) over a row's n positions, so that the expected
    number stays n sigma and the unsure go first; "chance": all alike. Confidence is the posterior marginal at the
    commit. Works while progress is in [start, stop); `budget` as in `Uncertain`. (ReMDM, Wang et al. 2025, section 4.)
    """

    name: ClassVar[str] = "remdm"
    schedule: Literal["cap", "rescale"] = "cap"
    rate: float = 0.04
    by: Literal["chance", "confidence"] = "chance"
    start: float = 0.0
    stop: float = 1.0
    budget: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InvalidGuideError(f"the rate of ReMDM is {self.rate}: use a share above 0, at most 1")
        if self.schedule not in ("cap", "rescale") or self.by not in ("chance", "confidence"):
            raise InvalidGuideError(
                f'ReMDM has schedule {self.schedule!r} by {self.by!r}: use "cap" or "rescale", "chance" or "confidence"'
            )
        window("ReMDM", self.start, self.stop, self.budget)

    def sigma(self, step: Step) -> float:
        """The chance of each position after this step's commits."""
        if not self.start <= step.progress < self.stop:
            return 0.0
        share, pace = (step.index + 1) / step.steps, 1 / step.steps
        most = min(1.0, max(0.0, (1.0 - share - pace) / share))
        return min(self.rate, most) if self.schedule == "cap" else self.rate * most

    def __call__(self, step: Step, canvas: Canvas, uniform: Tensor) -> Tensor:
        held = ~canvas.open & ~canvas.pinned
        chance = torch.full_like(uniform, self.sigma(step))
        if self.by == "confidence":
            share = torch.where(held, -canvas.confidence.double(), -torch.inf).softmax(-1)
            chance = (chance * share.nan_to_num(0.0) * held.sum(-1, keepdim=True)).clamp_max(1.0)
        mark = held & (uniform < chance)
        most = allowance(step, canvas, self.start, self.stop, self.budget)
        return mark if most is None else highest(-canvas.confidence, mark, most)
