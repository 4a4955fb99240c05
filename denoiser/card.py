"""A result as a small piece of HTML, for notebooks: no script, no style sheet, nothing from outside."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redraft.denoiser.guide import Span, Verdict
    from redraft.denoiser.result import Result

MARKS = {"satisfied": "\u2713", "violated": "\u2717", "unknown": "?"}
_COLOURS = {"satisfied": "#2e8b57", "violated": "#d9443f", "unknown": "#b8860b"}
_SPOT = "background:rgba(255,196,0,.35);color:inherit;border-radius:.2em"


def escaped(text: object) -> str:
    """Text as HTML that shows it as it is: no tags, no control characters, no reordering of what is around."""
    return html.escape("".join(map(_seen, str(text))), quote=True)


def marked(text: str, spans: Sequence[Span], *, style: str = "") -> str:
    """Text as HTML with the characters of the spans in `<mark>`; a span's label is its tooltip."""
    where = sorted((s for s in spans if 0 <= s.start < s.end <= len(text)), key=lambda s: (s.start, s.end))
    parts, at = [], 0
    look = f' style="{style}"' if style else ""
    for span in where:
        begin = max(span.start, at)
        if begin >= span.end:
            continue
        hint = f' title="{escaped(span.label)}"' if span.label else ""
        parts.append(f"{escaped(text[at:begin])}<mark{look}{hint}>{escaped(text[begin : span.end])}</mark>")
        at = span.end
    return "".join(parts) + escaped(text[at:])


def curve(values: Sequence[float], *, width: int = 440, height: int = 150) -> str:
    """The pressure of each step as an inline SVG line, in the colour of the text around it."""
    finite = [value if math.isfinite(value) else 0.0 for value in values]
    if not finite:
        return ""
    top = max(*finite, 1e-9) if len(finite) > 1 else max(finite[0], 1e-9)
    left, right, above, below = 52, 12, 12, 28
    across, down = width - left - right, height - above - below
    points = [
        (left + across * (k / max(len(finite) - 1, 1)), above + down * (1 - value / top))
        for k, value in enumerate(finite)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>step {k + 1}: {value:.2f} nats</title></circle>'
        for k, ((x, y), value) in enumerate(zip(points, finite, strict=True))
    )
    base = above + down
    said = f"pressure by step: from {finite[0]:.2f} to {finite[-1]:.2f} nats, at most {max(finite):.2f}"
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{said}" width="100%" '
        f'style="max-width:36em" fill="currentColor" font-size="12.5" font-family="sans-serif">'
        f'<path d="M{left} {above}V{base}H{width - right}" fill="none" stroke="currentColor" opacity=".4"/>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="2"/>{dots}'
        f'<text x="{left - 8}" y="{above + 5}" text-anchor="end">{_short(top)}</text>'
        f'<text x="{left - 8}" y="{base}" text-anchor="end">0</text>'
        f'<text x="{left}" y="{height - 8}">step 1</text>'
        f'<text x="{width - right}" y="{height - 8}" text-anchor="end">step {len(finite)}</text></svg>'
    )


def card(result: Result) -> str:
    """The text with what the verdicts rest on, a line for each verdict, the pressure, how to have it again."""
    spans = [
        span for verdict in result.verdicts if verdict.strength == "guaranteed" for span in _few(verdict)
    ]
    rows = "".join(_row(verdict) for verdict in result.verdicts)
    foot = (
        f"seed {result.seed}, {_count(result.forward_passes, 'forward pass', 'forward passes')}, "
        f"{result.timing.total_ms / 1e3:.1f} s"
    )
    return (
        '<div style="max-width:44em;line-height:1.5">'
        '<blockquote style="margin:.5em 0;padding:.2em 1em;border-left:.25em solid #888;'
        f'white-space:pre-wrap;overflow-wrap:anywhere" dir="auto">{marked(result.text, spans, style=_SPOT)}'
        "</blockquote>"
        f'<table style="border-collapse:collapse;text-align:left">{rows}</table>'
        f'<details><summary style="opacity:.75">{foot}</summary>{curve(result.pressure)}'
        f"<p>pressure: how much the guaranteed guides fought the denoiser, in nats, step by step</p></details></div>"
    )


def standalone(body: str, title: str) -> str:
    """A whole page around a piece of HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escaped(title)}</title></head>"
        f'<body style="font-family:system-ui,sans-serif;margin:1rem">{body}</body></html>\n'
    )


def _row(verdict: Verdict) -> str:
    colour = _COLOURS[verdict.status]
    score = "" if verdict.score is None else f"score {verdict.score:.2f}"
    about = "; ".join(part for part in (verdict.note, score) if part)
    pad = "padding:.1em .8em .1em 0;text-align:left;vertical-align:baseline"
    cell = f'<td style="{pad};overflow-wrap:anywhere">'
    return (
        f'<tr><td style="{pad};color:{colour}" title="{verdict.status}">{MARKS[verdict.status]}</td>'
        f'<td style="{pad};white-space:nowrap">{escaped(verdict.strength)}</td>'
        f"{cell}<code>{escaped(verdict.guide)}</code></td>{cell}{escaped(about)}</td></tr>"
    )


def _few(verdict: Verdict) -> Sequence[Span]:
    """Spans that point at something: a label, and no more of them than a reader can take in."""
    return [span for span in verdict.spans if span.label][:40]


def _seen(char: str) -> str:
    """A character as a page can show it: control characters as pictures, what reorders or is no text as U+FFFD."""
    code = ord(char)
    if char in "\n\t" or (code >= 0xA0 and char.isprintable()):
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    kind = unicodedata.category(char)
    reorders = (
        code in (0x061C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E) or 0x2066 <= code <= 0x2069
    )
    return "\ufffd" if kind in ("Cc", "Cs", "Cn") or reorders else char


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
