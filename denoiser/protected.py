"""A phrase that a rewriting keeps as the words it was: what is written beside it does not grow onto it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.guide import HardGuide, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import compile_regex
from redraft.denoiser.step import Scene

_ANY = r"[\s\S]*"


@dataclass(frozen=True)
class Protected(HardGuide):
    """`phrase` occurs `count` times apart from each other, with no letter or digit before it (`left`) or behind it
    (`right`)."""

    name: ClassVar[str] = "protected"
    phrase: str
    count: int = 1
    left: bool = True
    right: bool = True

    @classmethod
    def of(cls, phrase: str, text: str) -> Protected | None:
        """What holds of each occurrence of `phrase` in `text`; None where a letter stands at either side of one."""
        places = [found.span() for found in re.finditer(re.escape(phrase), text)]
        left = all(not _may_join(text[a - 1 : a]) for a, _ in places) and _may_join(phrase[0])
        right = all(not _may_join(text[b : b + 1]) for _, b in places) and _may_join(phrase[-1])
        return cls(phrase, len(places), left, right) if places and (left or right) else None

    def language(self, scene: Scene) -> Automaton:
        before = rf"(?:{_ANY}\W)?" if self.left else _ANY
        behind = rf"(?:\W{_ANY})?" if self.right else _ANY
        between = {
            (True, True): rf"\W(?:{_ANY}\W)?",
            (True, False): rf"{_ANY}\W",
            (False, True): rf"\W{_ANY}",
            (False, False): _ANY,
        }[self.left, self.right]
        wanted = re.escape(self.phrase)
        pattern = before + between.join([wanted] * self.count) + behind
        return lift(compile_regex(pattern), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        spans = [
            Span(*found.span())
            for found in re.finditer(re.escape(self.phrase), text)
            if not (self.left and _joins(text[found.start() - 1 : found.start()]))
            and not (self.right and _joins(text[found.end() : found.end() + 1]))
        ]
        return self.verdict(len(spans) >= self.count, spans=tuple(spans[: self.count]))

    def __str__(self) -> str:
        return f"Protected({self.phrase!r})"


def _joins(char: str) -> bool:
    """Whether a character is surely part of a word in every reading of Unicode."""
    return bool(char) and (
        unicodedata.category(char)[0] in "LM" or unicodedata.category(char) in ("Nd", "Pc")
    )


def _may_join(char: str) -> bool:
    """Whether a character is part of a word in some reading of Unicode."""
    return bool(char) and (
        unicodedata.category(char)[0] in "LMN"
        or unicodedata.category(char) in ("Pc", "So")
        or char in "\u200c\u200d"
    )
