"""Commit from the left, in several places at once where a step has more than one token to commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from redraft.denoiser.selection.base import Proposal, Selection, highest


@dataclass(frozen=True)
class LeftToRight(Selection):
    """The leftmost free position, as an autoregressive model would; with a larger quota several, far apart.

    Every run of free neighbours is written from its left. A quota of q commits the first of the q leftmost runs; where
    there are fewer runs, every d-th position of each, d as small as q allows: neighbours that are drawn
    together clash. Of 32 open positions and a quota of 2 it takes 0 and 16, then 1 and 17, and so on. So do a token
    that is certain, or an anchor, and what is drawn behind it without having seen it: that waits for the next step.
    Commits at a distance are from dilated unmasking (Luxembourg et al. 2025).
    """

    name: ClassVar[str] = "left-to-right"
    in_order: ClassVar[bool] = True

    def __call__(self, proposal: Proposal) -> Tensor:
        free, quota = proposal.free, proposal.quota
        length = free.shape[-1]
        place = torch.arange(length, device=free.device).expand_as(free)
        offset = place - 1 - torch.where(free, -1, place).cummax(-1).values  # from the start of its run

        def parted(stride: Tensor) -> Tensor:
            return free & (offset % stride[:, None] == 0)

        low, high = torch.ones_like(quota), torch.full_like(quota, length)
        for _ in range(length.bit_length()):  # the least stride that is within the quota, by halving
            middle = (low + high) // 2
            within = parted(middle).sum(-1) <= quota
            low, high = torch.where(within, low, middle + 1), torch.where(within, middle, high)
        # where no stride gives the quota exactly, what is short comes from the next smaller one
        rank = 2.0 * parted(high) + parted((high - 1).clamp_min(1))
        taken = highest(rank, free, quota)
        behind = pad(proposal.unseen[:, :-1], (1, 0))
        return taken & (proposal.last[:, None] | ~behind)
