"""All guides of a run, bound to one scene: one language, one summed bias, every early error."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.errors import GuideError, InvalidGuideError, RedraftError, StateBudgetError
from redraft.denoiser.guide import Bound, Guide, HardGuide, Verdict
from redraft.denoiser.joint import joint_language, shortest_tokens, writable
from redraft.denoiser.step import Prompt, Scene, Step

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser

__all__ = ["Steering", "joint_language", "writable"]

T = TypeVar("T")
LARGEST = 1e30
"""Nats: no bias or log-weight is larger, so that sums and differences of them are finite, at any temperature."""


class Steering:
    """The guides of one run, bound.

    Binding raises `UnsatisfiableError` where no canvas of the scene's length satisfies all of them, and
    `InvalidGuideError` where a guide's hooks do not have the host's signatures. `seconds` adds up the time
    spent in each guide's hooks, by the guide's text.
    """

    def __init__(self, guides: Sequence[Guide], scene: Scene) -> None:
        self.scene = scene
        self.seconds: dict[str, float] = {str(guide): 0.0 for guide in guides}
        self.bound = [self._timed(guide, lambda g=guide: g.bind(scene)) for guide in guides]  # type: ignore[misc]
        for bound in self.bound:
            _check_hooks(bound)
        self.language = joint_language(self._languages(), scene, self._stages, self._accepted)
        self._unread: list[tuple[Guide, Tensor]] = []

    @cached_property
    def automaton(self) -> Automaton:
        """The joint language as one automaton; its table is made when it is asked for."""
        return self.language.automaton()

    def admit(self, denoiser: Denoiser, prompt: Prompt) -> None:
        """Let every guide refuse the run's denoiser or prompt, before any forward pass."""
        for bound in self.bound:
            self._timed(bound.guide, lambda b=bound: b.admit(denoiser, prompt))  # type: ignore[misc]

    def bias(self, step: Step) -> Tensor | None:
        """The guides' summed bias, broadcastable to [B, L, V], or None."""
        total: Tensor | None = None
        for bound in self.bound:
            bias = self._hook(bound, step, lambda b=bound: b.bias(step))  # type: ignore[misc]
            if bias is not None:
                _check_bias(bound.guide, bias, step.logits)
                bias = bias.to(
                    step.logits.dtype
                )  # before the look at its ends: float64 holds more than float32
                self._check_finite(bound.guide, bias)
                total = bias if total is None else total + bias
        return total

    def weigh(self, step: Step, draft: Tensor) -> Tensor | None:
        """float64 [B]: the guides' summed log-weights of whole drafts, in nats, or None."""
        total: Tensor | None = None
        for bound in self.bound:
            weight = self._hook(bound, step, lambda b=bound: b.weigh(step, draft), draft)  # type: ignore[misc]
            if weight is not None:
                _check_weight(bound.guide, weight, len(draft))
                total = weight.double() if total is None else total + weight.double()
        return total

    @property
    def weighing(self) -> list[Guide]:
        """The guides that weigh whole drafts, and so need particles."""
        return [bound.guide for bound in self.bound if bound.weighs]

    @property
    def restricts(self) -> bool:
        """Whether some guide has a language."""
        return any(bound.language() is not None for bound in self.bound)

    def pushes(self, step: Step) -> dict[str, Tensor]:
        """The strength [B] that each guide with a tale to tell used in `bias(step)`, by the guide's text."""
        told = ((str(bound.guide), bound.push(step)) for bound in self.bound)
        return {name: push for name, push in told if push is not None}

    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        """bool [B, L]: drafted positions that some guide wants committed now, or None."""
        return self._any(lambda b: b.anchors(step, draft, confidence), "anchors", step, draft, confidence)

    def revise(self, step: Step) -> Tensor | None:
        """bool [B, L]: committed positions that some guide wants reopened, or None."""
        return self._any(lambda b: b.revise(step), "revise", step)

    def settle(self, flag: Tensor) -> bool:
        """The value of a bool flag [], read with what is still to be checked: a step's one wait for the device."""
        unread, self._unread = self._unread, []
        value, *sound = torch.stack([flag, *(finite for _, finite in unread)]).tolist()
        for (guide, _), finite in zip(unread, sound, strict=True):
            _require_finite(guide, finite)
        return bool(value)

    def _check_finite(self, guide: Guide, bias: Tensor) -> None:
        """Where reading a number would wait for the device, it is read at the step's end.

        NaN spreads to both ends; a look at the ends takes a fifteenth of the time that a look at each number does.
        """
        finite = (torch.stack(torch.aminmax(bias)).abs() <= LARGEST).all()
        if bias.is_cuda:
            self._unread.append((guide, finite))
        else:
            _require_finite(guide, bool(finite))

    def check(self, text: str, tokens: Sequence[int]) -> list[Verdict]:
        """Every guide's verdict on a decoded text (and its tokens), in the order given."""
        return [self._verdict(bound, text, tokens) for bound in self.bound]

    def _verdict(self, bound: Bound, text: str, tokens: Sequence[int]) -> Verdict:
        verdict = self._timed(bound.guide, lambda: bound.check(text, tokens))
        if not isinstance(verdict, Verdict) or verdict.status not in ("satisfied", "violated", "unknown"):
            raise GuideError(f"{bound.guide}: check returned {verdict!r}: return self.verdict(...)")
        return verdict

    def _any(
        self, hook: Callable[[Bound], Tensor | None], name: str, step: Step, *more: Tensor
    ) -> Tensor | None:
        total: Tensor | None = None
        for bound in self.bound:
            mark = self._hook(bound, step, lambda b=bound: hook(b), *more)  # type: ignore[misc]
            if mark is not None:
                if (
                    not isinstance(mark, Tensor)
                    or mark.dtype != torch.bool
                    or mark.shape != step.canvas.open.shape
                ):
                    raise InvalidGuideError(
                        f"{bound.guide}: {name} returned {_described(mark)}, "
                        f"not bool {tuple(step.canvas.open.shape)}"
                    )
                total = mark if total is None else total | mark
        return total

    def _timed(self, guide: Guide, call: Callable[[], T]) -> T:
        begin = time.perf_counter()
        try:
            return call()
        except StateBudgetError as error:
            raise StateBudgetError(f"{guide}: {error}", sizes=error.sizes) from error
        except RedraftError:
            raise
        except Exception as error:
            raise GuideError(f"{guide} failed: {type(error).__name__}: {error}") from error
        finally:
            self.seconds[str(guide)] += time.perf_counter() - begin

    def _hook(self, bound: Bound, step: Step, call: Callable[[], T], *more: Tensor) -> T:
        """Call a hook; what it was shown must be as it was afterwards."""
        before = _versions(step, more)
        answer = self._timed(bound.guide, call)
        if _versions(step, more) != before:
            raise GuideError(
                f"{bound.guide} changed the canvas, the draft, the prompt or the logits in place: "
                "return new tensors instead"
            )
        return answer

    def _stages(self, name: str) -> Sequence[tuple[str, Automaton]]:
        """How the language of the guide called `name` narrows, part by part, where it says so."""
        guides = [bound.guide for bound in self.bound if str(bound.guide) == name]
        return guides[0].stages(self.scene) if guides and isinstance(guides[0], HardGuide) else ()

    def _accepted(self, names: Sequence[str]) -> str | None:
        """A text that the guides of these names accept together, for when they write none; None where none is found.

        Looked for among the shortest of their outer languages, and judged by their checks.
        """
        bound = [b for b in self.bound if str(b.guide) in names and isinstance(b.guide, HardGuide)]
        guides = [b.guide for b in bound if isinstance(b.guide, HardGuide)]
        if all(type(guide).outer is HardGuide.outer for guide in guides):
            return None
        try:
            outer = [self._timed(guide, lambda g=guide: g.outer(self.scene)) for guide in guides]  # type: ignore[misc]
            tokens = shortest_tokens(outer, self.scene)
            if tokens is None:
                return None
            text = self.scene.vocabulary.decode(tokens)
            sound = all(self._verdict(b, text, tokens).status == "satisfied" for b in bound)
        except RedraftError:
            return None  # the contradiction is the error to tell
        return text if sound else None

    def _languages(self) -> list[tuple[str, Automaton]]:
        named = []
        for bound in self.bound:
            language = bound.language()
            if language is None and isinstance(bound.guide, HardGuide):
                raise GuideError(f"{bound.guide} is guaranteed and its language is None: return an Automaton")
            if language is not None:
                if not isinstance(language, Automaton):
                    raise GuideError(f"{bound.guide}: its language is {language!r}: return an Automaton")
                named.append((str(bound.guide), language))
        size = len(self.scene.vocabulary)
        for name, automaton in named:
            if automaton.symbols != size:
                raise InvalidGuideError(
                    f"{name}: its language has {automaton.symbols} symbols and the vocabulary {size}: "
                    "build it over scene.vocabulary"
                )
        return named


