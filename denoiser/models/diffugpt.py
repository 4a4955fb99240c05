"""DiffuGPT: a GPT-2 that was taught to denoise; attention in both directions, logits shifted by one.

Facts: the checkpoint holds GPT-2's body under `denoise_model.` and its tied embedding as
`embed_tokens.weight`; the tokenizer names the mask token; position i is predicted at i - 1, behind a begin
token. No code of the checkpoint's is needed: it is GPT-2 with the causal mask taken off.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from redraft.denoiser.errors import UnsupportedModelError
from redraft.denoiser.models.pretrained import (
    Pretrained,
    attempt,
    find_tokenizer,
    read_config,
)
from redraft.denoiser.models.sequence import OneSequence, Row

WEIGHTS = ("model.safetensors", "pytorch_model.bin")


class DiffuGPT(OneSequence):
    """GPT-2 under a mask [B, 1, N, N] that hides padding alone; the logits of the token at i stand at i - 1."""

    shift: ClassVar[int] = 1
    pads = True

    def forward(self, row: Row) -> Tensor:
        batch, width = row.tokens.shape
        seen = torch.ones_like(row.tokens, dtype=torch.bool) if row.seen is None else row.seen
        mask = seen[:, None, None, :].expand(batch, 1, width, width)
        answer = self.model(
            input_ids=row.tokens, attention_mask=mask, position_ids=row.place, use_cache=False
        )
        logits: Tensor = answer.logits
        return logits


def from_pretrained(
    name: str,
    *,
    device: torch.device,
    dtype: torch.dtype,
    trust_remote_code: bool = False,
    quantization: str | None = None,
    device_map: Any = None,
) -> DiffuGPT:
    """A DiffuGPT by name or folder; small enough that quantization and a device map are refused."""
    if quantization is not None or device_map is not None:
        raise UnsupportedModelError(
            f"{name!r} is a DiffuGPT, which Redraft loads whole: leave quantization and device_map out"
        )
    config = read_config(name)
    tokenizer = find_tokenizer(name, "gpt2", None, trust_remote_code)
    network = attempt(f"the weights of {name!r}", lambda: _network(name, config, dtype))
    opened = Pretrained(name, config, tokenizer, network.to(device))
    mask = tokenizer.mask_token_id
    rows = int(network.get_input_embeddings().weight.shape[0])
    return DiffuGPT(
        opened.network,
        opened.vocabulary(mask_id=rows - 1 if mask is None else mask, eos=True),
        name=name,
        before=opened.begin(),
        max_positions=opened.number("n_positions", default=1024),
        template=opened.template,
    )


def _network(name: str, config: Mapping[str, Any], dtype: torch.dtype) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    stored = _stored(name)
    embedding = stored["embed_tokens.weight"]
    body = {
        "transformer." + key.removeprefix("denoise_model."): value
        for key, value in stored.items()
        if key.startswith("denoise_model.") and not key.endswith((".attn.bias", ".attn.masked_bias"))
    }
    body |= {"transformer.wte.weight": embedding, "lm_head.weight": stored.get("lm_head.weight", embedding)}
    settings = {key: value for key, value in config.items() if key not in ("architectures", "auto_map")}
    own = GPT2Config(**{**settings, "vocab_size": embedding.shape[0]})
    network = GPT2LMHeadModel._from_config(own, attn_implementation="sdpa")  # type: ignore[no-untyped-call]
    network.load_state_dict(body)
    return network.to(dtype)


def _stored(name: str) -> dict[str, Tensor]:
    from safetensors.torch import load_file
    from transformers.utils.hub import cached_file

    for file in WEIGHTS:
        path = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        if path is None:
            continue
        if Path(path).suffix == ".safetensors":
            return load_file(path)
        weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
        return weights
    raise UnsupportedModelError(f"{name!r} holds none of {', '.join(WEIGHTS)}")
