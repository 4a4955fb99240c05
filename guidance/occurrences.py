"""How often a keyword occurs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.errors import UnwritableTextError
from redraft.denoiser.lift import lift
from redraft.guidance.counts import check_range, shown, within
from redraft.guidance.sequence import Group, group, in_turn, listed, occurs_in_turn, plain, spelled_in_turn

MOST = 50
"""Counts beyond this are refused: each occurrence costs as many states as the keyword has letters."""


@dataclass(frozen=True)
class Occurrences(HardGuide):
    """A keyword occurs at least `least` and at most `most` times (None: no upper end).

    `word` is a word or phrase, or several that count alike; whole and in any case unless `exact_case`, as in
    `Keywords`. Occurrences are counted from the left and do not overlap. `Occurrences("storm", 2, 2)` is
    exactly twice, `Occurrences("storm", 0, 1)` at most once.
    """

    name: ClassVar[str] = "occurrences"
    word: str | tuple[str, ...]
    least: int
    most: int | None = None
    exact_case: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "word", plain(group(self.word, "the keyword of Occurrences")))
        check_range(f"the number of times for {listed(self.options)}", self.least, self.most, 0)
        if max(self.least, self.most or 0) > MOST:
            raise InvalidGuideError(f"{self} counts further than {MOST}: ask for less")
        if self.least == 0 and self.most is None:
            raise InvalidGuideError(f"{self} asks for nothing: give a least above 0, or a most")

    @property
    def options(self) -> Group:
        """The keyword as the tuple of its alternatives."""
        return (self.word,) if isinstance(self.word, str) else self.word

    def language(self, scene: Scene) -> Automaton:
        """The keyword stands `least` times as the tokenizer spells it, and nowhere more than `most` times."""
        found = []
        if self.least:
            found.append(spelled_in_turn(scene, [self.options] * self.least, self.exact_case))
        if self.most is not None:
            found.append(~self._may(self.most + 1, scene))
        return found[0] & found[1] if len(found) == 2 else found[0]

    def outer(self, scene: Scene) -> Automaton:
        language = self._may(self.least, scene) if self.least else Automaton.all(len(scene.vocabulary))
        if self.most is None:
            return language
        try:
            more = spelled_in_turn(scene, [self.options] * (self.most + 1), self.exact_case)
        except UnwritableTextError:
            return language
        return language - more

    def _may(self, times: int, scene: Scene) -> Automaton:
        language = occurs_in_turn((self.options,) * times, True, self.exact_case)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        spans: list[Span] = in_turn(text, [self.options] * (len(text) + 1), exact_case=self.exact_case)
        held = within(len(spans), self.least, self.most)
        return self.verdict(held, None, tuple(spans), f"{len(spans)} times")

    def __str__(self) -> str:
        return f"Occurrences({listed(self.options)}, {shown(self.least, self.most)})"
