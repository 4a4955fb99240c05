"""Reopen what was committed with the least confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.revision.base import Revision, allowance, window
from redraft.denoiser.selection.base import highest
from redraft.denoiser.step import Step


@dataclass(frozen=True)
class Uncertain(Revision):
    """While progress is in [start, stop), reopen the least confident `rate` of a row's committed positions.

    `rate` in (0, 1) is a share of the committed, unpinned positions, rounded down; confidence is the
    posterior marginal at the time of the commit (as in ReMDM's confidence schedule, Wang et al. 2025).
    `budget`: a whole run reopens at most this share of the canvas, spread evenly over its steps; None: no limit.
    """

    name: ClassVar[str] = "uncertain"
    rate: float = 0.1
    start: float = 0.25
    stop: float = 0.85
    budget: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InvalidGuideError(f"the rate of Uncertain is {self.rate}: use a share between 0 and 1")
        window("Uncertain", self.start, self.stop, self.budget)

    def __call__(self, step: Step, canvas: Canvas, uniform: Tensor) -> Tensor:
        held = ~canvas.open & ~canvas.pinned
        inside = self.start <= step.progress < self.stop
        count = (held.sum(-1) * (self.rate if inside else 0.0)).floor().long()
        most = allowance(step, canvas, self.start, self.stop, self.budget)
        count = count if most is None else count.minimum(most)
        return highest(-canvas.confidence, held, count)
