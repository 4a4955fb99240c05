"""The smallest push that makes an expected draft reach a goal."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser import InvalidGuideError, Step

MOST = 5.0
"""No push is larger: past that a text is a list of words."""
HALVINGS = 14
"""The push is known to MOST / 2**HALVINGS."""


@dataclass(frozen=True)
class Draft:
    """What the denoiser would write now: q [B, L, V'] probabilities of some tokens among the text tokens,
    tempered; rest [B, L] of all others; alive [B, L] in [0, 1]: an open position that is text."""

    q: Tensor
    rest: Tensor
    alive: Tensor

    @classmethod
    def of(cls, step: Step, among: Tensor | None = None) -> Draft:
        """The expected draft of a step; `among` int64 [V']: the tokens of interest (all where None).

        At temperature 0 the expectation is taken at temperature 1.
        """
        logits = step.logits
        ends = [t for t in (step.denoiser.vocabulary.eos_id, step.denoiser.vocabulary.pad_id) if t is not None]
        alive = step.canvas.open.to(logits.dtype)
        if ends and step.denoiser.vocabulary.eos_id is not None:
            log_p = logits[..., ends] - logits.logsumexp(-1, keepdim=True)
            alive = alive * (1.0 - log_p.exp().sum(-1)).clamp_min(0.0)
            logits = logits.index_fill(-1, torch.tensor(ends, device=logits.device), -torch.inf)
        scaled = logits / (step.temperature or 1.0)
        some = scaled if among is None else scaled[..., among]
        q = (some - scaled.logsumexp(-1, keepdim=True)).exp()
        return cls(q, (1.0 - q.sum(-1)).clamp_min(0.0), alive)

    def expected(self, push: Tensor, bias: Tensor, score: Tensor) -> Tensor:
        """[B]: sum over positions of alive * E[score] under q exp(push * bias) / Z; the rest has bias and score 0.

        `push` [B], `bias` and `score` [B or 1, L or 1, V'].
        """
        lift = (push[:, None, None] * bias).exp()  # [B, L or 1, V']
        if lift.shape[1] == 1 and score.shape[1] == 1:
            both = torch.stack([lift[:, 0], (lift * score)[:, 0]], dim=-1)  # [B, V', 2]
            mass, total = (self.q @ both).unbind(-1)
        else:
            lifted = self.q * lift
            mass, total = lifted.sum(-1), (lifted * score).sum(-1)
        return (self.alive * total / (self.rest + mass).clamp_min(1e-30)).sum(-1)


def smallest_push(draft: Draft, bias: Tensor, score: Tensor, start: Tensor, goal: float, most: float = MOST) -> Tensor:
    """[B]: the smallest s in [0, most] with start + expected(s) >= goal, by bisection; `most` where none is.

    `start` [B] and `goal` in the score's unit. Where score grows with bias the expectation grows with s.
    """

    def reached(push: Tensor) -> Tensor:
        return start + draft.expected(push, bias, score) >= goal

    low = torch.zeros_like(start)
    high = torch.full_like(start, most)
    free = reached(low)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = reached(middle)
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return torch.where(free, 0.0, high)


def probability(value: float | None, whose: str) -> float | None:
    """`value`, or an `InvalidGuideError` where it is no probability inside (0, 1)."""
    if value is not None and not 0 < value < 1:
        raise InvalidGuideError(f"the target of {whose} is {value}: use a probability between 0 and 1, such as 0.9")
    return value
