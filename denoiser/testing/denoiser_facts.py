"""What the checks of a denoiser look at."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.step import Prompt
from redraft.denoiser.testing.moments import mapped

#: Texts that are special tokens of some tokenizer; here they are text.
MARKERS = (
    "<mask>",
    "[MASK]",
    "<|mask|>",
    "<|mdm_mask|>",
    "</s>",
    "<s>",
    "[SEP]",
    "[CLS]",
    "<pad>",
    "<|endoftext|>",
)


class DenoiserFacts:
    """A denoiser, a prompt for it and canvases with some positions committed.

    `text` is plain text that its vocabulary must be able to write; `tolerance` is how far log-probabilities
    may differ between a batch and its rows alone, in nats (kernels round differently).
    """

    batch = 3

    def __init__(self, denoiser: Denoiser, text: str, tolerance: float) -> None:
        self.denoiser, self.text, self.tolerance = denoiser, text, tolerance

    @cached_property
    def length(self) -> int:
        """Tokens of the canvases."""
        return min(9, self.denoiser.max_length)

    def prompt(self, batch: int | None = None) -> Prompt:
        """The text as a prompt."""
        return self.denoiser.prepare(self.text, self.batch if batch is None else batch)

    def blank(self, batch: int, length: int) -> Canvas:
        """An open canvas."""
        return self.denoiser.noise.blank(length, Randomness(range(batch), self.denoiser.device))

    @cached_property
    def canvas(self) -> Canvas:
        """A canvas with other tokens committed in each row, and its last position open."""
        blank = self.blank(self.batch, self.length)
        written = [token for token, raw in enumerate(self.denoiser.vocabulary.token_bytes) if raw]
        generator = torch.Generator().manual_seed(1)
        picked = torch.randint(len(written), (self.batch, self.length), generator=generator)
        tokens = torch.tensor(written)[picked].to(self.denoiser.device)
        where = torch.rand(self.batch, self.length, generator=generator).to(self.denoiser.device) < 0.4
        where[:, -1] = False
        return blank.commit(tokens, where, torch.ones_like(where, dtype=torch.float32))

    @cached_property
    def logits(self) -> Tensor:
        """What the denoiser says of the canvas behind the prompt."""
        return self.ask(self.canvas)

    def ask(self, canvas: Canvas) -> Tensor:
        """The denoiser's answer to a copy of a canvas, behind the prompt."""
        return self.denoiser(mapped(canvas, torch.clone), self.prompt(len(canvas.tokens)))

    @cached_property
    def never(self) -> Tensor:
        """bool [V]: tokens that are never written; all without bytes but EOS and, with it, padding."""
        vocabulary = self.denoiser.vocabulary
        ends = set() if vocabulary.eos_id is None else {vocabulary.eos_id, vocabulary.pad_id}
        barred = [not raw and token not in ends for token, raw in enumerate(vocabulary.token_bytes)]
        return torch.tensor(barred, device=self.denoiser.device)

    def row(self, number: int) -> Canvas:
        """One row of the canvas alone."""
        parts = {
            name: getattr(self.canvas, name)[number : number + 1]
            for name in ("tokens", "open", "pinned", "confidence")
        }
        return replace(self.canvas, **parts)
