"""Moments of a run in which a bound guide's hooks are called, and what they answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from redraft.denoiser.guide import Bound
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.step import Step

T = TypeVar("T")


@dataclass(frozen=True)
class Moment:
    """A step with the draft [B, L] made at it and the draft's confidence [B, L]; `seeds` are the rows'."""

    step: Step
    draft: Tensor
    confidence: Tensor
    seeds: tuple[int, ...]

    def fresh(self) -> Moment:
        """The same moment in tensors and random numbers of its own."""
        random = Randomness(self.seeds, self.step.random.device)
        return replace(mapped(self, torch.clone), step=replace(mapped(self.step, torch.clone), random=random))

    def row(self, number: int) -> Moment:
        """One row alone, as a batch of one."""
        size = len(self.seeds)

        def only(tensor: Tensor) -> Tensor:
            return tensor[number : number + 1] if tensor.ndim and len(tensor) == size else tensor

        random = Randomness(self.seeds[number : number + 1], self.step.random.device)
        own, given = mapped(self, only), self.step.prompt
        prompt = replace(
            own.step.prompt,
            texts=given.texts[number : number + 1],
            lengths=given.lengths[number : number + 1],
        )
        step = replace(own.step, random=random, prompt=prompt)
        return replace(own, step=step, seeds=self.seeds[number : number + 1])


HOOKS: dict[str, Callable[[Any, Moment], Tensor | None]] = {
    "bias": lambda bound, m: bound.bias(m.step),
    "anchors": lambda bound, m: bound.anchors(m.step, m.draft, m.confidence),
    "revise": lambda bound, m: bound.revise(m.step),
    "weigh": lambda bound, m: bound.weigh(m.step, m.draft),
}


def hooks() -> Iterator[str]:
    """The hooks of this Redraft that are called during a run."""
    return (name for name in HOOKS if hasattr(Bound, name))


def answers(bound: Bound, moment: Moment) -> dict[str, Tensor | None]:
    """What each hook returns at a moment; a bias is broadcast to [B, L, V]."""
    found = {}
    for name in hooks():
        now = moment.fresh()
        answer = HOOKS[name](bound, now)
        found[name] = answer.expand_as(now.step.logits) if name == "bias" and answer is not None else answer
    return found


def differing(
    one: dict[str, Tensor | None], other: dict[str, Tensor | None], tolerance: float = 1e-4
) -> str | None:
    """The first hook whose two answers differ by more than `tolerance`; None where all agree."""
    for name, mine in one.items():
        theirs = other[name]
        if (mine is None) != (theirs is None):
            return name
        if mine is None or theirs is None:
            continue
        if mine.shape != theirs.shape or not torch.allclose(
            mine.double(), theirs.double(), rtol=1e-4, atol=tolerance, equal_nan=True
        ):
            return name
    return None


def tensors(value: Any, place: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor in a tree of dataclasses, with its name."""
    if isinstance(value, Tensor):
        yield place, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors(getattr(value, field.name), f"{place}.{field.name}".lstrip("."))


def mapped(value: T, change: Callable[[Tensor], Tensor]) -> T:
    """A tree of dataclasses with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)  # type: ignore[return-value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        changed = {f.name: mapped(getattr(value, f.name), change) for f in fields if f.init}
        return replace(value, **changed)
    return value
