"""Words, phrases and regexes that must not appear."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import regex

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import compile_regex
from redraft.guidance.occurrence import find, occurs, phrase


@dataclass(frozen=True, init=False)
class Forbid(HardGuide):
    """None of the phrases occurs, and no part of the text matches one of the regexes.

    Phrases are whole words in any case unless `whole` or `exact_case` say otherwise; hundreds at once are
    one automaton. Regexes use the syntax of `Pattern`.
    """

    name: ClassVar[str] = "forbid"
    variadic: ClassVar[str | None] = "phrases"
    phrases: tuple[str, ...]
    regexes: tuple[str, ...]
    whole: bool
    exact_case: bool

    def __init__(
        self, *phrases: str, regexes: Iterable[str] = (), whole: bool = True, exact_case: bool = False
    ) -> None:
        regexes = (regexes,) if isinstance(regexes, str) else tuple(regexes)
        if not phrases and not regexes:
            raise InvalidGuideError("Forbid has nothing to forbid: give at least one phrase or regex")
        for pattern in regexes:
            if compile_regex(pattern).accepts(b""):
                raise InvalidGuideError(
                    f"the forbidden regex {pattern!r} matches nothing at all, so every text: narrow it"
                )
        kept = tuple(dict.fromkeys(phrase(value, "a forbidden phrase") for value in phrases))
        for name, value in (
            ("phrases", kept),
            ("regexes", regexes),
            ("whole", whole),
            ("exact_case", exact_case),
        ):
            object.__setattr__(self, name, value)

    def language(self, scene: Scene) -> Automaton:
        return self._without(scene, sure=False)

    def outer(self, scene: Scene) -> Automaton:
        """Texts in which nothing occurs for certain; `language` also bars what touches a character beyond ASCII."""
        return self._without(scene, sure=True)

    def _without(self, scene: Scene, *, sure: bool) -> Automaton:
        banned = [occurs(self.phrases, self.whole, self.exact_case, sure=sure)] if self.phrases else []
        banned += [compile_regex(f"(?s:.*)(?:{pattern})(?s:.*)") for pattern in self.regexes]
        found = reduce(lambda a, b: a | b, banned)
        return lift(~found, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        spans = [s for p in self.phrases for s in find(text, p, whole=self.whole, exact_case=self.exact_case)]
        matches = [m for pattern in self.regexes for m in regex.finditer(pattern, text)]
        marks = (*spans, *(Span(m.start(), m.end(), m.group()) for m in matches))
        return self.verdict(
            not marks, None, marks, f"found: {', '.join(s.label for s in marks)}" if marks else ""
        )

    def __str__(self) -> str:
        listed = [repr(p) for p in self.phrases] + [f"/{r}/" for r in self.regexes]
        return f"Forbid({', '.join(listed[:6])}{f', ... {len(listed)} in all' if len(listed) > 6 else ''})"
