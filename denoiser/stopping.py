"""When a draft is good enough to be accepted whole, before the steps are over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.selection.base import Proposal


class Stop(ABC):
    """A policy that ends a row early. It is stateless; the loop counts for how long a draft has stood."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, proposal: Proposal, stood: Tensor, open: Tensor) -> Tensor:
        """bool [B]: rows whose whole draft is accepted now.

        `stood` [B] int64: for how many steps the draft has been the same; `open` [B, L]: what may be committed.
        """


@dataclass(frozen=True)
class Patience(Stop):
    """Stop when the draft has not changed for `unchanged` steps and the mean entropy is below `entropy` nats.

    The entropy is the denoiser's own (before temperature and guidance), over the positions that are still open.
    """

    name: ClassVar[str] = "patience"
    unchanged: int = 1
    entropy: float = 0.005

    def __post_init__(self) -> None:
        if isinstance(self.unchanged, bool) or not isinstance(self.unchanged, int) or self.unchanged < 0:
            raise InvalidGuideError(f"Patience(unchanged={self.unchanged!r}): use a whole number from 0")
        if not 0 < self.entropy < float("inf"):
            raise InvalidGuideError(f"Patience(entropy={self.entropy!r}): use a number of nats above 0")

    def __call__(self, proposal: Proposal, stood: Tensor, open: Tensor) -> Tensor:
        total = proposal.entropy.double().masked_fill(~open, 0.0).sum(-1)
        return (stood >= self.unchanged) & (total < self.entropy * open.sum(-1))


STOPS: dict[str, type[Stop]] = {Patience.name: Patience}
