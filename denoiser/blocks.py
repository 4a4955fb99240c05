"""Blocks: which positions may be committed at a step, and what a text can still become behind them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.language import Language


@dataclass(frozen=True)
class Frame:
    """What a step may do: commit at `where`, reopen at `block` [B, L] bool, the row's current block without what its
    end has closed behind it; `left` [B] of the block's `steps` [B] remain, this one too."""

    where: Tensor
    block: Tensor
    left: Tensor
    steps: Tensor

    def quota(self, free: Tensor, provisional: bool) -> Tensor:
        """[B]: how many of the `free` positions to commit now, so that all are committed by the last step.

        Even shares of what is left; where nothing committed is final, the share of all that is due by now.
        """
        count = free.sum(-1)
        if provisional:
            return -(-count * (self.steps - self.left + 1) // self.steps)
        return -(-count // self.left)


@dataclass(frozen=True)
class Window:
    """A part of a run: the positions [first, end) of the canvas, at the steps `steps`; number `index` of its kind."""

    index: int
    first: int
    end: int
    steps: range

    def shown(self, part: Tensor, before: Tensor) -> Tensor:
        """Values [B, end]: those of the positions from `first` on [B, n], with those of `before` in front."""
        if not self.first and part.shape[1] == self.end:
            return part
        return torch.cat([before[:, : self.first], part[:, : self.end - self.first]], dim=1)


@dataclass(frozen=True)
class Schedule:
    """`steps` forward passes over a canvas of `length` tokens, in blocks of `block` tokens (None: one block).

    Block j of n has the steps from floor(j * steps / n) to floor((j + 1) * steps / n). A row that is done with
    its block early goes on to the next one. Raises `InvalidGuideError` for fewer steps than blocks.
    """

    steps: int
    length: int
    block: int | None = None

    @classmethod
    def of(cls, steps: int, length: int, asked: int | None, own: int | None) -> Schedule:
        """The schedule for a caller's block length and the denoiser's own; they must not differ."""
        if asked is not None and own is not None and asked != own:
            raise InvalidGuideError(
                f"block_length is {asked} and the denoiser writes blocks of {own}: leave block_length out"
            )
        schedule = cls(steps, length, asked if own is None else own)
        if schedule.blocks > steps:
            raise InvalidGuideError(
                f"steps is {steps} and a canvas of {length} tokens has {schedule.blocks} blocks of {schedule.block}: "
                "use at least one step a block"
            )
        return schedule

    @property
    def blocks(self) -> int:
        """n, the number of blocks; the last may be shorter."""
        return 1 if self.block is None else max(1, -(-self.length // self.block))

    def starts(self) -> list[int]:
        """The step that each block starts with, and the number of steps: n + 1 numbers."""
        return [j * self.steps // self.blocks for j in range(self.blocks + 1)]

    def windows(self, apart: bool) -> Iterator[Window]:
        """The run in one window, or block by block where the denoiser does not see ahead (`apart`)."""
        if not apart or self.block is None:
            yield Window(0, 0, self.length, range(self.steps))
            return
        starts = self.starts()
        for j in range(self.blocks):
            end = min((j + 1) * self.block, self.length)
            yield Window(j, j * self.block, end, range(starts[j], starts[j + 1]))

    def frame(self, canvas: Canvas, index: int, eos_id: int | None) -> Frame:
        """Each row's current block, the first with an open position, and what its end has closed behind it."""
        rows, length = canvas.open.shape
        device = canvas.open.device
        if self.block is None:
            whole = torch.full((rows,), self.steps, device=device)
            everywhere = torch.ones_like(canvas.open)
            return Frame(everywhere, everywhere, whole - index, whole)
        number = torch.arange(length, device=device) // self.block
        last = int(self.blocks) - 1
        current = torch.where(canvas.open, number, last).amin(-1)
        starts = torch.tensor(self.starts(), device=device)
        begin, end = starts[current], starts[current + 1]
        where = block = number == current[:, None]
        if eos_id is not None:
            where = where | ended(canvas.tokens, ~canvas.open, eos_id)
        left = (end - index).clamp_min(1)
        return Frame(where, block, left, torch.maximum(end - begin, left))


def ended(tokens: Tensor, held: Tensor, eos_id: int) -> Tensor:
    """bool [B, L]: from each row's first EOS token that is `held` [B, L] on; behind it is padding, without a choice."""
    return ((tokens == eos_id) & held).cumsum(-1) > 0


def follow(language: Language, prefix: Tensor) -> Language:
    """The language of what may come behind `prefix` [B, n]: the same automaton from the state it leads to."""
    state = language.start
    for tokens in prefix.unbind(1):
        state = language.moves(state).gather(1, language.classes[tokens][:, None]).squeeze(1)
    return language.begin(state)


def ahead(weights: Tensor, open: Tensor, remaining: int, ends: Sequence[int], greedy: bool) -> Tensor:
    """A block's log-weights [B, l, V] and, for the `remaining` positions behind it, a guess: [B, l + remaining, V].

    Nobody has seen those positions. The guess takes them for independent draws from the mean of the block's open
    positions' distributions over text tokens; with tokens that close a text (`ends`: EOS, padding) the end is
    equally likely anywhere. So a block's draft weighs what the rest of the canvas can still become and how likely
    that is: a keyword that may stand in any of n blocks falls into this one once in n times, not at the last moment.
    """
    if not remaining:
        return weights
    closing = torch.tensor(list(ends), dtype=torch.int64, device=weights.device)
    text = weights.index_fill(-1, closing, -torch.inf).log_softmax(-1)
    mean = (
        text.masked_fill(~open[..., None], -torch.inf).logsumexp(1)
        - open.sum(-1, keepdim=True).clamp_min(1).log()
    )
    if greedy:
        mean = mean - mean.amax(-1, keepdim=True)
    for number, token in enumerate(ends):
        mean[:, token] = 0.0 if greedy or number else -math.log(remaining)
    return torch.cat([weights, mean[:, None].expand(-1, remaining, -1)], dim=1)
