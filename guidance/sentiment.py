"""Sentiment: a positive or a negative tone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.guidance.push import probability
from redraft.guidance.tilt import Tilt, known


@dataclass(frozen=True)
class Sentiment(Tilt):
    """Prefer words of a "positive" or "negative" tone; strength is `scale * Sentiment(tone)`, or the
    least that makes `target`, a probability such as 0.9, by the guide's own classifier."""

    name: ClassVar[str] = "sentiment"
    tone: str
    target: float | None = None

    def __post_init__(self) -> None:
        known(self.tone, "the tone of Sentiment", ("positive", "negative"))
        probability(self.target, str(self))

    def wanted(self) -> tuple[str, str]:
        return "sentiment", self.tone

    def __str__(self) -> str:
        target = "" if self.target is None else f", target={self.target:g}"
        return f"Sentiment({self.tone!r}{target})"
