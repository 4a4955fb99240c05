"""Texts that end in a given way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import compile_regex
from redraft.guidance.edges import Edge


@dataclass(frozen=True, init=False)
class EndsWith(Edge):
    """The text ends with one of `texts`, exactly (in any case where `ignore_case`)."""

    name: ClassVar[str] = "ends-with"

    def language(self, scene: Scene) -> Automaton:
        language = compile_regex(f"(?s).*(?:{self.pattern(scene)})")
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        size = len(text)
        found = [w for w in self.texts if len(w) <= size and self.same(text[size - len(w) :], w)]
        return self.verdict(bool(found), None, tuple(Span(size - len(w), size) for w in found))
