"""What a denoiser is: a vocabulary, a noise, a device and one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.noise import Noise
from redraft.denoiser.settings import Settings
from redraft.denoiser.step import Prompt, Step
from redraft.denoiser.vocabulary import Vocabulary

if TYPE_CHECKING:
    from redraft.denoiser.guide import Guide
    from redraft.denoiser.result import Result
    from redraft.denoiser.rewrite import Rewriting


class Denoiser(ABC):
    """A model that proposes a token for every position of a canvas at once.

    `max_length` is the longest canvas in tokens; `length` the canvas it writes when nothing says otherwise;
    `settings` its own decoding defaults; `conditions` the tags it takes, by kind, with their values. `block`: it
    writes so many positions at a time, left to right, and sees nothing behind them; None: it sees the whole canvas.
    """

    name: str
    vocabulary: Vocabulary
    noise: Noise
    device: torch.device
    max_length: int = 128
    length: int = 48
    settings: Settings = Settings()
    conditions: Mapping[str, tuple[str, ...]] = {}
    block: int | None = None

    @abstractmethod
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        """Logits [B, L, V] float32 for the canvas's positions; -inf at tokens that are never written.

        Where `block` is set the canvas ends with the block that is being written, and what the logits are in
        finished blocks does not matter.
        """

    def begin(self) -> Denoiser:
        """The denoiser of one run: an adapter that remembers something from step to step gives a fresh copy."""
        return self

    def carry(self, step: Step, bias: Tensor | None, temperature: float) -> Denoiser:
        """The denoiser of the next step, with what it takes over from this one (self-conditioning)."""
        return self

    def take(self, rows: Tensor) -> Denoiser:
        """The denoiser after row b became what row `rows[b]` was (int64 [B]): what it remembers moves along."""
        return self

    def longest(self, prompt: Prompt) -> int:
        """The longest canvas, in tokens, that fits behind a prompt."""
        return self.max_length

    def prepare(self, text: str, batch: int, condition: Mapping[str, str] | None = None) -> Prompt:
        """Encode a prompt for `batch` rows, specials off; raises for an unknown condition or character."""
        condition = dict(condition or {})
        for kind, value in condition.items():
            if kind not in self.conditions:
                known = ", ".join(self.conditions) or "none"
                raise InvalidGuideError(f"{self.name} has no condition {kind!r}; it takes: {known}")
            if value not in self.conditions[kind]:
                raise InvalidGuideError(f"{kind} is {value!r}: use one of {', '.join(self.conditions[kind])}")
        ids = self.vocabulary.encode(text) if text else []
        tokens = torch.tensor([ids] * batch, dtype=torch.int64, device=self.device).reshape(batch, len(ids))
        return Prompt(tokens, torch.ones_like(tokens, dtype=torch.bool), text, condition=condition)

    def write(self, guides: Guide | Sequence[Guide] = (), **options: Any) -> list[Result]:
        """Write texts under guides; see `redraft.denoiser.write` for the options."""
        from redraft.denoiser.write import write

        return write(self, guides, **options)

    def rewrite(self, text: str, guides: Guide | Sequence[Guide] = (), **options: Any) -> Rewriting:
        """Rewrite a text under guides, most of it kept; see `redraft.denoiser.rewrite` for the options."""
        from redraft.denoiser.rewrite import rewrite

        return rewrite(self, text, guides, **options)
