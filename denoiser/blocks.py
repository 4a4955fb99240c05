"""Blocks: which positions may be committed at a step, and what a text can still become behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.language import Language, allowed_classes


@dataclass(frozen=True)
class Frame:
    """What a step may do: commit `where` [B, L] bool, with `left` [B] of the block's `steps` [B] to go, this one included."""

    where: Tensor
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
    """A part of a run: the canvas up to position `end`, at the steps `steps`; number `index` of its kind."""

    index: int
    end: int
    steps: range


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
            yield Window(0, self.length, range(self.steps))
            return
        starts = self.starts()
        for j in range(self.blocks):
            yield Window(j, min((j + 1) * self.block, self.length), range(starts[j], starts[j + 1]))

    def frame(self, canvas: Canvas, index: int, eos_id: int | None) -> Frame:
        """Each row's current block, the first with an open position, and what its end has closed behind it."""
        rows, length = canvas.open.shape
        device = canvas.open.device
        if self.block is None:
            whole = torch.full((rows,), self.steps, device=device)
            return Frame(torch.ones_like(canvas.open), whole - index, whole)
        number = torch.arange(length, device=device) // self.block
        last = int(self.blocks) - 1
        current = torch.where(canvas.open, number, last).amin(-1)
        starts = torch.tensor(self.starts(), device=device)
        begin, end = starts[current], starts[current + 1]
        where = number == current[:, None]
        if eos_id is not None:
            where = where | (((canvas.tokens == eos_id) & ~canvas.open).cumsum(-1) > 0)
        left = (end - index).clamp_min(1)
        return Frame(where, left, torch.maximum(end - begin, left))


def completable(language: Language, rest: Tensor) -> Language:
    """The language of prefixes: accepted where the positions behind them can end in the language.

    `rest` [B, n] int64 holds the pinned tokens of those positions and -1 where any token may stand.

        F_n = F;  F_i = {q : delta(q, v) in F_{i+1} for some token v that position i may take}

    A word that ends in F_0 has a completion, so whoever writes one and goes on from its state never meets a
    dead end. Rows with different pins get copies of the automaton.
    """
    free = language.size > 0
    if bool((rest < 0).all()):
        accept = language.accept
        for _ in range(rest.shape[1]):
            before, accept = accept, accept[language.delta[:, free]].any(-1)
            if torch.equal(before, accept):
                break
        return _accepting(language, accept)
    held, row = torch.unique(rest, dim=0, return_inverse=True)
    allowed = allowed_classes(language, held)
    finish = language.accept.expand(len(held), -1)
    for i in range(rest.shape[1] - 1, -1, -1):
        finish = (finish[:, language.delta] & allowed[:, i, None, :]).any(-1)
    offset = torch.arange(len(held), device=rest.device) * language.states
    delta = (language.delta + offset[:, None, None]).flatten(0, 1)
    copies = Language(delta, language.classes, finish.flatten(), language.start + offset[row])
    return _accepting(copies, copies.accept, language)


def _accepting(language: Language, accept: Tensor, like: Language | None = None) -> Language:
    """The automaton with other accepting states; what does not depend on them is kept."""
    ahead = Language(language.delta, language.classes, accept, language.start)
    for name in ("size", "segments"):
        ahead.__dict__[name] = getattr(like or language, name)
    return ahead
