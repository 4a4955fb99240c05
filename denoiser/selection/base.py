"""What a selection policy sees and returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser.checked import Checked
from redraft.denoiser.step import Step


@dataclass(frozen=True)
class Proposal:
    """A joint draft and how sure it is.

    draft [B, L] int64; confidence [B, L]: exact posterior marginal of each drafted token, 1 at committed
    positions; free [B, L] bool: open, and not certain anyway (posterior near 1, as where the language forces a
    token) and no anchor; quota [B] int64: how many free positions the budget would commit now, 0 where anchors fill
    it; last [B] bool: the budget ends with this step; uniform [B, L] float64 in [0, 1): this step's own randomness;
    unseen [B, L] bool: certain tokens and anchors, committed whatever is chosen, that are not on the canvas yet.
    """

    step: Step
    draft: Tensor
    confidence: Tensor
    free: Tensor
    quota: Tensor
    last: Tensor
    uniform: Tensor
    unseen: Tensor

    @cached_property
    def entropy(self) -> Tensor:
        """[B, L] nats: entropy of the denoiser's own distribution, before temperature and guidance."""
        log_p = self.step.log_p
        return -(log_p.exp() * log_p.clamp_min(-1e4)).sum(-1)

    @cached_property
    def margin(self) -> Tensor:
        """[B, L]: probability of the best token minus the second best, in the denoiser's own distribution."""
        best = self.step.log_p.topk(2, dim=-1).values.exp()
        return best[..., 0] - best[..., 1]


class Selection(Checked, ABC):
    """Which open positions to commit at a step. A policy is stateless; the same object serves many runs.

    `in_order`: with a quota of one it commits the leftmost.
    """

    name: ClassVar[str]
    in_order: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, proposal: Proposal) -> Tensor:
        """bool [B, L]: positions to commit, within `proposal.free`; at least one if there is a quota, none `unseen`."""


def highest(score: Tensor, free: Tensor, count: Tensor) -> Tensor:
    """bool [B, L]: in each row the `count[b]` free positions of highest score; ties go to the left."""
    score = torch.where(free, score.double(), -torch.inf)
    order = score.argsort(dim=-1, descending=True, stable=True)
    rank = torch.empty_like(order).scatter_(
        -1, order, torch.arange(order.shape[-1], device=order.device).expand_as(order)
    )
    return free & (rank < count[:, None])
