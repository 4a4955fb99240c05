"""The classifiers inside the package: token scores to steer by, a judge by other writers to check with."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from redraft.classifiers.base import InvalidClassifierError
from redraft.classifiers.token_scores import TokenScores
from redraft.classifiers.words import WordScores

DATA = Path(__file__).resolve().parent / "data"
SHIPPED: dict[str, tuple[str, str]] = {
    "sentiment": ("negative", "positive"),
    "style-formal": ("other", "formal"),
    "style-casual": ("other", "casual"),
    "style-old-fashioned": ("other", "old-fashioned"),
    "style-plain": ("other", "plain"),
}
"""Names and labels; the wanted label last."""


@dataclass(frozen=True)
class Shipped:
    """One shipped pair, trained on different writers, and its card (data, licence, held-out figures)."""

    tokens: TokenScores
    judge: WordScores
    card: dict[str, Any]


@cache
def shipped(name: str) -> Shipped:
    """Load a pair by name; raises `InvalidClassifierError` for a name that is not in `SHIPPED`."""
    if name not in SHIPPED:
        raise InvalidClassifierError(f"no classifier {name!r} ships: use one of {', '.join(SHIPPED)}")
    return load_pair(DATA / name)


def load_pair(folder: Path) -> Shipped:
    """Load a folder that holds token scores, word scores and a card."""
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidClassifierError(
            f"{folder / 'card.json'} cannot be read ({error}): train it again"
        ) from error
    return Shipped(TokenScores.load(folder), WordScores.load(folder), card)
