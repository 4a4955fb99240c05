"""What an open position holds before the denoiser has written it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.randomness import Randomness


class Noise(ABC):
    """What stands at open positions. The loop asks for it and knows no kind by name.

    `revisable`: the denoiser was trained to doubt any token it sees, so a token may stand on the canvas while its
    position is still open.
    """

    revisable: ClassVar[bool] = False

    @abstractmethod
    def renoise(self, canvas: Canvas, where: Tensor, random: Randomness) -> Canvas:
        """The canvas with fresh noise at `where` [B, L]; row b's noise is row b's own."""

    def blank(self, length: int, random: Randomness) -> Canvas:
        """An all-open canvas of noise, one row for each of the run's rows."""
        canvas = Canvas.blank(len(random.seeds), length, 0, random.device)
        return self.renoise(canvas, canvas.open, random)


@dataclass(frozen=True)
class Absorbing(Noise):
    """Masked diffusion: an open position holds the mask token and nothing else."""

    mask_id: int

    @property
    def fill(self) -> int:
        """The token that stands at an open position."""
        return self.mask_id

    def renoise(self, canvas: Canvas, where: Tensor, random: Randomness) -> Canvas:
        return replace(canvas, tokens=torch.where(where, self.mask_id, canvas.tokens))


@dataclass(frozen=True)
class Uniform(Noise):
    """Uniform diffusion: an open position holds a token drawn evenly from the `size` ids, anew at every step."""

    size: int
    revisable: ClassVar[bool] = True

    def renoise(self, canvas: Canvas, where: Tensor, random: Randomness) -> Canvas:
        drawn = (random.uniform(where.shape[1]) * self.size).long().clamp_max(self.size - 1)
        return replace(canvas, tokens=torch.where(where, drawn, canvas.tokens))
