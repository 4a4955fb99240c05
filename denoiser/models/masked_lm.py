"""Any `transformers` masked language model as an absorbing denoiser."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from redraft.denoiser.models.pretrained import Pretrained, open_pretrained
from redraft.denoiser.models.sequence import OneSequence, Row

#: Families whose padded rows were seen to equal single ones; the others run rows of one length together.
PADDED = ("bert", "distilbert", "electra", "eurobert", "modernbert", "roberta", "xlm-roberta", "camembert")
#: These count positions behind the padding id, from the tokens themselves.
BEHIND_PAD = ("roberta", "xlm-roberta", "camembert")


class MaskedLM(OneSequence):
    """Prompt and canvas in one sequence between the model's own begin and end tokens; aligned logits.

    `model(input_ids=[B, N], attention_mask=[B, N]).logits` is [B, N, V]. Such a model has no EOS: it writes
    exactly the canvas, unless the vocabulary names one.
    """

    kind: str = ""

    def forward(self, row: Row) -> Tensor:
        seen = torch.ones_like(row.tokens) if row.seen is None else row.seen.long()
        more = {}
        if row.place is not None and self.kind not in BEHIND_PAD:
            more["position_ids"] = row.place
        logits: Tensor = self.model(input_ids=row.tokens, attention_mask=seen, **more).logits
        return logits


def from_pretrained(name: str, **options: Any) -> MaskedLM:
    """A masked language model by name or folder; the options are those of `redraft.denoiser.load`."""
    opened = open_pretrained(name, "AutoModelForMaskedLM", **options)
    tokenizer, config = opened.tokenizer, opened.config
    kind = str(config.get("model_type", ""))
    denoiser = MaskedLM(
        opened.network,
        opened.vocabulary(mask_id=tokenizer.mask_token_id),
        name=name,
        before=_first(tokenizer.cls_token_id, tokenizer.bos_token_id),
        after=_first(tokenizer.sep_token_id, tokenizer.eos_token_id),
        max_positions=_positions(opened, kind),
        filler=config.get("pad_token_id") if kind in BEHIND_PAD else None,
        template=opened.template,
    )
    denoiser.kind = kind
    denoiser.pads = kind in PADDED
    return denoiser


def _first(*ids: int | None) -> list[int]:
    return [token for token in ids if token is not None][:1]


def _positions(opened: Pretrained, kind: str) -> int:
    positions = opened.number("max_position_embeddings", default=512)
    pad = opened.config.get("pad_token_id")
    return positions - int(pad) - 1 if kind in BEHIND_PAD and pad is not None else positions
