"""LLaDA: masked diffusion with aligned logits; prompt and canvas in one sequence; remote code.

Facts: `LLaDAModelLM(input_ids, attention_mask=None).logits` is [B, N, V]; the mask is `<|mdm_mask|>`, id
126336 (config `mask_token_id`); some revisions of the code ignore the attention mask, so rows are never
padded: those of one length run together and the mask is left out. An answer ends in `<|eot_id|>` and is
filled up with `<|endoftext|>`: both count as EOS.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from redraft.denoiser.models.pretrained import open_pretrained
from redraft.denoiser.models.sequence import OneSequence, Row

MASK = "<|mdm_mask|>"
ENDS = ("<|eot_id|>",)


class LLaDA(OneSequence):
    """`model(input_ids=[B, N]).logits` [B, N, V], aligned; EOS then padding to the canvas's end."""

    length = 128

    def forward(self, row: Row) -> Tensor:
        logits: Tensor = self.model(input_ids=row.tokens).logits
        return logits


def from_pretrained(name: str, **options: Any) -> LLaDA:
    """A LLaDA by name or folder; the options are those of `redraft.denoiser.load`."""
    opened = open_pretrained(name, "AutoModel", **options)
    return LLaDA(
        opened.network,
        opened.vocabulary(mask_id=opened.token("mask_token_id", MASK), eos=True),
        name=name,
        before=opened.begin(),
        max_positions=opened.number("max_sequence_length", "max_position_embeddings", default=4096),
        ends=opened.known(ENDS),
        template=opened.template,
    )
