"""How many words a text has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser import Automaton, Bound, HardGuide, Scene, Verdict
from redraft.denoiser.automaton import byte_classes
from redraft.denoiser.cache import cached
from redraft.denoiser.lift import lift
from redraft.guidance.counts import aim, check_range, shown, within
from redraft.guidance.ending import EndAnchored
from redraft.guidance.space import SPACES, step_space


def _classes() -> NDArray[np.int32]:
    return byte_classes(*({byte} for space in SPACES for byte in space))


@dataclass(frozen=True)
class Words(HardGuide):
    """At least `least` and at most `most` words (None: no upper end); a word is what white space separates.

    The same count as `len(text.split())`.
    """

    name: ClassVar[str] = "words"
    least: int
    most: int | None = None

    def __post_init__(self) -> None:
        check_range("the number of words", self.least, self.most, 0)

    def language(self, scene: Scene) -> Automaton:
        cap = self.least if self.most is None else self.most + 1  # counts from here on are alike

        def step(state: tuple[int, bool, bytes], byte: int) -> tuple[int, bool, bytes]:
            count, inside, part = state
            space, part = step_space(part, byte)
            if space is None:
                return count, inside, part
            if space:
                return count, False, b""
            return (count if inside else min(count + 1, cap)), True, b""

        def accepting(state: tuple[int, bool, bytes]) -> bool:
            return within(state[0], self.least, self.most)

        language = cached(
            "words",
            (self.least, self.most),
            lambda: Automaton.build((0, False, b""), step, accepting, classes=_classes()),
        )
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        return 1 + math.ceil(1.32 * aim(self.least, self.most, 8))  # 0.86 words a token, seven eighths filled

    def check(self, text: str) -> Verdict:
        count = len(text.split())
        held = within(count, self.least, self.most)
        return self.verdict(held, note=f"{count} words")

    def __str__(self) -> str:
        return f"Words({shown(self.least, self.most)})"
