"""How hard a text is to read, by the Flesch-Kincaid grade."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Step, Verdict, Vocabulary
from redraft.denoiser.guide import finite
from redraft.guidance.pronunciation import estimate, line_words, syllables
from redraft.guidance.sentences import sentence_ends

USUAL, SPREAD, LENGTH = 1.21, 0.24, 9.4
"""Everyday prose (the corpus): mean and variance of a word's syllables, words a sentence; grade 2.3."""
GRADES = (0.0, 18.0)


@dataclass(frozen=True)
class ReadingLevel(SoftGuide):
    """Prefer words and sentences of a school grade: 0.39 words/sentences + 11.8 syllables/words - 15.59.

    A grade g asks for sentences of m = 7 + g words and words of s = (g + 15.59 - 0.39 m) / 11.8 syllables (on
    this line lies everyday prose, g = 2.3). Were a word's syllables normal with mean 1.21 and variance 0.24,
    their mean would become s under the bias (s - 1.21) / 0.24 (x - 1.21) nats for a word of x syllables (a
    piece inside a word counts x alone); stops get log(9.4 / m), since a sentence that may end behind each
    word with probability 1/m has m of them. The check holds within `tolerance` grades. English only.
    """

    name: ClassVar[str] = "reading-level"
    grade: float
    tolerance: float = 2.0

    def __post_init__(self) -> None:
        low, high = GRADES
        if not low <= finite(float(self.grade), "the grade of ReadingLevel") <= high:
            raise InvalidGuideError(f"the grade of ReadingLevel is {self.grade}: use {low:g} to {high:g}")
        if not finite(float(self.tolerance), "the tolerance of ReadingLevel") > 0:
            raise InvalidGuideError(f"the tolerance of ReadingLevel is {self.tolerance}: use one above 0")

    def bind(self, scene: Scene) -> Bound:
        return _BoundLevel(self, scene)

    def check(self, text: str) -> Verdict:
        grade = flesch_kincaid(text)
        if grade is None:
            return self.verdict("unknown", note="no words")
        return self.verdict(abs(grade - self.grade) <= self.tolerance, None, (), f"grade {grade:.1f}")

    def __str__(self) -> str:
        return f"ReadingLevel({self.grade:g})"


class _BoundLevel(Bound):
    def __init__(self, guide: ReadingLevel, scene: Scene) -> None:
        super().__init__(guide, scene)
        words = 7 + guide.grade
        push = ((guide.grade + 15.59 - 0.39 * words) / 11.8 - USUAL) / SPREAD
        longer, stops = _tokens(scene.vocabulary)
        self.flat = (push * longer + math.log(LENGTH / words) * stops).to(scene.device)

    def bias(self, step: Step) -> Tensor | None:
        return self.flat


def flesch_kincaid(text: str) -> float | None:
    """The grade of a text; words that cannot be counted (3, x2) have one syllable. None for no words."""
    counts = [(syllables(word, estimated=True) or (1,))[0] for _, word in line_words(text)]
    if not counts:
        return None
    ends = sentence_ends(text)
    rest = bool(line_words(text[ends[-1] if ends else 0 :]))
    return 0.39 * len(counts) / (len(ends) + rest) + 11.8 * sum(counts) / len(counts) - 15.59


@lru_cache(maxsize=8)
def _tokens(vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Two float32 vectors [V]: syllables above the usual (a piece inside a word: all of them), and stops."""
    longer, stops = torch.zeros(len(vocabulary)), torch.zeros(len(vocabulary))
    for token, raw in enumerate(vocabulary.token_bytes):
        text = (raw or b"").decode(errors="replace")
        word = text.strip()
        if word and all(char in ".!?" for char in word):
            stops[token] = 1.0
        elif word.isalpha():
            begins = text[0].isspace() or word[0].isupper()
            known = syllables(word, estimated=True) if begins else (estimate(word),)
            count = known[0] if known else None
            if count is not None:
                longer[token] = (
                    count - USUAL if begins else float(bool(set(word.lower()) & set("aeiouy"))) * count
                )
    return longer, stops
