"""Verdicts and results as plain values and as lines of text."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redraft.denoiser.guide import Span, Verdict
    from redraft.denoiser.result import Population, Result

_MARKS = {"satisfied": "\u2713", "violated": "\u2717", "unknown": "?"}
_ASCII = {"satisfied": "+", "violated": "x", "unknown": "?"}
_MOST_EVIDENCE = 6


def as_dict(result: Result, recipe: dict[str, Any]) -> dict[str, Any]:
    """A result as one JSON object; spans are character offsets in `text`.

    `pushes` and `particles` are there only where the run had them.
    """
    table: dict[str, Any] = {
        "text": result.text,
        "seed": result.seed,
        "recipe": recipe,
        "verdicts": [verdict_dict(verdict) for verdict in result.verdicts],
        "steps": result.steps,
        "forward_passes": result.forward_passes,
        "pressure": _rounded(result.pressure, 4),
        "timing": {
            "denoiser_ms": _finite(result.timing.denoiser_ms, 2),
            "guidance_ms": _finite(result.timing.guidance_ms, 2),
            "total_ms": _finite(result.timing.total_ms, 2),
        },
    }
    if result.pushes:
        table["pushes"] = {guide: _rounded(pushes, 4) for guide, pushes in result.pushes.items()}
    if result.particles is not None:
        table["particles"] = population_dict(result.particles)
    return table


def population_dict(population: Population) -> dict[str, Any]:
    """The particles as plain values: each a text with its share and its score in nats."""
    each = zip(population.texts, population.weights, population.scores, strict=True)
    return {
        "texts": [
            {"text": text, "weight": _finite(weight, 6), "score": _finite(score, 6)}
            for text, weight, score in each
        ],
        "chosen": population.chosen,
        "log_z": _finite(population.log_z, 6),
        "ess": _rounded(population.ess, 4),
        "resampled": list(population.resampled),
    }


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    return {
        "guide": verdict.guide,
        "strength": verdict.strength,
        "status": verdict.status,
        "score": None if verdict.score is None else _finite(verdict.score, 6),
        "spans": [{"start": span.start, "end": span.end, "label": span.label} for span in verdict.spans],
        "note": verdict.note,
    }


def mark(verdict: Verdict) -> str:
    """A tick, a cross or a question mark, in what the terminal can show."""
    fancy = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return (_MARKS if fancy else _ASCII)[verdict.status]


def evidence(verdict: Verdict, text: str) -> str:
    """What a verdict rests on, in a few words: its note, the labelled places in the text, its score."""
    places = list(dict.fromkeys(_place(span, text) for span in verdict.spans if span.label))
    shown = ", ".join(places[:_MOST_EVIDENCE])
    if len(places) > _MOST_EVIDENCE:
        shown += f" and {len(places) - _MOST_EVIDENCE} more"
    score = "" if verdict.score is None else f"score {verdict.score:.2f}"
    return "; ".join(part for part in (verdict.note, shown, score) if part)


def _place(span: Span, text: str) -> str:
    piece = text[span.start : span.end].strip()
    return repr(piece) if span.label.strip() == piece else f"{piece!r} {span.label}"


def plain_line(verdict: Verdict, text: str) -> str:
    """`violated (guaranteed) Words(15-30): 12 words`."""
    shown = evidence(verdict, text)
    return f"{verdict.status} ({verdict.strength}) {verdict.guide}{f': {shown}' if shown else ''}"


def _rounded(values: Sequence[float], digits: int) -> list[float | None]:
    return [_finite(value, digits) for value in values]


def _finite(value: float, digits: int) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None