def _check_hooks(bound: Bound) -> None:
    if not isinstance(bound, Bound):
        raise InvalidGuideError(f"bind returned {bound!r}: return a redraft.denoiser.Bound")
    for name in ("language", "admit", "bias", "weigh", "push", "anchors", "revise", "check"):
        ours, theirs = inspect.signature(getattr(Bound, name)), inspect.signature(getattr(type(bound), name))
        if len(ours.parameters) != len(theirs.parameters):
            raise InvalidGuideError(
                f"{bound.guide}: {type(bound).__name__}.{name}{theirs} does not have the host's signature {name}{ours}"
            )


def _versions(step: Step, more: Sequence[Tensor]) -> list[int]:
    """How often each tensor that a hook is shown was changed; torch itself keeps inference tensors as they are."""
    canvas, prompt = step.canvas, step.prompt
    shown = (canvas.tokens, canvas.open, canvas.pinned, canvas.confidence, prompt.tokens, prompt.mask)
    log_p = step.__dict__.get("log_p")  # not made yet: as good as new
    return [
        0 if tensor is None or tensor.is_inference() else tensor._version
        for tensor in (*shown, step.logits, log_p, *more)
    ]


def _described(value: object) -> str:
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)[:60]


def _check_weight(guide: Guide, weight: Tensor, rows: int) -> None:
    if not isinstance(weight, Tensor) or weight.shape != (rows,) or not weight.is_floating_point():
        raise InvalidGuideError(f"{guide}: weigh returned {_described(weight)}, not float [{rows}]")
    if not bool((weight.abs() <= LARGEST).all()):
        raise InvalidGuideError(
            f"{guide}: a log-weight is not finite, or beyond {LARGEST:g} nats; use a language to forbid"
        )


