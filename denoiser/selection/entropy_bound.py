"""Commit as many positions as their dependence allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.selection.base import Proposal, Selection, highest


@dataclass(frozen=True)
class EntropyBound(Selection):
    """Positions in order of entropy while sum(H) - max(H) <= bound (nats), at least one; ignores the quota.

    The error of committing a set at once is at most sum(H) - max(H) (Ben-Hamu et al. 2025, "Accelerated
    sampling from masked diffusion models via entropy bounded unmasking"). H is the unguided entropy, since
    the guided one is low exactly where dependence is strongest. The number of steps follows from the bound;
    the last step of the budget commits what is left.
    """

    name: ClassVar[str] = "entropy-bound"
    bound: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.bound < float("inf"):
            raise InvalidGuideError(
                f"the bound of EntropyBound is {self.bound}: use a finite number of nats from 0"
            )

    def __call__(self, proposal: Proposal) -> Tensor:
        entropy = proposal.entropy.double()
        ordered = entropy.masked_fill(~proposal.free, float("inf")).sort(dim=-1, stable=True).values
        kept = ordered.isfinite()
        ordered = ordered.masked_fill(~kept, 0.0)
        # in increasing order the largest of the first k is the k-th, so the error is the sum of those before it
        before = ordered.cumsum(-1) - ordered
        count = ((before <= self.bound) & kept).sum(-1)
        return highest(-entropy, proposal.free, torch.where(proposal.last, proposal.quota, count))
