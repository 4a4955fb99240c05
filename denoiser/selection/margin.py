"""Commit where the best token stands furthest above the second best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.selection.base import Proposal, Selection, highest


@dataclass(frozen=True)
class Margin(Selection):
    """The quota's positions of largest margin p(best) - p(second) of the denoiser's own distribution."""

    name: ClassVar[str] = "margin"

    def __call__(self, proposal: Proposal) -> Tensor:
        return highest(proposal.margin, proposal.free, proposal.quota)
