"""Places in a text, shown with carets beneath them."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redraft.denoiser.guide import Span

WIDTH = 76
_MOST = 4


def excerpts(text: str, spans: Sequence[Span], *, width: int = WIDTH) -> list[str]:
    """Lines that show the text around the spans, each with a line of carets beneath; at most four places.

    A span that goes on in the next line is marked to the end of its first.
    """
    shown: list[str] = []
    places = sorted({(span.start, span.end) for span in spans if 0 <= span.start <= len(text)})
    for start, end in places[:_MOST]:
        shown += _excerpt(text, start, end, width)
    if len(places) > _MOST:
        shown.append(f"and {len(places) - _MOST} more")
    return shown


def opening(text: str, *, width: int = WIDTH) -> str:
    """The beginning of a text on one line."""
    line = "".join("\\n" if char == "\n" else _shown(char) for char in text)
    return line if len(line) <= width else f"{line[: width - 3]}..."


def _excerpt(text: str, start: int, end: int, width: int) -> list[str]:
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    end = max(min(end, stop), start)
    if stop - begin > width:  # a window with the span in its middle
        middle = (start + min(end, start + width)) // 2
        first = max(begin, min(middle - width // 2, stop - width))
        begin, stop, cut = first, min(first + width, stop), (first > begin, first + width < stop)
    else:
        cut = (False, False)
    lead = "..." if cut[0] else ""
    line = "".join(map(_shown, text[begin:stop]))
    before = " " * (len(lead) + sum(map(_cells, text[begin:start])))
    marks = "^" * max(1, sum(map(_cells, text[start : min(end, stop)])))
    number = text.count("\n", 0, start) + 1
    head = f"{number} | " if "\n" in text else "| "
    return [f"{head}{lead}{line}{'...' if cut[1] else ''}", f"{' ' * (len(head) - 2)}| {before}{marks}"]


def _shown(char: str) -> str:
    if char == "\t":
        return " "
    return char if char.isprintable() or unicodedata.category(char) in ("Mn", "Me", "Cf", "Zs") else "\ufffd"


def _cells(char: str) -> int:
    """How many columns a terminal gives a character."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
