"""What a page needs to know of a run, written down while it goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from redraft.denoiser import Refinement, Scene, Settings, Steering, Step
from redraft.denoiser.blocks import ahead, follow
from redraft.denoiser.distribution import distributions
from redraft.denoiser.exact import Posterior, posterior
from redraft.denoiser.guide import Bound, Guide
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.result import Result
from redraft.recipes import settings as plain_settings
from redraft.recipes.errors import InvalidRecipeError
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

    With particles `texts` has every particle's own past, text by text; `of(results)` those that became results.
    What a block-by-block denoiser has not come to yet stands in no frame.

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
        if refinement.parents is not None:
            own = self.texts[self._first :]
            self.texts[self._first :] = [list(own[parent]) for parent in refinement.parents.tolist()]

    def of(self, results: Sequence[Result]) -> list[list[Frame]]:
        """Each result's frames; raises `InvalidRecipeError` where the recorder saw another number of texts."""
        counts = [len(result.particles.texts) if result.particles else 1 for result in results]
        if sum(counts) != len(self.texts):
            raise InvalidRecipeError(
                f"the recorder saw {len(self.texts)} texts and {sum(counts)} were given: "
                "pass it as on_step to the run of just these"
            )
        first = [sum(counts[:k]) for k in range(len(counts))]
        chosen = [result.particles.chosen if result.particles else 0 for result in results]
        return [self.texts[begin + own] for begin, own in zip(first, chosen, strict=True)]

    def _begin(self, step: Step) -> None:
        batch, length = len(step.canvas.tokens), step.canvas.tokens.shape[1] + step.remaining
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

    def _beliefs(self, steering: Steering, step: Step, settings: Settings) -> _Believed:
        """As the loop draws: a block that is written apart stands behind what is finished, before a guess."""
        canvas, vocabulary, block = step.canvas, step.denoiser.vocabulary, step.denoiser.block
        first = 0 if block is None else (canvas.tokens.shape[1] - 1) // block * block
        language = follow(steering.language, canvas.tokens[:, :first])
        weights = distributions(step, steering.bias(step), settings, language)[:, first:]
        open_ = canvas.open[:, first:]
        weights = ahead(weights, open_, step.remaining, vocabulary.ends, settings.temperature == 0)
        pad = torch.nn.functional.pad
        tokens = pad(canvas.tokens[:, first:], (0, step.remaining))
        beliefs = posterior(language, weights, tokens, pad(open_, (0, step.remaining), value=True))
        return _Believed(beliefs, canvas.open, first)


@dataclass(frozen=True)
class _Believed:
    """A posterior of the positions from `first` on and of a guess behind them, read at the shown ones: [B, end]."""

    beliefs: Posterior
    open: Tensor
    first: int

    @property
    def defined(self) -> Tensor:
        """bool [B]: whether there is a posterior."""
        return self.beliefs.log_z.isfinite()

    def marginals(self) -> Tensor:
        """[N, V] at the open positions; what is open before `first` is not being written and has none."""
        shown = self.beliefs.marginals()[:, : self.open.shape[1] - self.first]
        return torch.nn.functional.pad(shown, (0, 0, self.first, 0))[self.open]

    def confidence(self, draft: Tensor) -> Tensor:
        """[B, end]: the marginals of a draft's tokens."""
        own = draft[:, self.first :]
        whole = torch.nn.functional.pad(own, (0, self.beliefs.open.shape[1] - own.shape[1]))
        found = self.beliefs.confidence(whole)[:, : own.shape[1]]
        return torch.nn.functional.pad(found, (self.first, 0), value=1.0)


@dataclass(frozen=True)
class _Base:
    """The posterior marginals without any guide, at the open positions: log b [N, V]."""

    open: Tensor
    log_b: Tensor
    defined: Tensor

    @classmethod
    def of(cls, believed: _Believed) -> _Base:
        return cls(believed.open, believed.marginals().clamp_min(TINY).log(), believed.defined)

    def push(self, guided: _Believed) -> Tensor:
        """[B, L] nats: sum_v g_i(v) log(g_i(v) / b_i(v)), 0 where committed; NaN where either has no marginals."""
        g = guided.marginals()
        nats = (g * (g.clamp_min(TINY).log() - self.log_b)).sum(-1).clamp_min(0.0)
        push = torch.zeros(self.open.shape, dtype=nats.dtype, device=nats.device).masked_scatter(
            self.open, nats
        )
        defined = (self.defined & guided.defined)[:, None] | ~self.open
        return torch.where(defined, push, math.nan)


def _reason(committed: bool, confidence: float, anchor: str) -> Reason:
    if not committed:
        return ""
    if anchor:
        return "anchor"
    return "only token" if confidence >= SURE else "selection"
