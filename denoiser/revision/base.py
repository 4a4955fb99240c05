"""Which committed positions to reopen at a step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.checked import Checked
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.step import Step


class Revision(Checked, ABC):
    """Reopening (remasking). A policy is stateless; pins are never reopened whatever it returns."""

    name: ClassVar[str]
    provisional: ClassVar[bool] = False
    """Whether reopened positions keep their tokens: for noise that the denoiser doubts (`Noise.revisable`) only."""

    @abstractmethod
    def __call__(self, step: Step, canvas: Canvas, uniform: Tensor) -> Tensor:
        """bool [B, L]: positions of `canvas` (after this step's commits) to reopen; uniform [B, L] in [0, 1)."""


def window(whose: str, start: float, stop: float, budget: float | None) -> None:
    """Raise `InvalidGuideError` unless 0 <= start < stop <= 1 and the budget is a share above 0, or None."""
    if not 0 <= start < stop <= 1:
        raise InvalidGuideError(f"{whose} works in [{start}, {stop}): use 0 <= start < stop <= 1")
    if budget is not None and not 0 < budget < math.inf:
        raise InvalidGuideError(
            f"the budget of {whose} is {budget}: use a share of the canvas above 0, or None for no limit"
        )


def allowance(step: Step, canvas: Canvas, start: float, stop: float, budget: float | None) -> Tensor | None:
    """int64 [B]: how many positions may be reopened now so that a whole run reopens at most `budget` * L.

    The total is spread evenly over the steps in [start, stop); what one does not use is not handed on.
    """
    if budget is None:
        return None
    first, end = math.ceil(start * step.steps), math.ceil(stop * step.steps)
    total, turn, turns = int(budget * canvas.tokens.shape[1]), step.index - first, max(1, end - first)
    now = total * (turn + 1) // turns - total * turn // turns if 0 <= turn < turns else 0
    return canvas.open.new_full((len(canvas.open),), now, dtype=torch.int64)
