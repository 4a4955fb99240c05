"""How many sentences a text has, all of them complete."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from redraft.denoiser import Automaton, Bound, HardGuide, Scene, Span, Verdict
from redraft.denoiser.automaton import byte_classes
from redraft.denoiser.cache import cached
from redraft.denoiser.lift import lift
from redraft.guidance.counts import aim, check_range, shown, within
from redraft.guidance.ending import EndAnchored
from redraft.guidance.occurrence import WORD_BYTES

ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "St", "Prof")
ENDS = b".!?"
DIGITS = b"0123456789"
CLOSERS = b"\"')]"
BLANKS = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"

_END = re.compile(r"""[.!?]+["')\]]*(?=[ \t\n\r\x0b\x0c\x1c-\x1f]|\Z)""")


class _State(NamedTuple):
    done: int
    phase: str  # "blank": nothing said yet; "said": inside a sentence; "ended": behind its end, no space yet
    word: bytes  # the word so far, where it may become an abbreviation; b"?" where it cannot, b"~..." where unsure


#: Behind a stop that may or may not be an abbreviation's: any text.
_ANY = _State(0, "any", b"")


@dataclass(frozen=True)
class Sentences(HardGuide):
    """At least `least` and at most `most` complete sentences (None: no upper end), and nothing after them.

    A sentence says something (a letter, a digit) and ends in . ! or ?, with closing quotes or brackets,
    before white space or the end of the text. A full stop behind Mr, Mrs, Ms, Dr, St or Prof ends none.
    """

    name: ClassVar[str] = "sentences"
    least: int
    most: int | None = None

    def __post_init__(self) -> None:
        check_range("the number of sentences", self.least, self.most, 1)

    def language(self, scene: Scene) -> Automaton:
        """Texts in which every stop ends a sentence: no abbreviations, no letter right behind a stop.

        Where a model wants more sentences than are allowed, stops that do not count are its way out
        ("her own Mr.", "said.He"), so they are only in `outer`. Nor is "Mr." written behind a character beyond
        ASCII, which may be a letter (no abbreviation) or a dash; behind such a stop `outer` has any text.
        """
        return self._automaton(scene, plain=True)

    def outer(self, scene: Scene) -> Automaton:
        return self._automaton(scene, plain=False)

    def _automaton(self, scene: Scene, *, plain: bool) -> Automaton:
        cap = self.least if self.most is None else self.most + 1
        starts = {name[:cut].encode() for name in ABBREVIATIONS for cut in range(len(name) + 1)}
        whole = {name.encode() for name in ABBREVIATIONS}

        def step(state: _State, byte: int) -> _State | None:
            done, phase, word = state
            if phase == "any":
                return state
            if byte in BLANKS:
                return (
                    _State(min(done + 1, cap), "blank", b"") if phase == "ended" else _State(done, phase, b"")
                )
            if byte == 0x2E and phase == "said" and word[:1] == b"~" and word[1:] in whole:
                return None if plain else _ANY
            if byte in ENDS and phase != "blank":
                stopped = not (byte == 0x2E and phase == "said" and word in whole)
                if plain and not stopped:
                    return None
                return _State(done, "ended" if stopped else "said", b"")
            if byte in CLOSERS:
                return _State(done, phase, b"")
            if plain and phase == "ended" and byte not in DIGITS:
                return None
            if byte not in WORD_BYTES and byte < 0x80:
                return _State(done, "said" if phase == "ended" else phase, b"")
            grown = word + bytes([byte]) if byte < 0x80 else b"~"
            return _State(done, "said", grown if grown.removeprefix(b"~") in starts else b"?")

        def accepting(state: _State) -> bool:
            count = state.done + 1
            return state.phase == "any" or (state.phase == "ended" and within(count, self.least, self.most))

        letters = {letter for name in ABBREVIATIONS for letter in name.encode()}
        groups = (BLANKS, b".", ENDS, CLOSERS, DIGITS, WORD_BYTES, range(0x80), *({x} for x in letters))
        language = cached(
            "sentences",
            (self.least, self.most, plain),
            lambda: Automaton.build(_State(0, "blank", b""), step, accepting, classes=byte_classes(*groups)),
        )
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        # 10.6 tokens a sentence, seven eighths filled
        return 2 + math.ceil(12 * aim(self.least, self.most, 1))

    def check(self, text: str) -> Verdict:
        ends = sentence_ends(text)
        spans = tuple(Span(begin, end) for begin, end in zip([0, *ends], ends, strict=False))
        complete = bool(ends) and ends[-1] == len(text)
        held = complete and within(len(ends), self.least, self.most)
        note = f"{len(ends)} sentences" + ("" if complete else ", the last not complete")
        return self.verdict(held, None, spans, note)

    def __str__(self) -> str:
        return f"Sentences({shown(self.least, self.most)})"


def sentence_ends(text: str) -> list[int]:
    """Offsets just behind each complete sentence."""
    ends: list[int] = []
    for match in _END.finditer(text):
        said = text[ends[-1] if ends else 0 : match.start()]
        before = re.search(r"\w*\Z", said)
        abbreviated = match.group()[0] == "." and before is not None and before.group() in ABBREVIATIONS
        if any(char.isalnum() or char == "_" or ord(char) > 127 for char in said) and not (
            abbreviated and len(match.group().rstrip("\"')]")) == 1
        ):
            ends.append(match.end())
    return ends
