"""A BERT-shaped encoder on `torch.nn.TransformerEncoder`, reading the weights of `transformers`' BertForMaskedLM.

The embedded denoiser starts without importing transformers, which takes longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from redraft.denoiser.errors import UnsupportedModelError


class Encoder(nn.Module):
    """logits [B, N, V] = decoder(LN(gelu(W h))), h = post-norm transformer of tokens [B, N] and positions."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width, size = int(config["hidden_size"]), int(config["vocab_size"])
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise UnsupportedModelError(
                f"config.json says {config.get('model_type')!r} with {config.get('hidden_act')!r}: "
                "a trained folder holds a BERT with gelu"
            )
        epsilon = float(config["layer_norm_eps"])
        self.heads = int(config["num_attention_heads"])
        self.max_positions = int(config["max_position_embeddings"])
        # made from given tensors, they are not initialised: that would import a compiler only to fill a meta tensor
        self.tokens = nn.Embedding.from_pretrained(torch.empty(size, width))  # type: ignore[no-untyped-call]
        self.positions = nn.Embedding.from_pretrained(torch.empty(self.max_positions, width))  # type: ignore[no-untyped-call]
        self.norm = nn.LayerNorm(width, epsilon)
        layer = nn.TransformerEncoderLayer(
            width,
            self.heads,
            int(config["intermediate_size"]),
            dropout=0.0,
            activation="gelu",
            layer_norm_eps=epsilon,
            batch_first=True,
        )
        self.body = nn.TransformerEncoder(layer, int(config["num_hidden_layers"]), enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, epsilon))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(
        self, tokens: Tensor, skip: int = 0, seen: Tensor | None = None, place: Tensor | None = None
    ) -> Tensor:
        """Logits of the positions from `skip` on; `seen` [B, N, N] bool: what each position sees
        beside itself (None: all), `place` [B, N] counts the positions of each row that are not padding."""
        if place is None:
            place = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.norm(self.tokens(tokens) + self.positions(place))
        hidden = self.body(hidden, mask=None if seen is None else self._unseen(seen))
        return self.logits(hidden[:, skip:])

    def _unseen(self, seen: Tensor) -> Tensor:
        """bool [B * heads, N, N]: where a position does not look."""
        itself = torch.eye(seen.shape[1], dtype=torch.bool, device=seen.device)
        return (~(seen | itself)).repeat_interleave(self.heads, dim=0)

    def logits(self, hidden: Tensor) -> Tensor:
        """[B, n, V] of the body's hidden states [B, n, width]."""
        return nn.functional.linear(self.head(hidden), self.tokens.weight, self.bias)


def read_encoder(config: Mapping[str, Any], weights: Path, dtype: torch.dtype) -> Encoder:
    """Build an encoder and fill it from a safetensors file in transformers' names."""
    stored = load_file(weights)
    with torch.device("meta"):
        encoder = Encoder(config)
    try:
        state = dict(_renamed(stored, int(config["num_hidden_layers"])))
        encoder.load_state_dict({name: value.to(dtype) for name, value in state.items()}, assign=True)
    except (KeyError, RuntimeError) as error:
        raise UnsupportedModelError(
            f"{weights} does not hold the model of its config.json: {error}"
        ) from error
    return encoder.eval().requires_grad_(False)


def _renamed(stored: Mapping[str, Tensor], layers: int) -> Mapping[str, Tensor]:
    base, head = "bert.embeddings.", "cls.predictions."
    state = {
        "tokens.weight": stored[base + "word_embeddings.weight"],
        # every token is of type 0
        "positions.weight": stored[base + "position_embeddings.weight"].float()
        + stored[base + "token_type_embeddings.weight"][0].float(),
        "bias": stored[head + "bias"],
    }
    pairs = {
        base + "LayerNorm": "norm",
        head + "transform.dense": "head.0",
        head + "transform.LayerNorm": "head.2",
    }
    for k in range(layers):
        theirs, ours = f"bert.encoder.layer.{k}.", f"body.layers.{k}."
        pairs |= {
            theirs + "attention.output.dense": ours + "self_attn.out_proj",
            theirs + "attention.output.LayerNorm": ours + "norm1",
            theirs + "intermediate.dense": ours + "linear1",
            theirs + "output.dense": ours + "linear2",
            theirs + "output.LayerNorm": ours + "norm2",
        }
        for part in ("weight", "bias"):
            joined = [stored[f"{theirs}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            state[f"{ours}self_attn.in_proj_{part}"] = torch.cat(joined)
    for name, ours in pairs.items():
        for part in ("weight", "bias"):
            state[f"{ours}.{part}"] = stored[f"{name}.{part}"]
    return state
