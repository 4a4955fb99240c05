"""Phrases one behind the other, each beginning where the one before has ended: languages and plain search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser import Automaton, InvalidGuideError, Scene, Span
from redraft.denoiser.errors import UnwritableTextError
from redraft.guidance.occurrence import find, occurs, phrase
from redraft.guidance.spelling import spelled_language, spellings, token_words

Group = tuple[str, ...]
"""A keyword: one phrase, or several that are as good."""


def group(value: object, what: str) -> Group:
    """A phrase, or a list of alternatives, as the tuple of its phrases."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        return (phrase(value, what),)
    if not value:
        raise InvalidGuideError(f"{what} has no alternative: give at least one")
    return tuple(dict.fromkeys(phrase(option, f"an alternative of {what}") for option in value))


def plain(options: Group) -> str | Group:
    """A group as a guide's field shows it."""
    return options[0] if len(options) == 1 else options


def listed(options: Group) -> str:
    """A group as messages show it."""
    return repr("|".join(options))


def places(text: str, options: Group, whole: bool = True, exact_case: bool = False) -> list[Span]:
    """Where any of the phrases occurs, by end, then by start."""
    spans = {s for word in options for s in find(text, word, whole=whole, exact_case=exact_case)}
    return sorted(spans, key=lambda s: (s.end, s.start))


def in_turn(text: str, groups: Sequence[Group], whole: bool = True, exact_case: bool = False) -> list[Span]:
    """The groups' earliest occurrences one behind the other; fewer than the groups where that fails."""
    chain: list[Span] = []
    for options in groups:
        begin = chain[-1].end if chain else 0
        after = (s for s in places(text, options, whole, exact_case) if s.start >= begin)
        if (found := next(after, None)) is None:
            break
        chain.append(found)
    return chain


def spelled(scene: Scene, options: Group, exact_case: bool) -> Automaton:
    """Token sequences that hold one of the phrases as the tokenizer itself spells it, a word of its own."""
    vocabulary = scene.vocabulary
    own = [s for word in options for s in spellings(vocabulary, word, exact_case=exact_case)]
    if not own:
        vocabulary.encode(options[0])  # says which character cannot be written
        raise UnwritableTextError(
            f"the vocabulary cannot spell {options[0]!r} as a whole word: use another word"
        )
    return spelled_language(tuple(own), vocabulary)


def spelled_in_turn(scene: Scene, groups: Sequence[Group], exact_case: bool) -> Automaton:
    """Token sequences in which the groups stand in turn, spelled as the tokenizer spells them."""
    parts = [spelled(scene, options, exact_case) for options in groups]
    head, _, space = token_words(scene.vocabulary)
    return _in_turn(parts, (space & ~head).tolist(), len(scene.vocabulary))


@lru_cache(maxsize=64)
def occurs_in_turn(groups: tuple[Group, ...], whole: bool, exact_case: bool) -> Automaton:
    """Texts (bytes) in which the groups occur in turn, or may: which characters beyond ASCII bound a word is
    not told apart, so that this is a superset; without any it is exact."""
    parts = [occurs(options, whole, exact_case) for options in groups]
    return _in_turn(parts, [True] * 256, 256)


def _in_turn(parts: Sequence[Automaton], parting: Sequence[bool], alphabet: int) -> Automaton:
    """Words of each part, one behind the other.

    A part is found for certain in its sink. Where it had been found before the last symbol and that symbol
    bounds it (`parting`), the next part reads the symbol as well; else it begins behind it.
    """
    final = [_sink(part) for part in parts]
    stack = np.stack(
        [np.asarray(part.classes, dtype=np.int64) for part in parts] + [np.asarray(parting, np.int64)]
    )
    classes: NDArray[np.int64] = np.unique(stack, axis=1, return_inverse=True)[1].reshape(-1)

    def step(state: tuple[int, int], symbol: int) -> tuple[int, int]:
        k, q = state
        if k == len(parts):
            return state
        part = parts[k]
        after = int(part.delta[q, part.classes[symbol]])
        if after != final[k]:
            return k, after
        if k + 1 == len(parts):
            return k + 1, 0
        following = parts[k + 1]
        if not (part.accept[q] and parting[symbol]):
            return k + 1, following.start
        return step((k + 1, following.start), symbol)

    def accepting(state: tuple[int, int]) -> bool:
        k, q = state
        return k == len(parts) or (k + 1 == len(parts) and bool(parts[k].accept[q]))

    return Automaton.build((0, parts[0].start), step, accepting, alphabet, classes=classes)


def _sink(part: Automaton) -> int:
    """The state that accepts whatever follows; -1 if there is none."""
    stays = (part.delta == np.arange(part.states)[:, None]).all(1) & part.accept
    return int(np.flatnonzero(stays)[0]) if stays.any() else -1
