"""A regular expression that the whole text, or some part of it, matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import regex

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.pattern import alternatives
from redraft.denoiser.regex import compile_regex, compile_search
from redraft.guidance.counts import shorten


@dataclass(frozen=True)
class Pattern(HardGuide):
    """The whole text matches `pattern` (Rust regex syntax: Unicode classes, `(?i)`, bounded repeats).

    With `contains` some part of the text matches; `^` and `$` then hold it at an end of the text.
    No lookaround, backreferences or `\\b`: join patterns with `&`, `|` and `~` instead.
    """

    name: ClassVar[str] = "pattern"
    pattern: str
    contains: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str) or not self.pattern:
            raise InvalidGuideError(f"the pattern is {self.pattern!r}: give a regular expression")
        if self._texts().empty():
            raise InvalidGuideError(f"the pattern {self.pattern!r} matches no text: relax it")

    def language(self, scene: Scene) -> Automaton:
        return lift(self._texts(), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def _texts(self) -> Automaton:
        return (compile_search if self.contains else compile_regex)(self.pattern)

    def check(self, text: str) -> Verdict:
        try:
            if not self.contains:
                return self.verdict(regex.fullmatch(self.pattern, text) is not None)
            found = search(self.pattern, text)
            return self.verdict(found is not None, spans=() if found is None else (Span(*found.span()),))
        except regex.error as error:
            return self.verdict("unknown", note=f"Python's regex cannot read the pattern: {error}")

    def __str__(self) -> str:
        return f"Pattern({shorten(self.pattern)!r}{', contains=True' if self.contains else ''})"


def search(pattern: str, text: str) -> regex.Match[str] | None:
    """Where `pattern` matches in `text`, by Python's `regex`; `$` is the very end, as Rust has it."""
    parts = (regex.search(part.to_python(), text) for part in alternatives(pattern))
    return next((found for found in parts if found is not None), None)
