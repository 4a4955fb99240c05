"""Reopen what was committed with the least confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.revision.base import Revision
from redraft.denoiser.selection.base import highest
from redraft.denoiser.step import Step


@dataclass(frozen=True)
class Uncertain(Revision):
    """While progress is in [start, stop), reopen the least confident `rate` of a row's committed positions.

    `rate` in (0, 1) is a share of the committed, unpinned positions, rounded down; confidence is the
    posterior marginal at the time of the commit (as in ReMDM's confidence schedule, Wang et al. 2025).
    """

    name: ClassVar[str] = "uncertain"
    rate: float = 0.1
    start: float = 0.25
    stop: float = 0.85

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InvalidGuideError(f"the rate of Uncertain is {self.rate}: use a share between 0 and 1")
        if not 0 <= self.start < self.stop <= 1:
            raise InvalidGuideError(
                f"Uncertain works in [{self.start}, {self.stop}): use 0 <= start < stop <= 1"
            )

    def __call__(self, step: Step, canvas: Canvas, uniform: Tensor) -> Tensor:
        held = ~canvas.open & ~canvas.pinned
        inside = self.start <= step.progress < self.stop
        count = (held.sum(-1) * (self.rate if inside else 0.0)).floor().long()
        return highest(-canvas.confidence, held, count)
