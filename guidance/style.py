"""Style: formal, casual, old-fashioned or plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.guidance.push import probability
from redraft.guidance.tilt import Tilt, known

STYLES = ("formal", "casual", "old-fashioned", "plain")


@dataclass(frozen=True)
class Style(Tilt):
    """Prefer the words of a style: "formal" (letters, notices), "casual" (messages, diaries),
    "old-fashioned" (tales) or "plain" (how things are and work); strength is `scale * Style(style)`, or the
    least that makes `target`, a probability such as 0.9, by the guide's own classifier."""

    name: ClassVar[str] = "style"
    style: str
    target: float | None = None

    def __post_init__(self) -> None:
        known(self.style, "the style of Style", STYLES)
        probability(self.target, str(self))

    def wanted(self) -> tuple[str, str]:
        return f"style-{self.style}", self.style

    def __str__(self) -> str:
        target = "" if self.target is None else f", target={self.target:g}"
        return f"Style({self.style!r}{target})"
