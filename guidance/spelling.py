"""How a vocabulary itself would spell a word, and which of its tokens touch a word on either side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser import Vocabulary
from redraft.denoiser.errors import UnwritableTextError
from redraft.guidance.occurrence import is_word


@dataclass(frozen=True)
class Spelling:
    """Tokens of a phrase. `bounded`: it brings its own boundary on the left (a space, or no word character
    there); `spaced`: it begins with white space; `touches`: it ends in a word character, so that the next
    token must not begin with one."""

    tokens: tuple[int, ...]
    bounded: bool
    spaced: bool
    touches: bool


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
                spaced = raw[0].isspace()
                found[tokens] = Spelling(tokens, spaced or not is_word(form[0]), spaced, is_word(form[-1]))
    return list(found.values())


@lru_cache(maxsize=16)
def token_edges(vocabulary: Vocabulary) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Three bool arrays [V]: the token begins, ends with a word character (or with a part of a character),
    and it holds an ASCII space, tab or line break."""
    first = np.ones(len(vocabulary), dtype=bool)
    last = np.ones(len(vocabulary), dtype=bool)
    spaced = np.zeros(len(vocabulary), dtype=bool)
    for token, raw in enumerate(vocabulary.token_bytes):
        if raw:
            first[token] = _touches(raw[:4], 0)
            last[token] = _touches(raw[-4:], -1)
            spaced[token] = any(byte in raw for byte in b" \t\n\r")
    return first, last, spaced


def _touches(raw: bytes, at: int) -> bool:
    """Whether the character at the end `at` (0 or -1) is a word character, or cut off."""
    for cut in range(4):
        piece = raw[: len(raw) - cut] if at == 0 else raw[cut:]
        try:
            text = piece.decode()
        except UnicodeDecodeError:
            continue
        return not text or is_word(text[at])
    return True


def _forms(phrase: str) -> list[str]:
    capital = phrase[:1].upper() + phrase[1:]
    return list(dict.fromkeys((phrase, capital, phrase.upper())))
