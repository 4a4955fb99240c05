"""Sentiment: a positive or a negative tone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.guidance.tilt import Tilt, known


@dataclass(frozen=True)
class Sentiment(Tilt):
    """Prefer words of a "positive" or "negative" tone; strength is `scale * Sentiment(tone)`."""

    name: ClassVar[str] = "sentiment"
    tone: str

    def __post_init__(self) -> None:
        known(self.tone, "the tone of Sentiment", ("positive", "negative"))

    def target(self) -> tuple[str, str]:
        return "sentiment", self.tone

    def __str__(self) -> str:
        return f"Sentiment({self.tone!r})"
