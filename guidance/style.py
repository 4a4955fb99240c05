"""Style: formal, casual, old-fashioned or plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.guidance.tilt import Tilt, known

STYLES = ("formal", "casual", "old-fashioned", "plain")


@dataclass(frozen=True)
class Style(Tilt):
    """Prefer the words of a style: "formal" (letters, notices), "casual" (messages, diaries),
    "old-fashioned" (tales) or "plain" (how things are and work); strength is `scale * Style(style)`."""

    name: ClassVar[str] = "style"
    style: str

    def __post_init__(self) -> None:
        known(self.style, "the style of Style", STYLES)

    def target(self) -> tuple[str, str]:
        return f"style-{self.style}", self.style

    def __str__(self) -> str:
        return f"Style({self.style!r})"
