"""Commit from the left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser.selection.base import Proposal, Selection, highest


@dataclass(frozen=True)
class LeftToRight(Selection):
    """The quota's leftmost positions, as an autoregressive model would."""

    name: ClassVar[str] = "left-to-right"

    def __call__(self, proposal: Proposal) -> Tensor:
        length = proposal.free.shape[-1]
        place = torch.arange(length, device=proposal.free.device).expand_as(proposal.free)
        return highest(-place, proposal.free, proposal.quota)
