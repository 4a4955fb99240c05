"""MDLM: masked diffusion with a noise level as second input; GPT-2 vocabulary plus a mask; remote code.

Facts: `MDLM(input_ids, timesteps=[B], return_dict=True).logits` is [B, N, V], aligned, with no attention mask,
so rows of one length run together. `timesteps` is the noise level sigma; where the config's
`time_conditioning` is off the model ignores it. The mask is the last token of the vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from redraft.denoiser.models.pretrained import open_pretrained
from redraft.denoiser.models.sequence import OneSequence, Row

NOISE_FLOOR = 1e-3  # of the log-linear schedule


class MDLM(OneSequence):
    """sigma = -log(1 - (1 - 1e-3) t), t the share of the canvas that is open; 0 without time conditioning."""

    conditioned: bool = False

    def forward(self, row: Row) -> Tensor:
        sigma = -torch.log1p(-(1 - NOISE_FLOOR) * row.open)
        sigma = sigma if self.conditioned else torch.zeros_like(sigma)
        logits: Tensor = self.model(input_ids=row.tokens, timesteps=sigma, return_dict=True).logits
        return logits


def from_pretrained(name: str, **options: Any) -> MDLM:
    """An MDLM by name or folder; its tokenizer is GPT-2's where the folder has none."""
    opened = open_pretrained(name, "AutoModelForMaskedLM", tokenizer="gpt2", **options)
    size = opened.number("vocab_size", default=50258)
    denoiser = MDLM(
        opened.network,
        opened.vocabulary(mask_id=opened.config.get("mask_token_id", size - 1), eos=True),
        name=name,
        before=[opened.tokenizer.eos_token_id],
        max_positions=opened.number("model_length", default=1024),
        template=opened.template,
    )
    denoiser.conditioned = bool(opened.config.get("time_conditioning", False))
    return denoiser
