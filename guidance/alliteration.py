"""Words that begin with the same letter."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.cache import cached
from redraft.denoiser.lift import lift
from redraft.guidance.counts import CEILING
from redraft.guidance.occurrence import cases
from redraft.guidance.reading import BLANKS, BREAKS, MARKS, first_letter, over_characters

GRAIN = 20
"""Shares are so many parts of a whole: multiples of 0.05."""


@dataclass(frozen=True)
class Alliteration(HardGuide):
    """Every word begins with `letter`; or at least `at_least` words (a whole number), or that share of them.

    Words are what white space separates; marks before the first letter are passed over, and a word of marks
    alone counts for nothing. Case is ignored, accents are not. A share is a multiple of 0.05 up to 1.0. At
    least one word there must be.
    """

    name: ClassVar[str] = "alliteration"
    letter: str
    at_least: int | float | None = None

    def __post_init__(self) -> None:
        letter, least = self.letter, self.at_least
        if not isinstance(letter, str) or len(letter) != 1 or not letter.isalpha():
            raise InvalidGuideError(f"the letter of Alliteration is {letter!r}: give one letter")
        if least is None:
            return
        if isinstance(least, bool) or not isinstance(least, (int, float)):
            raise InvalidGuideError(f"at_least is {least!r}: give a number of words, or a share such as 0.5")
        if isinstance(least, int) and not 1 <= least <= CEILING:
            raise InvalidGuideError(
                f"at_least is {least} words: use 1 to {CEILING:,}, or a share such as 0.5"
            )
        if isinstance(least, float) and not (
            0 < least <= 1 and abs(least * GRAIN - round(least * GRAIN)) < 1e-9
        ):
            raise InvalidGuideError(f"at_least is {least}, a share: use a multiple of 0.05 from 0.05 to 1.0")

    @property
    def _share(self) -> Fraction | None:
        if self.at_least is None:
            return Fraction(1)
        return None if isinstance(self.at_least, int) else Fraction(round(self.at_least * GRAIN), GRAIN)

    def language(self, scene: Scene) -> Automaton:
        return self._automaton(scene, sure=True)

    def outer(self, scene: Scene) -> Automaton:
        """A share that has run far ahead or behind is followed no longer: lost inside, won here."""
        return self._automaton(scene, sure=False)

    def _automaton(self, scene: Scene, *, sure: bool) -> Automaton:
        share = self._share
        if share is None:
            assert isinstance(self.at_least, int)
            gain, loss, goal, low, high = 1, 0, self.at_least, 0, self.at_least
        else:
            gain, loss = share.denominator - share.numerator, share.numerator
            far = max(gain, loss) * max(32, scene.length)
            goal, low, high = 0, *((-far, far) if share < 1 else (-1, 0))
        partial = share is not None and share < 1
        won = (high + 1, True, False)

        def step(state: tuple[int, bool, bool], label: str) -> tuple[int, bool, bool] | None:
            balance, met, waiting = state  # waiting: the first letter of a word is still to come
            if state == won:
                return state
            if label == "space":
                return balance, met, True
            if label == "mark" or not waiting:
                return state
            balance += gain if label == "letter" else -loss
            if balance < low:
                return (low, met, False) if partial and not sure else None
            if balance > high and partial and not sure:
                return won
            return min(balance, high), met or label == "letter", False

        named = {"space": BREAKS | BLANKS, "letter": set(cases(self.letter)), "mark": MARKS}
        language = cached(
            "alliteration",
            (self.letter, self.at_least, low, high, sure),
            lambda: over_characters((0, False, True), step, lambda s: s[1] and s[0] >= goal, named),
        )
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        hits, total, spans, at = 0, 0, [], 0
        for word in text.split():
            at = text.index(word, at)
            first = first_letter(word)
            total += bool(first)
            if first and first in cases(self.letter):
                hits += 1
                spans.append(Span(at, at + len(word)))
            at += len(word)
        share = self._share
        held = hits >= 1 and (hits >= share * total if share is not None else hits >= (self.at_least or 1))
        return self.verdict(held, hits / total if total else 0.0, tuple(spans), f"{hits} of {total} words")

    def __str__(self) -> str:
        return (
            f"Alliteration({self.letter!r}{'' if self.at_least is None else f', at_least={self.at_least}'})"
        )
