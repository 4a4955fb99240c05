"""Texts without certain letters."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import ClassVar

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.reading import over_characters

#: Code points that Unicode may ever decompose; beyond are ideographs that decompose to nothing else, and tags.
_DECOMPOSED = (range(0x20000), range(0x2F800, 0x2FA20))


@dataclass(frozen=True)
class Lipogram(HardGuide):
    """None of `letters` occurs, in any case or with any accent: "e" bars e, E, \u00e9, \u00ca, \uff45 and \u0065\u0301.

    A character is barred if its compatibility decomposition, case folded, holds one of the letters; so "s"
    bars \u00df and "f" the ligature \ufb01. Letters are given without accents, each for itself and all its forms.
    """

    name: ClassVar[str] = "lipogram"
    letters: str

    def __post_init__(self) -> None:
        given = self.letters
        if not isinstance(given, str) or not given or not all(map(str.isalpha, given)):
            raise InvalidGuideError(
                f'the letters of Lipogram are {given!r}: give letters, such as "e" or "aeiou"'
            )
        for letter in given:
            if base_letters(letter) != letter.casefold() or len(base_letters(letter)) != 1:
                raise InvalidGuideError(
                    f"Lipogram: {letter!r} is a form of {base_letters(letter)!r}: give its letters, which bar all forms"
                )
        object.__setattr__(self, "letters", "".join(dict.fromkeys(given.casefold())))

    def language(self, scene: Scene) -> Automaton:
        language = over_characters(
            0, lambda state, label: None if label else 0, lambda state: True, {"barred": barred(self.letters)}
        )
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        found = [k for k, char in enumerate(text) if any(x in self.letters for x in base_letters(char))]
        spans = tuple(Span(k, k + 1, text[k]) for k in found)
        return self.verdict(not spans, None, spans, f"{len(spans)} barred letters" if spans else "")

    def __str__(self) -> str:
        return f"Lipogram({self.letters!r})"


def base_letters(char: str) -> str:
    """A character's letters without accents or case, as Unicode decomposes it (NFKD); accents left out."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(x for x in folded if not unicodedata.combining(x))


@lru_cache(maxsize=16)
def barred(letters: str) -> frozenset[str]:
    """Every character that is a form of one of the letters."""
    forms = _forms()
    return frozenset(chain.from_iterable(forms.get(letter, ()) for letter in letters)) | set(letters)


@lru_cache(maxsize=1)
def _forms() -> dict[str, list[str]]:
    forms: dict[str, list[str]] = {}
    for char in map(chr, chain(*_DECOMPOSED)):
        bases = base_letters(char) if char.isalpha() or unicodedata.decomposition(char) else ""
        for base in bases:
            forms.setdefault(base, []).append(char)
    return forms
