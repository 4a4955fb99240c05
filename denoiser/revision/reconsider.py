"""Nothing is accepted for good before the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.revision.base import Revision
from redraft.denoiser.step import Step


@dataclass(frozen=True)
class Reconsider(Revision):
    """Every unpinned position is drafted and judged anew at each step; what was accepted stays visible meanwhile.

    For uniform noise, whose denoiser doubts every token that it sees: a token that it no longer wants gives way.
    The last step of the budget, or the stop policy, settles what stands then.
    """

    name: ClassVar[str] = "reconsider"
    provisional: ClassVar[bool] = True

    def __call__(self, step: Step, canvas: Canvas, uniform: Tensor) -> Tensor:
        return ~canvas.open & ~canvas.pinned
