"""Texts that begin in a given way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import compile_regex
from redraft.guidance.edges import Edge


@dataclass(frozen=True, init=False)
class StartsWith(Edge):
    """The text begins with one of `texts`, exactly (in any case where `ignore_case`)."""

    name: ClassVar[str] = "starts-with"

    def language(self, scene: Scene) -> Automaton:
        language = compile_regex(f"(?s)(?:{self.pattern(scene)}).*")
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        found = [wanted for wanted in self.texts if self.same(text[: len(wanted)], wanted)]
        return self.verdict(bool(found), None, tuple(Span(0, len(wanted)) for wanted in found))
