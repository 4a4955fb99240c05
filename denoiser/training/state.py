"""Everything a run needs to go on exactly where it stopped, written atomically."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM

from redraft.denoiser.training.rows import Position

LAST = "checkpoint.pt"
BEFORE_DECAY = "pre-decay.pt"


class Ema:
    """Running mean of the weights over about a twentieth of the run so far, at most `horizon` steps.

    mean <- mean + (weights - mean) * every / min(horizon, step / 20), at every `every`-th step.
    """

    def __init__(self, model: nn.Module, *, horizon: int = 400, every: int = 4) -> None:
        self.horizon, self.every = horizon, every
        self.weights = [p.detach().clone() for p in model.parameters()]

    def update(self, model: nn.Module, step: int) -> None:
        if step % self.every:
            return
        share = min(1.0, self.every / max(1.0, min(self.horizon, step / 20)))
        torch._foreach_lerp_(self.weights, [p.detach() for p in model.parameters()], share)

    def swap(self, model: nn.Module) -> None:
        """Exchange the model's weights with the mean; a second call restores them."""
        with torch.no_grad():
            for mean, parameter in zip(self.weights, model.parameters(), strict=True):
                held = parameter.detach().clone()
                parameter.copy_(mean)
                mean.copy_(held)


@dataclass
class Run:
    """Model, optimiser, mean weights and counters; the data position is the data's whole random state."""

    model: BertForMaskedLM
    optimiser: torch.optim.Optimizer
    ema: Ema
    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    position: Position = field(default_factory=Position)

    def save(self, file: Path) -> None:
        state = {
            "config": self.model.config.to_dict(),
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "ema": self.ema.weights,
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "position": asdict(self.position),
            "torch_rng": torch.get_rng_state(),
        }
        temporary = file.with_name(file.name + ".part")
        with temporary.open("wb") as handle:
            torch.save(state, handle)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(file)

    def restore(self, file: Path) -> None:
        state = read_state(file)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.ema.weights = [mean.to(self.model.device) for mean in state["ema"]]
        self.step, self.tokens, self.seconds = state["step"], state["tokens"], state["seconds"]
        self.position = Position(**state["position"])
        torch.set_rng_state(state["torch_rng"])


def read_state(file: Path) -> dict[str, Any]:
    """A checkpoint, tensors and plain values only (no pickled objects are run)."""
    state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
    return state


def model_in(file: Path, *, ema: bool = False) -> BertForMaskedLM:
    """The model of a checkpoint, with the raw or the mean weights."""
    state = read_state(file)
    model = BertForMaskedLM(BertConfig.from_dict(_plain(state["config"])))
    model.load_state_dict(state["model"])
    if ema:
        with torch.no_grad():
            for parameter, mean in zip(model.parameters(), state["ema"], strict=True):
                parameter.copy_(mean)
    return model


def adamw(model: nn.Module, *, weight_decay: float) -> torch.optim.Optimizer:
    """AdamW, matrices decayed, biases and norms not."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    groups: Iterable[dict[str, Any]] = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), fused=True)


def _plain(config: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in config.items() if k not in {"dtype", "torch_dtype"}}
