"""The canvas over steps, and who committed what when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from redraft.denoiser.card import escaped
from redraft.recipes.page.pieces import Pieces
from redraft.recipes.page.recorder import Frame
from redraft.recipes.page.style import LEVELS

LONG = 12  # tokens without a space between them that stay on one line
WHO = {"selection": "", "only token": "only", "anchor": "anchor"}


@dataclass(frozen=True)
class Fate:
    """What finally became of one position: the frame that committed it for good, and how often it was reopened."""

    position: int
    token: int
    frame: Frame | None
    reopened: int = 0

    @property
    def who(self) -> str:
        """What committed it, in words."""
        if self.frame is None:
            return "given"
        reason = self.frame.reasons[self.position]
        return f"{self.frame.anchors[self.position]}" if reason == "anchor" else reason or "selection"


def fates(tokens: Sequence[int], frames: Sequence[Frame]) -> list[Fate]:
    """The fate of every position of a text."""
    found = []
    for i, token in enumerate(tokens):
        shown = [frame for frame in frames if i < len(frame.draft)]  # the others end with an earlier block
        held = [frame for frame in shown if frame.committed[i]]
        found.append(Fate(i, token, held[-1] if held else None, sum(frame.reopened[i] for frame in shown)))
    return found


def film(frames: Sequence[Frame], pieces: Pieces) -> str:
    """One list item a step: what is committed, what is new, what is only drafted, what was reopened."""
    items = []
    for frame in frames:
        classes = [
            "back" if again else "new" if new else "open" if was_open else ""
            for again, new, was_open in zip(frame.reopened, frame.committed, frame.open, strict=True)
        ]
        said = [f"<b>step {frame.index + 1}</b> of {frame.steps}", f"{sum(frame.committed)} committed"]
        if any(frame.reopened):
            said.append(f"{sum(frame.reopened)} reopened")
        if math.isfinite(frame.pressure):
            said.append(f"pressure {frame.pressure:.2f} nats")
        head = "".join(f"<span>{part}</span>" for part in said)
        items.append(
            f'<li class="frame"><div class="head soft">{head}</div>'
            f'<p dir="auto">{pieces.run(frame.draft, classes)}</p></li>'
        )
    return f'<ol class="film">{"".join(items)}</ol>'


def commits(end: Sequence[Fate], pieces: Pieces) -> str:
    """The final text, the step of each token above it, tinted from early to late, marked by who committed it."""
    steps = max((fate.frame.index + 1 for fate in end if fate.frame), default=1)
    words: list[str] = []
    for fate in in_text(end, pieces):
        number = 0 if fate.frame is None else fate.frame.index + 1
        reason = "" if fate.frame is None else WHO.get(fate.frame.reasons[fate.position], "")
        level = math.ceil(LEVELS * number / steps)
        when = f"step {number}" if number else "given"
        hint = f"position {fate.position}, {when}, {fate.who}"
        space, shown = split(pieces.text(fate.token))
        token = (
            f'<ruby class="t w{level} {reason}" title="{escaped(hint)}">{shown}<rt>{number or ""}</rt></ruby>'
        )
        if space or not words or words[-1].count("<ruby") >= LONG:
            words.append(f"{space}{token}")
        else:
            words[-1] += token
    parts = [f'{" " * (len(w) - len(w.lstrip(" ")))}<span class="word">{w.lstrip(" ")}</span>' for w in words]
    return f'<div class="flow steps" dir="auto">{"".join(parts)}</div>'


def split(piece: str) -> tuple[str, str]:
    """A token's leading white space, which lines may break at, and the rest as HTML; all of it where it is blank."""
    rest = piece.lstrip(" ")
    return ("", escaped(piece)) if not rest else (piece[: len(piece) - len(rest)], escaped(rest))


def in_text(end: Sequence[Fate], pieces: Pieces) -> Sequence[Fate]:
    """The positions that belong to the text, and its end."""
    return end[: pieces.size([fate.token for fate in end]) + 1]
