"""Why no text satisfies all guides: the smallest set that conflicts, the length that would do, the part that fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.errors import UnsatisfiableError

#: How a named language narrows: (what each part adds, the language up to it).
Stages = Callable[[str], Sequence[tuple[str, Automaton]]]
#: A text that the guides of some names accept together, if one is found.
Accepted = Callable[[Sequence[str]], str | None]
#: Largest sets that are all tried; larger conflicts are found by leaving out one guide after another.
TOGETHER = 3


def unsatisfiable(
    named: Sequence[tuple[str, Automaton]],
    length: int,
    possible: Callable[[Sequence[Automaton]], bool],
    needed: Callable[[Sequence[Automaton]], int | None],
    stages: Stages | None = None,
    filled: Callable[[Sequence[Automaton]], Sequence[int]] | None = None,
    accepted: Accepted | None = None,
) -> UnsatisfiableError:
    """The error for languages that allow no canvas of `length` tokens together.

    `possible` says whether some languages do; `needed` the fewest tokens that some take, None where no number helps;
    `filled`, where a text has no end token and so fills its canvas, the canvases up to `length` that some fill;
    `accepted`, where a guide writes less than it accepts, a text that all of a conflict accept.
    """
    automata = [automaton for _, automaton in named]
    conflict = smallest_conflict(automata, possible)
    names = [named[k][0] for k in conflict]
    least = needed([automata[k] for k in conflict])
    least = None if least is None or least <= length else least
    shorter = [] if filled is None or least is not None else filled([automata[k] for k in conflict])
    example = None if accepted is None or least is not None or shorter else accepted(names)
    if shorter:
        message = _unfilled(names, shorter, length)
    elif example is not None:
        message = _unwritten(names, example, length)
    else:
        message = _contradiction(names, least, length)
    part = (
        None if stages is None or least is not None or shorter else _part(conflict, named, stages, possible)
    )
    return UnsatisfiableError(message + (part or ""), conflict=names, needed=least, filled=shorter)


def smallest_conflict(
    automata: Sequence[Automaton], possible: Callable[[Sequence[Automaton]], bool]
) -> list[int]:
    """Indices of a smallest set of languages that are not possible together (past TOGETHER: one without surplus)."""
    everything = range(len(automata))
    for size in range(min(len(automata), TOGETHER) + 1):
        for subset in itertools.combinations(everything, size):
            if size and not possible([automata[k] for k in subset]):
                return list(subset)
    kept = list(everything)
    for k in everything:
        rest = [other for other in kept if other != k]
        if not possible([automata[j] for j in rest]):
            kept = rest
    return kept


def _part(
    conflict: Sequence[int],
    named: Sequence[tuple[str, Automaton]],
    stages: Stages,
    possible: Callable[[Sequence[Automaton]], bool],
) -> str | None:
    """The first part of a conflicting guide that the others leave no room for."""
    for k in conflict:
        others = [named[j][1] for j in conflict if j != k]
        for label, language in stages(named[k][0]):
            if not possible([*others, language]):
                return f"; it fails at {label} of {named[k][0]}"
    return None


def _unfilled(names: Sequence[str], filled: Sequence[int], length: int) -> str:
    low, high = min(filled), max(filled)
    shown = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"{_quoted(names)} cannot fill a canvas of {length} tokens, and without an end token a text fills its canvas "
        f"exactly: give a shorter length ({shown})"
    )


def _unwritten(names: Sequence[str], example: str, length: int) -> str:
    shown = repr(example[:60])
    if len(names) == 1:
        return (
            f"{names[0]} allows no text that it writes on a canvas of {length} tokens, "
            f"though {shown} satisfies it: relax it"
        )
    every = "both" if len(names) == 2 else "all"
    none = f"no text that they write satisfies {every}, though {shown} does"
    return f"{_quoted(names)} contradict: {none}; drop or relax one"


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(names) if names else "the text"


def _contradiction(names: Sequence[str], needed: int | None, length: int) -> str:
    quoted = _quoted(names)
    if needed is not None:
        return f"{quoted} cannot fit a canvas of {length} tokens: allow at least {needed}"
    if len(names) == 1:
        return f"{quoted} allows no text on a canvas of {length} tokens: relax it"
    return f"{quoted} contradict: no text satisfies {'both' if len(names) == 2 else 'all'}; drop or relax one"
