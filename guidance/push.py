"""The smallest push that makes an expected draft reach a goal."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser import InvalidGuideError, Step

MOST = 5.0
"""No push is larger: past that a text is a list of words."""
GRID, ROUNDS = 16, 3
"""The push is known to MOST / GRID**ROUNDS."""


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
        vocabulary = step.denoiser.vocabulary
        logits = step.logits
        if step.temperature not in (0, 1):
            logits = logits / step.temperature
        p = logits.softmax(-1)
        alive = step.canvas.open.to(p.dtype)
        q = p if among is None else p.index_select(-1, among)
        if vocabulary.eos_id is not None:
            ends = [token for token in {vocabulary.eos_id, vocabulary.pad_id} if token is not None]
            text = (1.0 - p[..., ends].sum(-1)).clamp_min(1e-6)
            alive, q = alive * text, q / text[..., None]
            if among is None:
                q = q.index_fill(-1, torch.tensor(ends, device=q.device), 0.0)
        return cls(q, (1.0 - q.sum(-1)).clamp_min(0.0), alive)

    def expected(self, push: Tensor, bias: Tensor, score: Tensor) -> Tensor:
        """[B, G]: sum over positions of alive * E[score] under q exp(push * bias) / Z, for G pushes a row.

        `push` [B, G], `bias` and `score` [B or 1, L or 1, V']; the rest of the tokens has bias and score 0.
        """
        if bias.shape[1] == 1 and score.shape[1] == 1:  # one matrix product for all pushes
            lift = (push[:, :, None] * bias).exp()  # [B, G, V']
            both = torch.cat([lift, lift * score], dim=1).transpose(1, 2)  # [B, V', 2G]
            mass, total = (self.q @ both).chunk(2, dim=-1)  # [B, L, G]
        else:
            lifted = self.q[:, :, None] * (push[:, None, :, None] * bias[:, :, None]).exp()  # [B, L, G, V']
            mass, total = lifted.sum(-1), (lifted * score[:, :, None]).sum(-1)
        mean = total / (self.rest[..., None] + mass).clamp_min(1e-30)
        return (self.alive[..., None] * mean).sum(1)


def smallest_push(
    draft: Draft, bias: Tensor, score: Tensor, start: Tensor, goal: float, most: float = MOST
) -> Tensor:
    """[B]: the smallest s in [0, most] with start + expected(s) >= goal; `most` where none is.

    `start` [B] and `goal` in the score's unit. Where score grows with bias the expectation grows with s, and the
    first of GRID equal parts that reaches the goal is searched again, ROUNDS times.
    """
    low = torch.zeros_like(start)
    width = torch.full_like(start, most)
    part = torch.arange(GRID + 1, device=start.device, dtype=start.dtype) / GRID
    for turn in range(ROUNDS):
        push = low[:, None] + width[:, None] * part  # [B, GRID + 1]
        reached = start[:, None] + draft.expected(push, bias, score) >= goal
        first = torch.where(reached.any(-1), reached.long().argmax(-1), GRID)
        if turn == 0:
            free = reached[:, 0]
        low = low + width * (first - 1).clamp_min(0) / GRID
        width = width / GRID
    return torch.where(free, 0.0, low + width)


def probability(value: float | None, whose: str) -> float | None:
    """`value`, or an `InvalidGuideError` where it is no probability inside (0, 1)."""
    if value is not None and not 0 < value < 1:
        raise InvalidGuideError(
            f"the target of {whose} is {value}: use a probability between 0 and 1, such as 0.9"
        )
    return value
