"""How many paragraphs a text has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from redraft.denoiser import Automaton, Bound, HardGuide, Scene, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.counts import aim, check_range, shown, within
from redraft.guidance.ending import EndAnchored
from redraft.guidance.reading import BLANKS, BREAKS, over_characters

INSIDE = -1


@dataclass(frozen=True)
class Paragraphs(HardGuide):
    """At least `least` and at most `most` paragraphs (None: no upper end): runs of lines without a blank one.

    What is written has exactly one blank line between paragraphs, line feeds only, and no blank line at
    either end.
    """

    name: ClassVar[str] = "paragraphs"
    least: int
    most: int | None = None

    def __post_init__(self) -> None:
        check_range("the number of paragraphs", self.least, self.most, 1)

    def language(self, scene: Scene) -> Automaton:
        return self._automaton(scene, plain=True)

    def outer(self, scene: Scene) -> Automaton:
        """The exact language: any line break (CR LF is one), any number of blank lines."""
        return self._automaton(scene, plain=False)

    def _automaton(self, scene: Scene, *, plain: bool) -> Automaton:
        cap = self.least if self.most is None else self.most + 1

        def step(state: tuple[int, int, bool], label: str) -> tuple[int, int, bool] | None:
            count, breaks, after_return = state  # breaks since the last word, INSIDE on its own line
            if label in ("feed", "return", "break"):
                if plain and (label != "feed" or breaks == 2 or count == 0):
                    return None
                if label == "feed" and after_return:
                    return count, breaks, False  # the second half of CR LF
                return count, 1 if breaks == INSIDE else 2, label == "return"
            if label == "blank" and breaks != INSIDE:
                return None if plain else (count, breaks, False)
            return (min(count + 1, cap) if breaks == 2 else count), INSIDE, False

        def accepting(state: tuple[int, int, bool]) -> bool:
            count, breaks, _ = state
            held = within(count, self.least, self.most)
            return held and (breaks == INSIDE or not plain)

        named = {"feed": "\n", "return": "\r", "break": BREAKS - {"\n", "\r"}, "blank": BLANKS}
        language = over_characters((0, 2, False), step, accepting, named)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        return 4 + math.ceil(40 * aim(self.least, self.most, 1))

    def check(self, text: str) -> Verdict:
        runs = groupby(text.splitlines(), key=lambda line: bool(line.strip()))
        count = sum(said for said, _ in runs)
        held = within(count, self.least, self.most)
        return self.verdict(held, note=f"{count} paragraphs")

    def __str__(self) -> str:
        return f"Paragraphs({shown(self.least, self.most)})"
