"""How many characters a text has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, Bound, HardGuide, Scene, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.counts import aim, check_range, shown, within
from redraft.guidance.ending import EndAnchored
from redraft.guidance.reading import over_characters


@dataclass(frozen=True)
class Characters(HardGuide):
    """At least `least` and at most `most` characters (None: no upper end): Unicode code points, white space
    included, the same count as `len(text)`.

    A letter with a combining mark is two, an emoji with a skin tone as well, CRLF too.
    """

    name: ClassVar[str] = "characters"
    least: int
    most: int | None = None

    def __post_init__(self) -> None:
        check_range("the number of characters", self.least, self.most, 0)

    def language(self, scene: Scene) -> Automaton:
        cap = self.least if self.most is None else self.most + 1

        def step(count: int, label: str) -> int | None:
            return None if self.most is not None and count == self.most else min(count + 1, cap)

        language = over_characters(0, step, lambda count: self.least <= count, {})
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        # 3.8 characters a token, seven eighths filled
        return 2 + math.ceil(aim(self.least, self.most, 40) / 3.3)

    def check(self, text: str) -> Verdict:
        count = len(text)
        held = within(count, self.least, self.most)
        return self.verdict(held, note=f"{count} characters")

    def __str__(self) -> str:
        return f"Characters({shown(self.least, self.most)})"
