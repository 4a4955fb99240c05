"""A hard guide: a language over bytes, lifted to the vocabulary's tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.automaton import byte_classes
from redraft.denoiser.lift import lift

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class TongueTwister(HardGuide):
    """Every word begins with one of `letters` (in either case), and there is at least one word.

    A word is a run of the letters a to z and apostrophes that begins with a letter; other characters,
    accented letters too, stand between words.
    """

    name: ClassVar[str] = "tongue-twister"
    letters: str

    def __post_init__(self) -> None:
        if not self.letters or not set(self.letters) <= set(LETTERS):
            raise InvalidGuideError(
                f"letters is {self.letters!r}: use letters from a to z, such as 'p' or 'st'"
            )

    def language(self, scene: Scene) -> Automaton:
        wanted = (self.letters + self.letters.upper()).encode()
        letters = (LETTERS + LETTERS.upper()).encode()

        def step(state: tuple[bool, bool], byte: int) -> tuple[bool, bool] | None:
            some, inside = state
            if byte in letters:
                return (True, True) if inside or byte in wanted else None
            return some, inside and byte == ord("'")

        alike = byte_classes(letters, wanted, b"'")
        language = Automaton.build((False, False), step, lambda state: state[0], classes=alike)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        words = list(re.finditer(r"[A-Za-z][A-Za-z']*", text))
        wrong = [word for word in words if word.group()[0].lower() not in self.letters]
        spans = tuple(Span(word.start(), word.end(), word.group()) for word in wrong)
        return self.verdict(bool(words) and not wrong, None, spans, f"{len(words)} words")
