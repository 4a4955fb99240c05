"""How a vocabulary itself would spell a word, and which of its tokens touch a word on either side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser import Automaton, Vocabulary
from redraft.denoiser.errors import UnwritableTextError
from redraft.guidance.occurrence import ends_word, is_mark, is_word, same


@dataclass(frozen=True)
class Spelling:
    """Tokens of a phrase. `spaced`: it begins with white space; `begins`, `ends`: its first and last character
    is a word character, so that it must not touch a word there."""

    tokens: tuple[int, ...]
    spaced: bool
    begins: bool
    ends: bool


def spellings(vocabulary: Vocabulary, phrase: str, *, exact_case: bool) -> list[Spelling]:
    """The tokenizer's own spellings of a phrase: at the text's start, behind a space, as it is, capitalised
    and in capitals (unless `exact_case`)."""
    forms = [phrase] if exact_case else _forms(phrase)
    found: dict[tuple[int, ...], Spelling] = {}
    for form in forms:
        for lead in ("", " "):
            try:
                tokens = tuple(vocabulary.encode(lead + form))
            except UnwritableTextError:
                continue
            raw = b"".join(vocabulary.token_bytes[token] or b"" for token in tokens).decode()
            if raw.strip() == form:
                found[tokens] = Spelling(tokens, raw[0].isspace(), is_word(form[0]), ends_word(form))
    return list(found.values())


@dataclass(frozen=True)
class _Progress:
    """active: (spelling, tokens matched); clean: no word character since the last white space;
    waiting: the phrase stands there, and counts if white space comes before the next word character."""

    active: frozenset[tuple[int, int]] = frozenset()
    clean: bool = True
    waiting: bool = False


_FOUND = _Progress(active=frozenset({(-1, -1)}), waiting=True)  # for good, whatever comes


@lru_cache(maxsize=1024)
def spelled_language(items: tuple[Spelling, ...], vocabulary: Vocabulary) -> Automaton:
    """Token sequences in which one of the spellings stands as a whole word of its own.

    Of its own: between white space (or the text's ends) there is no word character but the phrase's, so that
    several phrases are several words. An end of the phrase that is no word character may touch anything.
    """
    special = sorted({token for spelling in items for token in spelling.tokens})
    head, tail, space = token_words(vocabulary)
    classes = head.astype("int64") * 4 + tail * 2 + space
    for k, token in enumerate(special):
        classes[token] = 8 + k

    def step(state: _Progress, token: int) -> _Progress:
        if state == _FOUND or (state.waiting and space[token] and not head[token]):
            return _FOUND
        waiting, active = state.waiting and not head[token], set()
        begun = {(s, 0) for s, x in enumerate(items) if x.spaced or state.clean or not x.begins}
        for s, at in state.active | begun:
            if items[s].tokens[at] != token:
                continue
            if at + 1 < len(items[s].tokens):
                active.add((s, at + 1))
            elif items[s].ends:
                waiting = True
            else:
                return _FOUND
        clean = not tail[token] and (bool(space[token]) or state.clean)
        return _Progress(frozenset(active), clean, waiting)

    return Automaton.build(
        _Progress(), step, lambda state: state.waiting, alphabet=len(vocabulary), classes=classes
    )


@lru_cache(maxsize=16)
def token_words(vocabulary: Vocabulary) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Three bool arrays [V]: a word character (or a mark) before the token's first white space, one after its last, and
    whether it holds white space. Without white space the first two look at the whole token; a part of a
    character counts as a word character."""
    flags = [_edges(raw) for raw in vocabulary.token_bytes]
    head, tail, space = np.array(flags, dtype=bool).reshape(-1, 3).T
    return head, tail, space


def _edges(raw: bytes | None) -> tuple[bool, bool, bool]:
    if not raw:
        return True, True, False
    text = raw.decode(errors="replace")
    if text.isalnum():  # most tokens are a word, or a space and a word
        return True, True, False
    if text[0] == " " and text[1:].isalnum():
        return False, True, True
    pieces = re.split(r"\s+", text)
    first, last = (
        any(is_word(c) or is_mark(c) or c == "\ufffd" for c in piece) for piece in (pieces[0], pieces[-1])
    )
    return first, last, len(pieces) > 1


def _forms(phrase: str) -> list[str]:
    capital = phrase[:1].upper() + phrase[1:]
    wanted = (phrase, capital, phrase.upper())
    return [form for form in dict.fromkeys(wanted) if same(form, phrase)]
