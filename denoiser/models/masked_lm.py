"""Any `transformers` masked language model as an absorbing denoiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import UnsupportedModelError
from redraft.denoiser.noise import Absorbing
from redraft.denoiser.step import Prompt
from redraft.denoiser.vocabulary import Vocabulary


class MaskedLM(Denoiser):
    """Prompt and canvas in one sequence between the model's own begin and end tokens; aligned logits.

    `model(input_ids=[B, N], attention_mask=[B, N]).logits` is [B, N, V]. Such a model has no EOS: it writes
    exactly the canvas, unless the vocabulary names one.
    """

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary,
        *,
        name: str,
        before: Sequence[int] = (),
        after: Sequence[int] = (),
        max_positions: int = 512,
    ) -> None:
        if vocabulary.mask_id is None:
            raise UnsupportedModelError(f"{name} has no mask token: a masked language model needs one")
        self.name = name
        self.model = model.eval()
        self.vocabulary = vocabulary
        self.noise = Absorbing(vocabulary.mask_id)
        self.device = next(model.parameters()).device
        self._before = torch.tensor(list(before), dtype=torch.int64, device=self.device)
        self._after = torch.tensor(list(after), dtype=torch.int64, device=self.device)
        self._positions = max_positions
        self.max_length = max_positions - len(before) - len(after)
        written = {vocabulary.eos_id, vocabulary.pad_id if vocabulary.eos_id is not None else None}
        never = [k for k, raw in enumerate(vocabulary.token_bytes) if not raw and k not in written]
        self._never = torch.tensor(never, dtype=torch.int64, device=self.device)

    def lead(self, prompt: Prompt) -> Tensor:
        """[B, N] tokens before the canvas."""
        batch = prompt.tokens.shape[0]
        return torch.cat([self._before.expand(batch, -1), prompt.tokens], dim=1)

    def longest(self, prompt: Prompt) -> int:
        return min(self.max_length, self._positions - self.lead(prompt).shape[1] - len(self._after))

    @torch.inference_mode()
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        batch, length = canvas.tokens.shape
        lead = self.lead(prompt)
        tokens = torch.cat([lead, canvas.tokens, self._after.expand(batch, -1)], dim=1)
        seen = torch.ones_like(tokens)
        seen[:, lead.shape[1] - prompt.tokens.shape[1] : lead.shape[1]] = prompt.mask.long()
        logits: Tensor = self.model(input_ids=tokens, attention_mask=seen).logits
        canvas_logits = logits[:, lead.shape[1] : lead.shape[1] + length, : len(self.vocabulary)].float()
        return canvas_logits.index_fill(-1, self._never, -torch.inf)
