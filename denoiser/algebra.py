"""The small algebra of guides: `a & b`, `a | b`, `~a`, `2.0 * g`, `during(0, 0.5, g)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.guide import Bound, HardGuide, SoftGuide, Status, Verdict, finite
from redraft.denoiser.step import Prompt, Scene, Step

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser


@dataclass(frozen=True, init=False)
class _Compound(HardGuide):
    variadic: ClassVar[str | None] = "guides"
    guides: tuple[HardGuide, ...]

    def __init__(self, *guides: HardGuide) -> None:
        if not guides:
            raise InvalidGuideError(f"{self.name} needs at least one guide")
        for guide in guides:
            if not isinstance(guide, HardGuide):
                raise InvalidGuideError(f"{self.name} joins guaranteed guides, and {guide!r} is not one")
        flat = (g.guides if type(g) is type(self) else (g,) for g in guides)
        object.__setattr__(self, "guides", tuple(g for group in flat for g in group))

    def room(self) -> int | None:
        rooms = [room for guide in self.guides if (room := guide.room()) is not None]
        return max(rooms, default=None)

    def fits(self) -> bool:
        return any(guide.fits() for guide in self.guides)

    def bind(self, scene: Scene) -> Bound:
        return _BoundCompound(self, scene, self.language(scene), [guide.bind(scene) for guide in self.guides])

    def check(self, text: str) -> Verdict:
        return _combine(self, [guide.check(text) for guide in self.guides])


class _BoundCompound(Bound):
    def __init__(self, guide: HardGuide, scene: Scene, language: Automaton, parts: list[Bound]) -> None:
        super().__init__(guide, scene, language)
        self.parts = parts

    def admit(self, denoiser: Denoiser, prompt: Prompt) -> None:
        for part in self.parts:
            part.admit(denoiser, prompt)

    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        marks = [m for part in self.parts if (m := part.anchors(step, draft, confidence)) is not None]
        return reduce(torch.logical_or, marks) if marks else None

    def check(self, text: str, tokens: Sequence[int] | None = None) -> Verdict:
        return _combine(self.guide, [part.check(text, tokens) for part in self.parts])


@dataclass(frozen=True, init=False)
class All(_Compound):
    """`a & b`: every guide holds. The language is the intersection."""

    name: ClassVar[str] = "all"

    def language(self, scene: Scene) -> Automaton:
        return reduce(lambda a, b: a & b, (guide.language(scene) for guide in self.guides))

    def outer(self, scene: Scene) -> Automaton:
        return reduce(lambda a, b: a & b, (guide.outer(scene) for guide in self.guides))

    def __str__(self) -> str:
        return " & ".join(_wrapped(guide) for guide in self.guides)


@dataclass(frozen=True, init=False)
class Any(_Compound):
    """`a | b`: at least one guide holds. The language is the union."""

    name: ClassVar[str] = "any"

    def language(self, scene: Scene) -> Automaton:
        return reduce(lambda a, b: a | b, (guide.language(scene) for guide in self.guides))

    def outer(self, scene: Scene) -> Automaton:
        return reduce(lambda a, b: a | b, (guide.outer(scene) for guide in self.guides))

    def __str__(self) -> str:
        return " | ".join(_wrapped(guide) for guide in self.guides)


@dataclass(frozen=True)
class Not(HardGuide):
    """`~a`: the guide does not hold. The language is the complement (of the outer language, so it is sound)."""

    name: ClassVar[str] = "not"
    guide: HardGuide

    def __post_init__(self) -> None:
        if not isinstance(self.guide, HardGuide):
            raise InvalidGuideError(f"not needs a guaranteed guide, and {self.guide!r} is not one")

    def language(self, scene: Scene) -> Automaton:
        return ~self.guide.outer(scene)

    def outer(self, scene: Scene) -> Automaton:
        return ~self.guide.language(scene)

    def room(self) -> int | None:
        return None

    def bind(self, scene: Scene) -> Bound:
        return _BoundNot(self, scene, self.language(scene))

    def check(self, text: str) -> Verdict:
        return _negate(self, self.guide.check(text))

    def __invert__(self) -> HardGuide:
        return self.guide

    def __str__(self) -> str:
        return f"~{_wrapped(self.guide)}"


class _BoundNot(Bound):
    def __init__(self, guide: Not, scene: Scene, language: Automaton) -> None:
        super().__init__(guide, scene, language)
        self.inner = guide.guide.bind(scene)

    def admit(self, denoiser: Denoiser, prompt: Prompt) -> None:
        self.inner.admit(denoiser, prompt)

    def check(self, text: str, tokens: Sequence[int] | None = None) -> Verdict:
        assert isinstance(self.guide, Not)
        return _negate(self.guide, self.inner.check(text, tokens))


@dataclass(frozen=True)
class Scaled(SoftGuide):
    """`scale * guide`: a soft guide's bias times `scale`, finite; 0 is exactly no guide."""

    name: ClassVar[str] = "scaled"
    guide: SoftGuide
    scale: float

    def __post_init__(self) -> None:
        _soft(self.guide, "a scale")
        finite(self.scale, f"the scale of {self.guide}")
        if isinstance(self.guide, Scaled):
            object.__setattr__(
                self, "scale", finite(self.scale * self.guide.scale, f"the scale of {self.guide}")
            )
            object.__setattr__(self, "guide", self.guide.guide)
        _like(self, self.guide)

    def room(self) -> int | None:
        return self.guide.room() if self.scale else None

    def bind(self, scene: Scene) -> Bound:
        return _BoundScaled(self, scene, self.guide.bind(scene))

    def check(self, text: str) -> Verdict:
        return _renamed(self, self.guide.check(text))

    def __str__(self) -> str:
        return f"{self.scale:g} * {self.guide}"


