"""What a page needs to know of a run, written down while it goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from redraft.denoiser import Refinement, Scene, Settings, Steering, Step
from redraft.denoiser.distribution import distributions
from redraft.denoiser.exact import Posterior, posterior
from redraft.denoiser.guide import Bound, Guide
from redraft.denoiser.randomness import Randomness
from redraft.recipes import settings as plain_settings
from redraft.recipes.recipe import Recipe

Reason = Literal["", "selection", "only token", "anchor"]
TINY = 1e-30  # a probability that counts as none
SURE = 1.0 - 1e-6  # what float32 keeps of a posterior of 1


@dataclass(frozen=True)
class Frame:
    """One step of one text: the whole draft, what became of each position, and what pushed it.

    `pushes[g][i]` is KL(p_i under guide g alone || p_i under none) in nats for the token at position i before
    the step, 0 where it was committed already; `together` the same under all guides. NaN: not defined.
    """

    index: int
    steps: int
    draft: tuple[int, ...]
    open: tuple[bool, ...]
    committed: tuple[bool, ...]
    reopened: tuple[bool, ...]
    confidence: tuple[float, ...]
    reasons: tuple[Reason, ...]
    anchors: tuple[str, ...]
    pressure: float
    pushes: tuple[tuple[float, ...], ...]
    together: tuple[float, ...]


class Recorder:
    """An `on_step` observer that keeps a `Frame` a step and text; `texts` has them in the order of the results.

    It binds every guide once more, alone, and asks it at each step what it would do: a report costs about as
    much again as the guides do, and an exact posterior for each. It draws no random numbers from the run, so
    the texts are what they would be without it; a guide that draws its own gets others here.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.guides: tuple[Guide, ...] = recipe.guides
        self.texts: list[list[Frame]] = []
        self._table = recipe.settings
        self._first = 0
        self._sides: _Sides | None = None
        self.pieces: list[bytes | None] = []

    def __call__(self, refinement: Refinement) -> None:
        step = refinement.step
        if step.index == 0:
            self._begin(step)
        assert self._sides is not None
        pushes, together = self._sides.pushes(step)
        names = self._sides.anchors(step, refinement.draft)
        draft, opened = refinement.draft.tolist(), step.canvas.open.tolist()
        committed, reopened = refinement.committed.tolist(), refinement.reopened.tolist()
        confidence, pressure = refinement.canvas.confidence.tolist(), refinement.pressure.tolist()
        for row, was_open in enumerate(opened):
            if not any(was_open):
                continue
            self.texts[self._first + row].append(
                Frame(
                    index=step.index,
                    steps=step.steps,
                    draft=tuple(draft[row]),
                    open=tuple(was_open),
                    committed=tuple(committed[row]),
                    reopened=tuple(reopened[row]),
                    confidence=tuple(confidence[row]),
                    reasons=tuple(
                        _reason(new, sure, name)
                        for new, sure, name in zip(committed[row], confidence[row], names[row], strict=True)
                    ),
                    anchors=tuple(names[row]),
                    pressure=float(pressure[row]),
                    pushes=tuple(tuple(push[row]) for push in pushes),
                    together=tuple(together[row]),
                )
            )

    def _begin(self, step: Step) -> None:
        batch, length = step.canvas.tokens.shape
        self._first = len(self.texts)
        self.texts += [[] for _ in range(batch)]
        denoiser = step.denoiser
        self.pieces = list(denoiser.vocabulary.token_bytes)
        scene = Scene(denoiser.vocabulary, denoiser.device, batch, length, step.steps, step.prompt.text)
        if self._sides is None or self._sides.scene != scene:
            settings = plain_settings.over(denoiser.settings, self._table)
            self._sides = _Sides(self.guides, scene, settings)


class _Sides:
    """Each guide alone, none and all of them, bound to one scene."""

    def __init__(self, guides: Sequence[Guide], scene: Scene, settings: Settings) -> None:
        self.scene, self.settings = scene, settings
        self.none = Steering((), scene)
        self.alone = [Steering((guide,), scene) for guide in guides]
        self.all = self.alone[0] if len(guides) == 1 else Steering(guides, scene) if guides else self.none
        temperature = settings.temperature or 1.0  # at 0 there are no distributions to compare
        self._plain = replace(settings, temperature=temperature, top_k=None, top_p=None, min_p=None)

    def pushes(self, step: Step) -> tuple[list[list[list[float]]], list[list[float]]]:
        """KL in nats for each guide, row and position, and for all guides together."""
        step = replace(step, random=Randomness(step.random.seeds, step.random.device))
        base = _Base.of(self._beliefs(self.none, step, self._plain))
        each = [base.push(self._beliefs(one, step, self._plain)) for one in self.alone]
        if len(each) == 1:
            return [each[0].tolist()], each[0].tolist()
        if not each:
            return [], torch.zeros(step.canvas.open.shape).tolist()
        whole = base.push(self._beliefs(self.all, step, self._plain))
        return [push.tolist() for push in each], whole.tolist()

    def anchors(self, step: Step, draft: Tensor) -> list[list[str]]:
        """The guide that wanted each drafted position committed at this step, or ""."""
        names = [[""] * draft.shape[1] for _ in range(len(draft))]
        asked = [bound for bound in self.all.bound if type(bound).anchors is not Bound.anchors]
        if not asked:
            return names
        step = replace(step, random=Randomness(step.random.seeds, step.random.device))
        confidence = self._beliefs(self.all, step, self.settings).confidence(draft)
        for bound in asked:
            wanted = bound.anchors(step, draft, confidence)
            for row, position in [] if wanted is None else wanted.nonzero().tolist():
                names[row][position] = names[row][position] or str(bound.guide)
        return names

    def _beliefs(self, steering: Steering, step: Step, settings: Settings) -> Posterior:
        weights = distributions(step, steering.bias(step), settings, steering.language)
        return posterior(steering.language, weights, step.canvas.tokens, step.canvas.open)


@dataclass(frozen=True)
class _Base:
    """The posterior marginals without any guide, at the open positions: log b [N, V]."""

    open: Tensor
    log_b: Tensor
    defined: Tensor

    @classmethod
    def of(cls, beliefs: Posterior) -> _Base:
        marginals = beliefs.marginals()[beliefs.open]
        return cls(beliefs.open, marginals.clamp_min(TINY).log(), beliefs.log_z.isfinite())

    def push(self, guided: Posterior) -> Tensor:
        """[B, L] nats: sum_v g_i(v) log(g_i(v) / b_i(v)), 0 where committed; NaN where either has no marginals."""
        g = guided.marginals()[self.open]
        nats = (g * (g.clamp_min(TINY).log() - self.log_b)).sum(-1).clamp_min(0.0)
        push = torch.zeros(self.open.shape, dtype=nats.dtype, device=nats.device).masked_scatter(
            self.open, nats
        )
        defined = (self.defined & guided.log_z.isfinite())[:, None] | ~self.open
        return torch.where(defined, push, math.nan)


def _reason(committed: bool, confidence: float, anchor: str) -> Reason:
    if not committed:
        return ""
    if anchor:
        return "anchor"
    return "only token" if confidence >= SURE else "selection"
