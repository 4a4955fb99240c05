"""All guides of a run, bound to one scene: one language, one summed bias, every early error."""

from __future__ import annotations

import inspect
import itertools
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from redraft.denoiser.automaton import STATE_BUDGET, Automaton
from redraft.denoiser.cache import cached
from redraft.denoiser.ending import with_eos
from redraft.denoiser.errors import (
    GuideError,
    InvalidGuideError,
    RedraftError,
    StateBudgetError,
    UnsatisfiableError,
)
from redraft.denoiser.exact import Language
from redraft.denoiser.guide import Bound, Guide, HardGuide, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import UTF8, compile_regex
from redraft.denoiser.step import Scene, Step
from redraft.denoiser.vocabulary import Vocabulary

T = TypeVar("T")

#: Guides of which every set is tried when the smallest that conflicts is looked for; larger ones by elimination.
_TOGETHER = 3


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
        self.automaton = self._intersect()
        self.language = Language.of([self.automaton], [0] * scene.batch, scene.device)

    def bias(self, step: Step) -> Tensor | None:
        """The guides' summed bias, broadcastable to [B, L, V], or None."""
        total: Tensor | None = None
        for bound in self.bound:
            bias = self._hook(bound, step, lambda b=bound: b.bias(step))  # type: ignore[misc]
            if bias is not None:
                _check_bias(bound.guide, bias, step.logits)
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
        canvas = step.canvas
        shown = (canvas.tokens, canvas.open, canvas.pinned, canvas.confidence, *more)
        before = [tensor._version for tensor in shown]
        answer = self._timed(bound.guide, call)
        if [tensor._version for tensor in shown] != before:
            raise GuideError(
                f"{bound.guide} changed the canvas or the draft in place: return new tensors instead"
            )
        return answer

    def _intersect(self) -> Automaton:
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
        return joint_language(named, self.scene)


def joint_language(named: Sequence[tuple[str, Automaton]], scene: Scene) -> Automaton:
    """The language of canvases that all named languages allow; raises `UnsatisfiableError` where it is empty."""
    automata = [automaton for _, automaton in named]
    keys = tuple(sorted({automaton.key for automaton in automata}))
    try:
        return cached("joint", (scene.vocabulary.key, scene.length, keys), lambda: _joint(named, scene))
    except StateBudgetError as error:
        sizes = ", ".join(f"{name} {automaton.states:,}" for name, automaton in named)
        raise StateBudgetError(
            f"together the guides need more than {STATE_BUDGET:,} states (alone: {sizes}): "
            "drop one, or ask for a narrower range or fewer words",
            sizes=[automaton.states for automaton in automata],
        ) from error


def _joint(named: Sequence[tuple[str, Automaton]], scene: Scene) -> Automaton:
    automata = [automaton for _, automaton in named]
    for base in writable(scene.vocabulary):
        language = _on_canvas(_meet([base, *automata], scene.length - scene.ending), scene)
        if _fits(language, scene.length):
            return language.within(scene.length)
    conflict = _smallest_conflict(automata, scene)
    names = [named[k][0] for k in conflict]
    least = _meet([base, *(automata[k] for k in conflict)]).shortest()
    needed = None if least is None or least + scene.ending <= scene.length else least + scene.ending
    raise UnsatisfiableError(_contradiction(names, needed, scene.length), conflict=names, needed=needed)


@lru_cache(maxsize=8)
def writable(vocabulary: Vocabulary) -> tuple[Automaton, ...]:
    """Token sequences whose decoded text is valid UTF-8, and which begin with the vocabulary's prefix unless
    they are empty; where the vocabulary asks for it, first those of tokens that are whole characters."""
    everything = lift(UTF8, vocabulary.token_bytes)
    if vocabulary.prefix:
        begun = compile_regex(f"(?:{re.escape(vocabulary.prefix.decode())}(?s:.)*)?")
        everything = everything & lift(begun, vocabulary.token_bytes)
    if not vocabulary.whole_first:
        return (everything,)
    broken = np.array([not _is_whole(raw) for raw in vocabulary.token_bytes])
    whole = Automaton(
        broken.astype(np.int32), np.array([[0, 1], [1, 1]], np.int32), 0, np.array([True, False])
    )
    return (whole & everything if vocabulary.prefix else whole), everything


def _is_whole(raw: bytes | None) -> bool:
    try:
        return bool(raw) and bool((raw or b"").decode())
    except UnicodeDecodeError:
        return False


