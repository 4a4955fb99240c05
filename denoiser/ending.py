"""Where a text may end on a canvas: EOS and padding as part of the language."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from redraft.denoiser.automaton import Automaton


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
    return Automaton(classes, delta, a.start, accept).minimise()


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
    return Automaton(classes, delta, a.start, np.append(a.accept, False)).minimise()


def _inside(a: Automaton, ids: Iterable[int]) -> None:
    for token in ids:
        if not 0 <= token < a.symbols:
            raise ValueError(f"token id {token} is outside the vocabulary of {a.symbols}")
