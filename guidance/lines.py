"""How many lines a text has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, Bound, HardGuide, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.counts import aim, check_range, shown, within
from redraft.guidance.ending import EndAnchored
from redraft.guidance.reading import BLANKS, BREAKS, over_characters, text_lines


@dataclass(frozen=True)
class Lines(HardGuide):
    """At least `least` and at most `most` lines that are not blank (None: no upper end).

    Lines are those of `str.splitlines`. What is written has single line feeds between lines, at most one
    blank line between two, and none at either end.
    """

    name: ClassVar[str] = "lines"
    least: int
    most: int | None = None

    def __post_init__(self) -> None:
        check_range("the number of lines", self.least, self.most, 1)

    def language(self, scene: Scene) -> Automaton:
        return self._automaton(scene, plain=True)

    def outer(self, scene: Scene) -> Automaton:
        """The exact language: any line break, any number of blank lines."""
        return self._automaton(scene, plain=False)

    def _automaton(self, scene: Scene, *, plain: bool) -> Automaton:
        cap = self.least if self.most is None else self.most + 1
        inside = -1

        def step(state: tuple[int, int], label: str) -> tuple[int, int] | None:
            count, breaks = state  # breaks since the last line, `inside` where it still goes on
            if label == "break" or (label == "feed" and not plain):
                return None if plain else (count, 0)
            if label == "feed":
                return None if breaks == 2 or count == 0 else (count, 1 if breaks == inside else 2)
            if label == "blank" and breaks != inside:
                return None if plain else state
            return (min(count + 1, cap) if breaks != inside else count), inside

        def accepting(state: tuple[int, int]) -> bool:
            count, breaks = state
            held = within(count, self.least, self.most)
            return held and (breaks == inside or not plain)

        named = {"feed": "\n", "break": BREAKS - {"\n"}, "blank": BLANKS}
        language = over_characters((0, 0), step, accepting, named)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        return 2 + math.ceil(9 * aim(self.least, self.most, 1))

    def check(self, text: str) -> Verdict:
        lines = text_lines(text)
        held = within(len(lines), self.least, self.most)
        spans = tuple(Span(at, at + len(line)) for at, line in lines)
        return self.verdict(held, None, spans, f"{len(lines)} lines")

    def __str__(self) -> str:
        return f"Lines({shown(self.least, self.most)})"
