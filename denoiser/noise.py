"""What an open position holds before the denoiser has written it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Absorbing:
    """Masked diffusion: an open position holds the mask token and nothing else."""

    mask_id: int

    @property
    def fill(self) -> int:
        """The token that stands at an open position."""
        return self.mask_id
