"""First letters that spell a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, Bound, HardGuide, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.ending import EndAnchored
from redraft.guidance.occurrence import cases
from redraft.guidance.reading import BLANKS, BREAKS, MARKS, first_letter, over_characters, text_lines
from redraft.guidance.sentences import Sentences, sentence_ends

UNITS = {"lines": 9, "sentences": 16, "words": 2}
"""What an acrostic may go by, and about how many tokens one takes."""


@dataclass(frozen=True)
class Acrostic(HardGuide):
    """The first letters of the text's lines (or sentences, or words) spell `letters`, one each and no more.

    White space in `letters` is left out, so that "HOPE AND JOY" is ten lines. Quotes, brackets and other marks
    before a first letter are passed over; blank lines count for nothing. Case is ignored unless `exact_case`,
    accents never.
    """

    name: ClassVar[str] = "acrostic"
    letters: str
    by: str = "lines"
    exact_case: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.letters, str) or not self.letters.split():
            raise InvalidGuideError(
                f'the letters of Acrostic are {self.letters!r}: give a word such as "HOPE"'
            )
        wrong = next((char for char in self.wanted if not char.isalnum()), None)
        if wrong is not None:
            raise InvalidGuideError(
                f"Acrostic({self.letters!r}): {wrong!r} is no letter or digit: leave it out"
            )
        if self.by not in UNITS:
            raise InvalidGuideError(f"Acrostic goes by {self.by!r}: use {', '.join(map(repr, UNITS))}")

    @property
    def wanted(self) -> str:
        """The letters, white space left out."""
        return "".join(self.letters.split())

    def language(self, scene: Scene) -> Automaton:
        """Lines end in single line feeds, without blank lines between; sentences as `Sentences` writes them."""
        if self.by == "sentences":
            count = len(self.wanted)
            return self._lifted(self._by_sentences(), scene) & Sentences(count, count).language(scene)
        return self._lifted(self._by_units(plain=True), scene)

    def outer(self, scene: Scene) -> Automaton:
        if self.by == "sentences":
            count = len(self.wanted)
            first = self._lifted(self._beginning(), scene)
            return first & Sentences(count, count).outer(scene)
        return self._lifted(self._by_units(plain=False), scene)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        return 4 + UNITS[self.by] * len(self.wanted)

    def check(self, text: str) -> Verdict:
        firsts = [(at, first_letter(unit)) for at, unit in self._units(text)]
        spelt = "".join(first or "?" for _, first in firsts)
        held = len(firsts) == len(self.wanted) and all(
            first in self._forms(k) for k, (_, first) in enumerate(firsts)
        )
        spans = tuple(Span(place := text.index(first, at), place + 1, first) for at, first in firsts if first)
        complete = self.by != "sentences" or sentence_ends(text)[-1:] == [len(text)]
        note = f"spells {spelt[:80]!r}" + ("" if complete else ", the last sentence not complete")
        return self.verdict(held and complete, None, spans, note)

    def _forms(self, k: int) -> tuple[str, ...]:
        return (self.wanted[k],) if self.exact_case else cases(self.wanted[k])

    def _units(self, text: str) -> list[tuple[int, str]]:
        if self.by == "lines":
            return text_lines(text)
        if self.by == "sentences":
            ends = sentence_ends(text)
            return [(begin, text[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]
        units, at = [], 0
        for word in text.split():
            at = text.index(word, at)
            units.append((at, word))
            at += len(word)
        return units

    def _labels(self) -> dict[str, set[str]]:
        """Each wanted character, in each of its forms, is its own label."""
        return {form: {form} for k in range(len(self.wanted)) for form in self._forms(k)}

    def _by_units(self, *, plain: bool) -> Automaton:
        wanted, words = len(self.wanted), self.by == "words"
        parting = (BREAKS | BLANKS) if words else BREAKS
        named = {
            "parting": parting - {"\n"},
            "feed": "\n",
            "blank": BLANKS - parting,
            "mark": MARKS,
        } | self._labels()

        def step(state: tuple[int, str], label: str) -> tuple[int, str] | None:
            done, phase = state  # "between" units; only "marks" so far; "inside", the letter read
            if label in ("parting", "feed"):
                if phase == "marks" or (plain and not words and (label != "feed" or phase == "between")):
                    return None
                return done, "between"
            if phase == "inside":
                return state
            if label == "blank":
                return None if plain and phase == "between" else state
            if label == "mark":
                return None if done == wanted else (done, "marks")
            return (done + 1, "inside") if done < wanted and label in self._forms(done) else None

        def accepting(state: tuple[int, str]) -> bool:
            done, phase = state
            return done == wanted and (
                phase == "inside" or (phase == "between" and not (plain and not words))
            )

        return over_characters((0, "between"), step, accepting, named)

    def _by_sentences(self) -> Automaton:
        """Every stop (with closing marks) before white space ends a sentence; the next letter begins one."""
        wanted = len(self.wanted)
        named = {"space": BREAKS | BLANKS, "stop": ".!?", "mark": MARKS - set(".!?")} | self._labels()

        def step(state: tuple[int, str], label: str) -> tuple[int, str] | None:
            done, phase = state  # "between" sentences, "said" inside one, "ended" behind a stop
            if phase == "between":
                if label in ("space", "mark"):
                    return state
                return (done + 1, "said") if done < wanted and label in self._forms(done) else None
            if label == "stop":
                return done, "ended"
            if label == "space":
                return (done, "between") if phase == "ended" else state
            return state if label == "mark" else (done, "said")

        return over_characters((0, "between"), step, lambda state: state[0] == wanted, named)

    def _beginning(self) -> Automaton:
        named = {"passed": BREAKS | BLANKS | MARKS} | self._labels()

        def step(met: bool, label: str) -> bool | None:
            return met or (label in self._forms(0) or (False if label == "passed" else None))

        return over_characters(False, step, lambda met: met, named)

    @staticmethod
    def _lifted(language: Automaton, scene: Scene) -> Automaton:
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)
