"""Dream and DiffuCoder: masked diffusion whose logits are shifted by one position; remote code.

Facts: `DreamModel(input_ids, attention_mask, position_ids).logits` is [B, N, V], and position i is predicted
at i - 1. The attention mask is the string "full", or bool [B, 1, N, N] with padding hidden and positions
counted from the first real token. The mask is `<|mask|>`, id 151666 (config `mask_token_id`); an answer of
the instruct model ends in `<|im_end|>` before `<|endoftext|>`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from redraft.denoiser.models.pretrained import open_pretrained
from redraft.denoiser.models.sequence import OneSequence, Row

MASK = "<|mask|>"
ENDS = ("<|im_end|>",)


class Dream(OneSequence):
    """`model(tokens, mask, positions).logits`; the logits of the token at i stand at i - 1."""

    shift: ClassVar[int] = 1
    pads = True
    length = 128

    def forward(self, row: Row) -> Tensor:
        if row.seen is None:
            full: Tensor = self.model(row.tokens, "full", None).logits
            return full
        batch, width = row.tokens.shape
        # padding is hidden as a key only: a query that sees nothing would be NaN in some attention kernels
        mask = row.seen[:, None, None, :].expand(batch, 1, width, width)
        logits: Tensor = self.model(row.tokens, mask, row.place).logits
        return logits


def from_pretrained(name: str, **options: Any) -> Dream:
    """A Dream or DiffuCoder by name or folder; the options are those of `redraft.denoiser.load`."""
    opened = open_pretrained(name, "AutoModel", slow="Qwen2Tokenizer", **options)
    return Dream(
        opened.network,
        opened.vocabulary(mask_id=opened.token("mask_token_id", MASK), eos=True),
        name=name,
        before=opened.begin(),
        max_positions=opened.number("max_position_embeddings", default=2048),
        ends=opened.known(ENDS),
        template=opened.template,
    )
