"""Random numbers by row, so that a row's text does not depend on its neighbours in the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from redraft.denoiser.errors import InvalidGuideError


class Randomness:
    """One generator a row, seeded by the row's own seed; the same numbers on every device.

    Numbers are drawn on the host and moved, so that a seed means the same text stream everywhere. `stream` numbers
    independent sequences of one seed.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu", stream: int = 0) -> None:
        for seed in seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
                raise InvalidGuideError(
                    f"seed {seed!r} is out of range: use a whole number from 0 to 2**63 - 1"
                )
        self.seeds = tuple(seeds)
        self.device = torch.device(device)
        self._rows = [torch.Generator().manual_seed(_mixed(seed, stream)) for seed in seeds]

    def fork(self, stream: int) -> Randomness:
        """The same rows' sequence number `stream`, however many numbers have been drawn; 0 is a fresh start."""
        return Randomness(self.seeds, self.device, stream)

    def uniform(self, *shape: int) -> Tensor:
        """[B, *shape] float64 in [0, 1), row b from row b's generator alone."""
        rows = [torch.rand(shape, generator=row, dtype=torch.float64) for row in self._rows]
        return torch.stack(rows).to(self.device)


def check_seeds(seed: int, used: int) -> None:
    """Raise `InvalidGuideError` where `seed`, `seed` + 1, ... (`used` of them) are not all in [0, 2**63)."""
    if not 0 <= seed <= 2**63 - used:
        raise InvalidGuideError(
            f"seed is {seed}, and {used} {'seed is' if used == 1 else 'seeds are'} used from there on: "
            f"use a whole number from 0 to {2**63 - used}"
        )


def _mixed(seed: int, stream: int) -> int:
    if stream == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed} {stream}".encode()).digest()[:8], "big") >> 1