def _on_canvas(text: Automaton, scene: Scene) -> Automaton:
    vocabulary = scene.vocabulary
    if vocabulary.eos_id is None:
        return text
    return with_eos(text, vocabulary.eos_id, vocabulary.pad_id)


def _meet(automata: Sequence[Automaton], length: int | None = None) -> Automaton:
    """The intersection, the smallest first; `length` cuts on the way what no text of so many tokens can use."""
    first, *rest = sorted((a.minimise() for a in automata), key=lambda a: a.states)
    for other in rest:
        first = first & other
        first = first if length is None else first.within(length)
    return first


def _fits(language: Automaton, length: int) -> bool:
    """Whether the language has a word of exactly `length` symbols."""
    least = language.minimise()
    shortest = least.shortest()
    if shortest is None or shortest > length:
        return False
    if least.accept[least.delta[least.accept]].any(1).all():
        return True  # what is accepted can be gone on with, as padding does
    here = np.zeros(least.states, dtype=bool)
    here[least.start] = True
    for _ in range(length):
        following = np.zeros_like(here)
        following[least.delta[here]] = True
        here = following
    return bool(least.accept[here].any())


def _smallest_conflict(automata: Sequence[Automaton], scene: Scene) -> list[int]:
    """Indices of a smallest set of languages that no text on this scene's canvas satisfies."""
    base = writable(scene.vocabulary)[-1]

    def impossible(subset: Sequence[int]) -> bool:
        met = _meet([base, *(automata[k] for k in subset)], scene.length - scene.ending)
        return not _fits(_on_canvas(met, scene), scene.length)

    everything = range(len(automata))
    for size in range(1, min(len(automata), _TOGETHER) + 1):
        for subset in itertools.combinations(everything, size):
            if impossible(subset):
                return list(subset)
    kept = list(everything)
    for k in everything:
        rest = [other for other in kept if other != k]
        if impossible(rest):
            kept = rest
    return kept


def _contradiction(names: Sequence[str], needed: int | None, length: int) -> str:
    quoted = " and ".join(names) if names else "the text"
    if needed is not None:
        return f"{quoted} cannot fit a canvas of {length} tokens: allow at least {needed}"
    if len(names) == 1:
        return f"{quoted} allows no text on a canvas of {length} tokens: relax it"
    return f"{quoted} contradict: no text satisfies {'both' if len(names) == 2 else 'all'}; drop or relax one"


def _check_hooks(bound: Bound) -> None:
    if not isinstance(bound, Bound):
        raise InvalidGuideError(f"bind returned {bound!r}: return a redraft.denoiser.Bound")
    for name in ("language", "bias", "weigh", "push", "anchors", "revise", "check"):
        ours, theirs = inspect.signature(getattr(Bound, name)), inspect.signature(getattr(type(bound), name))
        if len(ours.parameters) != len(theirs.parameters):
            raise InvalidGuideError(
                f"{bound.guide}: {type(bound).__name__}.{name}{theirs} does not have the host's signature {name}{ours}"
            )


def _described(value: object) -> str:
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)[:60]


def _check_weight(guide: Guide, weight: Tensor, rows: int) -> None:
    if not isinstance(weight, Tensor) or weight.shape != (rows,) or not weight.is_floating_point():
        raise InvalidGuideError(f"{guide}: weigh returned {_described(weight)}, not float [{rows}]")
    if not bool(weight.isfinite().all()):
        raise InvalidGuideError(f"{guide}: a log-weight is not finite; use a language to forbid")


def _check_bias(guide: Guide, bias: Tensor, logits: Tensor) -> None:
    if not isinstance(bias, Tensor) or bias.requires_grad:
        raise GuideError(f"{guide}: bias returned {_described(bias)}: return a detached tensor, or None")
    try:
        shape = torch.broadcast_shapes(bias.shape, logits.shape)  # type: ignore[no-untyped-call]
    except RuntimeError:
        shape = bias.shape
    if shape != logits.shape or not bias.is_floating_point():
        raise InvalidGuideError(
            f"{guide}: bias is {bias.dtype} {tuple(bias.shape)}, "
            f"which does not broadcast to float [B, L, V] = {tuple(logits.shape)}"
        )
    if not bool(bias.isfinite().all()):
        raise InvalidGuideError(
            f"{guide}: bias is not finite; use a language to forbid, a finite number to prefer"
        )
