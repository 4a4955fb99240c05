"""The release folder: what inference loads, plain `transformers` files and one `redraft.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import BertForMaskedLM

from redraft.denoiser.training.evaluate import Figures
from redraft.denoiser.training.rows import CANVAS
from redraft.denoiser.training.tokenizer import EOS, MASK, PAD, TextCodec

FORMAT = 1
DECODING: dict[str, Any] = {"steps": 64, "selection": {"name": "left-to-right"}, "temperature": 0.6}
DRAFTS = 8


def export(
    model: BertForMaskedLM,
    codec: TextCodec,
    folder: Path,
    *,
    held_out: Figures | None = None,
    training: Mapping[str, Any] | None = None,
    decoding: Mapping[str, Any] | None = None,
) -> Path:
    """Write config.json, model.safetensors (fp16), the tokenizer, redraft.json and figures.json."""
    folder.mkdir(parents=True, exist_ok=True)
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    weights = {
        name: value.detach().to(torch.float16).cpu().contiguous()
        for name, value in model.state_dict().items()
        if name not in tied and value.is_floating_point()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # safetensors makes it private
    config = {k: v for k, v in model.config.to_dict().items() if not k.startswith("_")}
    config |= {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "dtype": "float16",
        "mask_token_id": codec.mask,
    }
    _write(folder / "config.json", config)
    codec.save(folder / "tokenizer.json")
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "pad_token": PAD,
            "eos_token": EOS,
            "mask_token": MASK,
            "split_special_tokens": True,
            "clean_up_tokenization_spaces": False,
            "model_max_length": CANVAS,
        },
    )
    _write(folder / "redraft.json", card(codec, decoding or DECODING))
    figures = {
        "held_out": {
            kind: {rate: figure.as_dict() for rate, figure in by_rate.items()}
            for kind, by_rate in (held_out or {}).items()
        },
        "training": dict(training or {}),
    }
    _write(folder / "figures.json", figures)
    return folder


def card(codec: TextCodec, decoding: Mapping[str, Any]) -> dict[str, Any]:
    """What inference must know beyond the model: layout, special ids, decoding defaults."""
    return {
        "format": FORMAT,
        "noise": "absorbing",
        "layout": ["genre", "tone", "canvas"],
        "canvas": CANVAS,
        "special": {"pad": codec.pad, "eos": codec.eos, "mask": codec.mask},
        "genres": codec.genres,
        "tones": codec.tones,
        "attend_padding": True,
        "attend_room": False,
        "decoding": dict(decoding),
        "drafts": DRAFTS,
    }


def _write(file: Path, value: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=2, sort_keys=False) + "\n", encoding="utf-8")
