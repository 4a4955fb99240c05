"""The one language of a run: what all its guides allow, on the canvas, as tensors."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch

from redraft.denoiser.automaton import STATE_BUDGET, Automaton
from redraft.denoiser.cache import cached
from redraft.denoiser.conflict import Accepted, Stages, unsatisfiable
from redraft.denoiser.ending import with_eos
from redraft.denoiser.errors import StateBudgetError, UnsatisfiableError
from redraft.denoiser.factored import Factored
from redraft.denoiser.language import Language, feasible, filled_canvases, shortest_canvas
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import UTF8, compile_regex
from redraft.denoiser.step import Scene
from redraft.denoiser.vocabulary import Vocabulary

#: Most entries (states x classes) of the joint language's table; past it two languages are followed side by side.
ENTRIES = 2**20
#: Joint languages that are kept with their tensors.
_MOST = 8
_KEPT: OrderedDict[tuple[object, ...], Language] = OrderedDict()


def joint_language(
    named: Sequence[tuple[str, Automaton]],
    scene: Scene,
    stages: Stages | None = None,
    accepted: Accepted | None = None,
) -> Language:
    """The language of canvases that all named languages allow; raises `UnsatisfiableError` where it is empty.

    `stages(name)` may say how a language narrows, part by part, so that the error names the part that fails;
    `accepted(names)` a text that guides accept though they write none.
    """
    keys = tuple(sorted({automaton.key for _, automaton in named}))
    name = (scene.vocabulary.key, scene.length, keys, str(scene.device), scene.parts, ENTRIES)
    language = _KEPT.pop(name, None)
    if language is None:
        try:
            language = _joint(named, keys, scene, stages, accepted)
        except StateBudgetError as error:
            sizes = ", ".join(f"{name} {automaton.states:,}" for name, automaton in named)
            raise StateBudgetError(
                f"together the guides need more than {STATE_BUDGET:,} states (alone: {sizes}): "
                "drop one, or ask for a narrower range or fewer words",
                sizes=[automaton.states for _, automaton in named],
            ) from error
    _KEPT[name] = language
    if len(_KEPT) > _MOST:
        _KEPT.popitem(last=False)
    return language.begin(language.start[:1].expand(scene.batch).contiguous())


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
    whole = _made_of(is_whole, vocabulary)
    return (whole & everything if vocabulary.prefix else whole), everything


def shortest_tokens(automata: Sequence[Automaton], scene: Scene) -> tuple[int, ...] | None:
    """A shortest text in all of the languages that fits the canvas, of printable ASCII where there is one.

    None where there is none, and where it would take a table of more than ENTRIES to find one.
    """
    met: Automaton | None
    met, *rest = sorted([writable(scene.vocabulary)[-1], *automata], key=lambda a: a.states)
    for other in rest:
        met = met.meet(other, ENTRIES)
        if met is None:
            return None
        met = met.within(scene.length - scene.ending)
    return (met & _made_of(_is_plain, scene.vocabulary)).shortest_word() or met.shortest_word()


def _made_of(kind: Callable[[bytes | None], bool], vocabulary: Vocabulary) -> Automaton:
    """All sequences of tokens of one kind, by their bytes."""
    other = np.array([not kind(raw) for raw in vocabulary.token_bytes])
    return Automaton(other.astype(np.int32), np.array([[0, 1], [1, 1]], np.int32), 0, np.array([True, False]))


def _is_plain(raw: bytes | None) -> bool:
    return raw is not None and raw.isascii() and raw.decode().isprintable()


def is_whole(raw: bytes | None) -> bool:
    """Whether a token's bytes are one or more whole characters."""
    try:
        return bool(raw) and bool((raw or b"").decode())
    except UnicodeDecodeError:
        return False


def _joint(
    named: Sequence[tuple[str, Automaton]],
    keys: tuple[str, ...],
    scene: Scene,
    stages: Stages | None,
    accepted: Accepted | None,
) -> Language:
    automata = [automaton for _, automaton in named]
    bases = list(enumerate(writable(scene.vocabulary)))
    for level, base in bases[-1:] if scene.parts else bases:
        name = (scene.vocabulary.key, scene.length, keys, level, ENTRIES)
        language = _on_canvas(_kept_factors([base, *automata], name, scene), scene)
        if language is not None:
            return language
    raise _unsatisfiable(named, scene, stages, accepted)


