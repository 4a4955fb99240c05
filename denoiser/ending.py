"""Where a text may end on a canvas: EOS and padding as part of the language."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.automaton import Automaton, of_distinct


def with_eos(a: Automaton, eos_id: int, pad_id: int | None = None) -> Automaton:
    """Canvases w EOS PAD*: a text w of the token language `a`, one EOS, then padding to the end.

    `pad_id` None (or equal to `eos_id`) pads with EOS. Only canvases that hold the EOS are accepted.
    Raises ValueError for an id outside the vocabulary.
    """
    pad = eos_id if pad_id is None else pad_id
    _inside(a, (eos_id, pad))
    text, dead = a.states, a.states + 1
    classes = a.classes.copy()
    width = a.delta.shape[1]
    classes[pad] = width
    classes[eos_id] = width + 1
    delta = np.full((a.states + 2, width + 2), dead, dtype=np.int32)
    delta[:text, :width] = a.delta
    delta[:text, width + 1] = np.where(a.accept, text, dead)
    delta[text, classes[pad]] = text
    accept = np.zeros(a.states + 2, dtype=bool)
    accept[text] = True
    return _canonical(a, {eos_id, pad}, dead, classes, delta, accept)


def fixed(a: Automaton, special: Iterable[int] = ()) -> Automaton:
    """Canvases that are a text of `a` from first position to last, with the `special` tokens never used.

    Raises ValueError for an id outside the vocabulary.
    """
    ids = sorted(set(special))
    _inside(a, ids)
    if not ids:
        return a.minimise()
    dead = a.states
    classes = a.classes.copy()
    classes[ids] = a.delta.shape[1]
    delta = np.full((a.states + 1, a.delta.shape[1] + 1), dead, dtype=np.int32)
    delta[:dead, :-1] = a.delta
    return _canonical(a, set(ids), dead, classes, delta, np.append(a.accept, False))


def _canonical(
    a: Automaton,
    special: set[int],
    dead: int,
    classes: NDArray[np.int32],
    delta: NDArray[np.int32],
    accept: NDArray[np.bool_],
) -> Automaton:
    """Where `a` is minimal and never reads the special tokens, its states stay different and none need be merged."""
    sink = dead_end(a)
    if not a.is_minimal or sink is None or any((a.delta[:, a.classes[k]] != sink).any() for k in special):
        return Automaton(classes, delta, a.start, accept).minimise()
    return of_distinct(classes, np.where(delta == sink, dead, delta).astype(np.int32), a.start, accept)


def dead_end(a: Automaton) -> int | None:
    """A state of `a` that leads nowhere but to itself and is not accepted, if there is one."""
    own = (a.delta == np.arange(a.states)[:, None]).all(1) & ~a.accept
    return int(own.argmax()) if own.any() else None


def _inside(a: Automaton, ids: Iterable[int]) -> None:
    for token in ids:
        if not 0 <= token < a.symbols:
            raise ValueError(f"token id {token} is outside the vocabulary of {a.symbols}")