def _check_bias(guide: Guide, bias: Tensor, logits: Tensor) -> None:
    if not isinstance(bias, Tensor) or bias.requires_grad:
        raise GuideError(f"{guide}: bias returned {_described(bias)}: return a detached tensor, or None")
    if not broadcasts(bias.shape, logits.shape) or not bias.is_floating_point():
        raise InvalidGuideError(
            f"{guide}: bias is {bias.dtype} {tuple(bias.shape)}, "
            f"which does not broadcast to float [B, L, V] = {tuple(logits.shape)}"
        )
    if bias.layout != torch.strided or bias.device != logits.device:
        raise InvalidGuideError(
            f"{guide}: bias is {bias.layout} on {bias.device}: return a dense tensor on scene.device, {logits.device}"
        )


def broadcasts(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a tensor of this shape can be added to one of shape `whole` and leave it so.

    In plain numbers, for `torch.broadcast_shapes` imports sympy the first time: seconds.
    """
    pairs = zip(reversed(shape), reversed(whole), strict=False)
    return len(shape) <= len(whole) and all(own in (1, size) for own, size in pairs)


def _require_finite(guide: Guide, finite: bool) -> None:
    if not finite:
        raise InvalidGuideError(
            f"{guide}: bias is not finite, or beyond {LARGEST:g} nats; use a language to forbid, "
            "a finite number to prefer"
        )