@dataclass(frozen=True)
class During(SoftGuide):
    """A soft guide that works while `start <= progress < stop`, both in [0, 1]."""

    name: ClassVar[str] = "during"
    start: float
    stop: float
    guide: SoftGuide

    def __post_init__(self) -> None:
        _soft(self.guide, "during")
        if not (0 <= self.start < self.stop <= 1):
            raise InvalidGuideError(
                f"during({self.start}, {self.stop}, ...) is no part of a run: use 0 <= start < stop <= 1"
            )
        _like(self, self.guide)

    def room(self) -> int | None:
        return self.guide.room()

    def bind(self, scene: Scene) -> Bound:
        return _BoundDuring(self, scene, self.guide.bind(scene))

    def check(self, text: str) -> Verdict:
        return _renamed(self, self.guide.check(text))

    def __str__(self) -> str:
        return f"during({self.start:g}, {self.stop:g}, {self.guide})"


def during(start: float, stop: float, guide: SoftGuide) -> During:
    """Limit a soft guide to the part [start, stop) of the run's progress."""
    return During(start, stop, guide)


class _Wrapped(Bound):
    def __init__(self, guide: Scaled | During, scene: Scene, inner: Bound) -> None:
        super().__init__(guide, scene)
        self.inner = inner

    def active(self, step: Step) -> bool:
        return True

    def admit(self, denoiser: Denoiser, prompt: Prompt) -> None:
        self.inner.admit(denoiser, prompt)

    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        return self.inner.anchors(step, draft, confidence) if self.active(step) else None

    def revise(self, step: Step) -> Tensor | None:
        return self.inner.revise(step) if self.active(step) else None

    def bias(self, step: Step) -> Tensor | None:
        return self.inner.bias(step) if self.active(step) else None

    def weigh(self, step: Step, draft: Tensor) -> Tensor | None:
        return self.inner.weigh(step, draft) if self.active(step) else None

    @property
    def weighs(self) -> bool:
        return self.inner.weighs

    def push(self, step: Step) -> Tensor | None:
        return self.inner.push(step) if self.active(step) else None

    def check(self, text: str, tokens: Sequence[int] | None = None) -> Verdict:
        return _renamed(self.guide, self.inner.check(text, tokens))


class _BoundScaled(_Wrapped):
    def active(self, step: Step) -> bool:
        assert isinstance(self.guide, Scaled)
        return self.guide.scale != 0.0

    def admit(self, denoiser: Denoiser, prompt: Prompt) -> None:
        assert isinstance(self.guide, Scaled)
        if self.guide.scale != 0.0:
            super().admit(denoiser, prompt)

    def bias(self, step: Step) -> Tensor | None:
        assert isinstance(self.guide, Scaled)
        bias = super().bias(step)
        return None if bias is None else self.guide.scale * bias

    def weigh(self, step: Step, draft: Tensor) -> Tensor | None:
        assert isinstance(self.guide, Scaled)
        weight = super().weigh(step, draft)
        return None if weight is None else self.guide.scale * weight

    @property
    def weighs(self) -> bool:
        assert isinstance(self.guide, Scaled)
        return self.guide.scale != 0.0 and self.inner.weighs

    def push(self, step: Step) -> Tensor | None:
        assert isinstance(self.guide, Scaled)
        push = super().push(step)
        return None if push is None else self.guide.scale * push


class _BoundDuring(_Wrapped):
    def active(self, step: Step) -> bool:
        assert isinstance(self.guide, During)
        return self.guide.start <= step.progress < self.guide.stop


def _combine(guide: HardGuide | object, verdicts: list[Verdict]) -> Verdict:
    assert isinstance(guide, _Compound)
    statuses = {verdict.status for verdict in verdicts}
    decisive: Status = "violated" if isinstance(guide, All) else "satisfied"
    other: Status = "satisfied" if isinstance(guide, All) else "violated"
    status: Status = decisive if decisive in statuses else "unknown" if "unknown" in statuses else other
    spans = tuple(
        sorted({span for v in verdicts for span in v.spans}, key=lambda s: (s.start, s.end, s.label))
    )
    note = "; ".join(v.note for v in verdicts if v.note)
    return guide.verdict(status, None, spans, note)


def _negate(guide: Not, verdict: Verdict) -> Verdict:
    flipped: dict[Status, Status] = {"satisfied": "violated", "violated": "satisfied", "unknown": "unknown"}
    status = flipped[verdict.status]
    return guide.verdict(status, None, verdict.spans if status == "violated" else (), verdict.note)


def _renamed(guide: object, verdict: Verdict) -> Verdict:
    return replace(verdict, guide=str(guide))  # the inner guide's strength stays


def _like(guide: SoftGuide, inner: SoftGuide) -> None:
    """Let a wrapper be as strong as what it wraps, and as fit for a recipe."""
    object.__setattr__(guide, "strength", inner.strength)
    object.__setattr__(guide, "portable", inner.portable)


def _wrapped(guide: HardGuide) -> str:
    return f"({guide})" if isinstance(guide, _Compound) else str(guide)


def _soft(guide: object, what: str) -> None:
    if not isinstance(guide, SoftGuide):
        raise InvalidGuideError(f"{what} needs a soft guide, and {guide} is guaranteed: use it as it is")
