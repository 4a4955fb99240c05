"""Guides: immutable descriptions of what is wanted, bound to one scene before a run."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.checked import Checked
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.step import Scene, Step

if TYPE_CHECKING:
    from redraft.denoiser import algebra
    from redraft.denoiser.base import Denoiser
    from redraft.denoiser.step import Prompt

Strength = Literal["guaranteed", "encouraged", "searched"]
Status = Literal["satisfied", "violated", "unknown"]


@dataclass(frozen=True)
class Span:
    """Evidence in the decoded text: characters [start, end), and what they show."""

    start: int
    end: int
    label: str = ""


@dataclass(frozen=True)
class Verdict:
    """Whether a decoded text came out as a guide asked; `score` in [0, 1] where the guide has one."""

    guide: str
    strength: Strength
    status: Status
    score: float | None = None
    spans: tuple[Span, ...] = ()
    note: str = ""


class Guide(Checked, ABC):
    """A description of what is wanted: a frozen dataclass, hashable, with plain values in its fields.

    `name` is what recipes call it. `bind(scene)` raises every error that can be known early; `check(text)`
    judges a decoded text without the guide's own automaton or bias, so that it can catch them out.
    Field values of other types than their annotations are refused when a guide is made (see `Checked`).
    """

    name: ClassVar[str]
    strength: ClassVar[Strength]
    variadic: ClassVar[str | None] = None
    """The field that the constructor takes as positional arguments, if any."""
    portable: ClassVar[bool] = True
    """Whether a recipe can hold it; False where a field is a Python function or object."""

    @abstractmethod
    def bind(self, scene: Scene) -> Bound:
        """Turn the description into tensors for one scene; raises `RedraftError` for what cannot be."""

    @abstractmethod
    def check(self, text: str) -> Verdict:
        """Judge a decoded text by plain means."""

    def room(self) -> int | None:
        """How many tokens a text under this guide may want, as a hint for the canvas; None: no opinion."""
        return None

    def fits(self) -> bool:
        """Whether `room` is what the text fills: how wide the canvas is tells a denoiser something then."""
        return False

    def fields(self) -> dict[str, Any]:
        """The description's fields by name; a field that is None is left out."""
        pairs = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))  # type: ignore[arg-type]
        return {name: value for name, value in pairs if value is not None}

    def verdict(
        self, status: Status | bool, score: float | None = None, spans: tuple[Span, ...] = (), note: str = ""
    ) -> Verdict:
        """A verdict in this guide's name; True means satisfied, False violated."""
        if isinstance(status, bool):
            status = "satisfied" if status else "violated"
        return Verdict(str(self), self.strength, status, score, spans, note)

    def __str__(self) -> str:
        return repr(self)


class HardGuide(Guide):
    """A guide that is a language: what it allows is guaranteed on the decoded text.

    `language(scene)` is an automaton over the scene's tokens. Where a guide's exact language would be
    needlessly large it may return a subset here and the exact language, or a superset, in `outer`:
    `language <= exact <= outer`; negation swaps the two, so that both stay sound.
    """

    strength: ClassVar[Strength] = "guaranteed"

    @abstractmethod
    def language(self, scene: Scene) -> Automaton:
        """Token sequences that are allowed; over `len(scene.vocabulary)` symbols, without EOS or padding."""

    def outer(self, scene: Scene) -> Automaton:
        """A language that holds every text the guide means; by default `language` itself."""
        return self.language(scene)

    def stages(self, scene: Scene) -> Sequence[tuple[str, Automaton]]:
        """Languages that narrow down to this one part by part, each with what the part is, such as "'by the sea'".

        Where the guide contradicts others, the first stage that does is named. By default none.
        """
        return ()

    def bind(self, scene: Scene) -> Bound:
        return Bound(self, scene, self.language(scene))

    def __and__(self, other: Guide) -> algebra.All:
        from redraft.denoiser.algebra import All

        return All(self, _hard(other, "&"))

    def __or__(self, other: Guide) -> algebra.Any:
        from redraft.denoiser.algebra import Any

        return Any(self, _hard(other, "|"))

    def __invert__(self) -> HardGuide:
        from redraft.denoiser.algebra import Not

        return Not(self)

    def __mul__(self, scale: float) -> Any:
        raise TypeError(
            f"{self} is guaranteed and has no strength: {scale!r} * guide is for soft guides; "
            "use it as it is, or a soft guide such as Bias"
        )

    __rmul__ = __mul__


class SoftGuide(Guide):
    """A guide that prefers: its bias is added to the log-probabilities, always finite."""

    strength: ClassVar[Strength] = "encouraged"

    def __mul__(self, scale: float) -> algebra.Scaled:
        from redraft.denoiser.algebra import Scaled

        if isinstance(scale, bool) or not isinstance(scale, (int, float)):
            raise TypeError(f"the scale of {self} is {scale!r}: use a finite number")
        return Scaled(self, float(scale))

    __rmul__ = __mul__

    def __and__(self, other: object) -> Any:
        raise TypeError(
            f"{self} is soft and has no language: put soft guides in a list instead of using & | ~"
        )

    __rand__ = __or__ = __ror__ = __and__

    def __invert__(self) -> Any:
        raise TypeError(f"{self} is soft and has no language: to push the other way, use -1.0 * guide")


class Bound:
    """A guide bound to a scene. Every hook has a neutral default; a subclass overrides what it offers."""

    def __init__(self, guide: Guide, scene: Scene, language: Automaton | None = None) -> None:
        self.guide, self.scene, self._language = guide, scene, language

    def language(self) -> Automaton | None:
        """The token sequences that are allowed, or None: no restriction."""
        return self._language

    def admit(self, denoiser: Denoiser, prompt: Prompt) -> None:
        """Raise `InvalidGuideError` where the run's denoiser or prompt will not do, before any forward pass."""

    def bias(self, step: Step) -> Tensor | None:
        """Finite float32, broadcastable to [B, L, V], added to log-probabilities in nats; None: nothing."""
        return None

    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        """bool [B, L]: drafted positions to commit at this step whatever the selection says; None: none.

        `draft` [B, L] is a joint draft of the whole canvas, `confidence` [B, L] its posterior marginals.
        """
        return None

    def weigh(self, step: Step, draft: Tensor) -> Tensor | None:
        """Finite log-weights [B] in nats of whole drafts [B, L], for particles; None: nothing to say.

        The run then aims at p(x) exp(weigh(x)), p the run without it; see `redraft.denoiser.particles`.
        """
        return None

    @property
    def weighs(self) -> bool:
        """Whether `weigh` says anything, so that the run needs particles."""
        return type(self).weigh is not Bound.weigh

    def push(self, step: Step) -> Tensor | None:
        """[B]: the strength that `bias(step)`, called just before, used, for the trace; None: nothing to tell."""
        return None

    def revise(self, step: Step) -> Tensor | None:
        """bool [B, L]: committed positions to reopen; pins are never reopened; None: none."""
        return None

    def check(self, text: str, tokens: Sequence[int] | None = None) -> Verdict:
        """Judge a decoded text, by default as the guide does; `tokens` are its own, where they are known."""
        return self.guide.check(text)


def finite(value: float, what: str) -> float:
    """`value`, or an `InvalidGuideError` where it is NaN or infinite."""
    if not math.isfinite(value):
        raise InvalidGuideError(f"{what} is {value}: use a finite number")
    return value


def _hard(guide: Guide, operator: str) -> HardGuide:
    if not isinstance(guide, HardGuide):
        raise TypeError(
            f"{operator} joins guaranteed guides, and {guide} is {guide.strength}: put it in a list"
        )
    return guide
