"""The canvas: the whole text at once, some positions open, some committed, some pinned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Canvas:
    """One text a row. Values are never edited in place.

    tokens [B, L] int64; open [B, L] bool: not yet accepted; pinned [B, L] bool: given by the caller, never
    open; confidence [B, L] float32: posterior marginal of a token when it was committed (pins 1, open 0).
    """

    tokens: Tensor
    open: Tensor
    pinned: Tensor
    confidence: Tensor

    @classmethod
    def blank(cls, batch: int, length: int, fill: int, device: torch.device | str = "cpu") -> Canvas:
        """An all-open canvas of `batch` rows and `length` positions that hold `fill` (the mask token)."""
        shape = (batch, length)
        return cls(
            tokens=torch.full(shape, fill, dtype=torch.int64, device=device),
            open=torch.ones(shape, dtype=torch.bool, device=device),
            pinned=torch.zeros(shape, dtype=torch.bool, device=device),
            confidence=torch.zeros(shape, dtype=torch.float32, device=device),
        )

    @property
    def committed(self) -> Tensor:
        """[B, L] int64: the token where committed, -1 where open."""
        return torch.where(self.open, -1, self.tokens)

    def pin(self, tokens: Tensor, where: Tensor) -> Canvas:
        """Fix `tokens` at `where` for the whole run: committed, never reopened."""
        return replace(
            self,
            tokens=torch.where(where, tokens, self.tokens),
            open=self.open & ~where,
            pinned=self.pinned | where,
            confidence=torch.where(where, 1.0, self.confidence),
        )

    def commit(self, draft: Tensor, where: Tensor, confidence: Tensor) -> Canvas:
        """Accept the draft at `where`; positions that are not open stay as they are."""
        where = where & self.open
        return replace(
            self,
            tokens=torch.where(where, draft, self.tokens),
            open=self.open & ~where,
            confidence=torch.where(where, confidence.to(self.confidence.dtype), self.confidence),
        )

    def reopen(self, where: Tensor) -> Canvas:
        """Open committed positions again, their tokens still in place; a pinned position is never reopened."""
        where = where & ~self.pinned & ~self.open
        return replace(self, open=self.open | where, confidence=torch.where(where, 0.0, self.confidence))

    def first(self, length: int) -> Canvas:
        """The canvas's first `length` positions."""
        if length == self.tokens.shape[1]:
            return self
        parts = (self.tokens, self.open, self.pinned, self.confidence)
        return Canvas(*(part[:, :length] for part in parts))

    def begin_with(self, part: Canvas) -> Canvas:
        """This canvas with `part` in the place of its first positions."""
        pairs = zip(
            (part.tokens, part.open, part.pinned, part.confidence),
            (self.tokens, self.open, self.pinned, self.confidence),
            strict=True,
        )
        return Canvas(*(torch.cat([new, old[:, new.shape[1] :]], dim=1) for new, old in pairs))

    def take(self, rows: Tensor) -> Canvas:
        """The canvas whose row b is this one's row `rows[b]` (int64 [B])."""
        return Canvas(self.tokens[rows], self.open[rows], self.pinned[rows], self.confidence[rows])