def _kept_factors(
    automata: Sequence[Automaton], name: tuple[object, ...], scene: Scene
) -> tuple[Automaton, ...]:
    """`_canvases`, from the cache where it has them."""
    made: list[Automaton] = []

    def factor(k: int) -> Automaton:
        if not made:
            made.extend(_canvases(automata, scene))
        return made[k] if k < len(made) else Automaton.all(len(scene.vocabulary))

    one, two = (cached("joint", (*name, k), lambda k=k: factor(k)) for k in (0, 1))  # type: ignore[misc]
    return (one,) if two.states == 1 and two.accept.all() else (one, two)


def _canvases(automata: Sequence[Automaton], scene: Scene) -> list[Automaton]:
    """One or two languages of canvases whose intersection is the texts of all `automata`."""
    eos, pad = scene.vocabulary.eos_id, scene.vocabulary.pad_id
    texts = _factors(automata, scene.length - scene.ending)
    if eos is not None:
        texts = [with_eos(text, eos, pad) for text in texts]
    return [text.within(scene.length) for text in texts]


def _factors(automata: Sequence[Automaton], length: int | None) -> list[Automaton]:
    """The intersection, the smallest first, as one automaton, or as two where the table of one would be too large.

    `length` cuts on the way what no text of so many tokens can use.
    """
    first, *rest = sorted((a.minimise() for a in automata), key=lambda a: a.states)
    for k, other in enumerate(rest):
        met = first.meet(other, ENTRIES)
        if met is None:
            *narrow, wide = sorted([first, *rest[k:]], key=lambda a: a.delta.shape[1])
            return [wide, _meet(narrow, length)]
        first = met if length is None else met.within(length)
    return [first]


def _meet(automata: Sequence[Automaton], length: int | None) -> Automaton:
    first, *rest = sorted(automata, key=lambda a: a.states)
    for other in rest:
        first = first & other
        first = first if length is None else first.within(length)
    return first


def _on_canvas(factors: Sequence[Automaton], scene: Scene) -> Language | None:
    """The factors as tensors, for one row; None where no canvas of the scene's length is in all of them."""
    if len(factors) == 1:
        return _on_any(factors, scene) if _fits(factors[0], scene.length) else None
    language = _on_any(factors, scene)
    # With an EOS token padding makes any short text long enough.
    return language if language is None or scene.ending or _reaches(language, scene.length) else None


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


def _on_any(factors: Sequence[Automaton], scene: Scene) -> Language | None:
    """The factors as tensors, for one row; None may say that they share no canvas of up to the scene's length."""
    if len(factors) == 1:
        return Language.of(factors, [0], scene.device)
    return Factored.meet(factors[0], factors[1], scene.length, scene.device, STATE_BUDGET)


def _reaches(language: Language, length: int) -> bool:
    blank = torch.full((len(language.start), length), -1, device=language.start.device)
    return bool(feasible(language, blank).all())


def _unsatisfiable(
    named: Sequence[tuple[str, Automaton]], scene: Scene, stages: Stages | None, accepted: Accepted | None
) -> UnsatisfiableError:
    base = writable(scene.vocabulary)[-1]

    def possible(automata: Sequence[Automaton]) -> bool:
        return _on_canvas(_canvases([base, *automata], scene), scene) is not None

    def needed(automata: Sequence[Automaton]) -> int | None:
        factors = _factors([base, *automata], None)
        if len(factors) == 1:
            least = factors[0].shortest()
        else:
            most = factors[0].states * factors[1].states
            language = Factored.meet(factors[0], factors[1], most, scene.device, STATE_BUDGET)
            least = None if language is None else int(shortest_canvas(language)[0])
        return None if least is None else least + scene.ending

    def filled(automata: Sequence[Automaton]) -> list[int]:
        language = None if scene.ending else _on_any(_canvases([base, *automata], scene), scene)
        return [] if language is None else filled_canvases(language, scene.length)

    return unsatisfiable(named, scene.length, possible, needed, stages, filled, accepted)
