"""A regular expression that the whole text matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import regex

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import compile_regex
from redraft.guidance.counts import shorten


@dataclass(frozen=True)
class Pattern(HardGuide):
    """The whole text matches `pattern` (Rust regex syntax: Unicode classes, `(?i)`, bounded repeats).

    No lookaround, backreferences or `\\b`: join patterns with `&`, `|` and `~` instead.
    """

    name: ClassVar[str] = "pattern"
    pattern: str

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern:
            raise InvalidGuideError(f"the pattern is {self.pattern!r}: give a regular expression")
        if compile_regex(self.pattern).empty():
            raise InvalidGuideError(f"the pattern {self.pattern!r} matches no text: relax it")

    def language(self, scene: Scene) -> Automaton:
        return lift(compile_regex(self.pattern), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        try:
            return self.verdict(regex.fullmatch(self.pattern, text) is not None)
        except regex.error as error:
            return self.verdict("unknown", note=f"Python's regex cannot read the pattern: {error}")

    def __str__(self) -> str:
        return f"Pattern({shorten(self.pattern)!r})"
