"""Which committed positions to reopen at a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.checked import Checked
from redraft.denoiser.step import Step


class Revision(Checked, ABC):
    """Reopening (remasking). A policy is stateless; pins are never reopened whatever it returns."""

    name: ClassVar[str]
    provisional: ClassVar[bool] = False
    """Whether reopened positions keep their tokens: for noise that the denoiser doubts (`Noise.revisable`) only."""

    @abstractmethod
    def __call__(self, step: Step, canvas: Canvas, uniform: Tensor) -> Tensor:
        """bool [B, L]: positions of `canvas` (after this step's commits) to reopen; uniform [B, L] in [0, 1)."""
