"""Commit positions in random order: ancestral sampling of masked diffusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.selection.base import Proposal, Selection, highest


@dataclass(frozen=True)
class Random(Selection):
    """The quota's positions drawn uniformly, which is the order the denoiser was trained on."""

    name: ClassVar[str] = "random"

    def __call__(self, proposal: Proposal) -> Tensor:
        return highest(proposal.uniform, proposal.free, proposal.quota)
