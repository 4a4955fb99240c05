"""Train what ships: `train_shipped(corpus, out, vocabulary)`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from redraft.classifiers.corpus import Passage, read_corpus
from redraft.classifiers.linear import Linear
from redraft.classifiers.measure import measure
from redraft.classifiers.shipped import SHIPPED
from redraft.classifiers.token_scores import TokenScores
from redraft.classifiers.words import WordScores
from redraft.denoiser.vocabulary import Vocabulary

GENRES = {"formal": "formal", "casual": "casual", "old-fashioned": "tale", "plain": "plain"}
FIRST_TOKENS = 10
"""Hands below this number wrote for the judge, the others for the token scores; neither sees the other's."""

C = TypeVar("C", bound=Linear)
Labelled = tuple[Sequence[str], Sequence[str]]


def train_shipped(
    corpus: Path, out: Path, vocabulary: Vocabulary, elsewhere: Mapping[str, Labelled] | None = None
) -> dict[str, dict[str, Any]]:
    """Train every pair of `SHIPPED` and write it to `out/NAME`; returns the cards. Deterministic.

    The held-out figures of each are on the other's hands: writers it has never seen. `elsewhere` names
    further texts, labelled "positive" or "negative", to judge the sentiment pair on, never to train on.
    """
    passages = read_corpus(corpus)
    cards = {}
    for name, labels in SHIPPED.items():
        examples = [(p, label) for p in passages if (label := _label(p, labels)) is not None]
        own = [e for e in examples if e[0].hand >= FIRST_TOKENS]
        other = [e for e in examples if e[0].hand < FIRST_TOKENS]
        tokens = _fit(TokenScores(name, labels, vocabulary=vocabulary), own)
        judge = _fit(WordScores(name, labels), other)
        card = {
            "name": name,
            "labels": list(labels),
            "licence": "CC0-1.0",
            "data": f"the passages of corpus/, {_task(labels)}",
            "method": "L2 logistic regression on presence, both labels weighted as equally common, C by "
            "cross-validation, calibrated on held-out logits; weights in nats",
            "token-scores": _side(tokens, own, other, elsewhere if name == "sentiment" else None),
            "words": _side(judge, other, own, elsewhere if name == "sentiment" else None),
        }
        tokens.save(out / name)
        judge.save(out / name)
        (out / name / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
        cards[name] = card
    return cards


def examples(passages: Sequence[Passage], name: str, *, judge: bool) -> Labelled:
    """(texts, labels) of the hands that the token scores, or the judge, of a shipped pair learn from."""
    pairs = [
        (p.text, label)
        for p in passages
        if (p.hand < FIRST_TOKENS) == judge and (label := _label(p, SHIPPED[name])) is not None
    ]
    return [text for text, _ in pairs], [label for _, label in pairs]


def _label(passage: Passage, labels: tuple[str, str]) -> str | None:
    if labels == SHIPPED["sentiment"]:
        return {"+": "positive", "-": "negative"}.get(passage.tone)
    return labels[1] if passage.genre == GENRES[labels[1]] else labels[0]


def _task(labels: tuple[str, str]) -> str:
    if labels == SHIPPED["sentiment"]:
        return "those marked + against those marked -; neutral ones left out"
    return f"genre {GENRES[labels[1]]!r} against all other genres"


def _fit(classifier: C, pairs: Sequence[tuple[Passage, str]]) -> C:
    return classifier.fit(
        [p.text for p, _ in pairs], [label for _, label in pairs], [str(p.hand) for p, _ in pairs]
    )


def _side(
    classifier: Linear,
    own: Sequence[tuple[Passage, str]],
    other: Sequence[tuple[Passage, str]],
    elsewhere: Mapping[str, Labelled] | None,
) -> dict[str, Any]:
    side = {
        "hands": sorted({p.hand for p, _ in own}),
        "passages": len(own),
        "of_them_wanted": sum(label == classifier.labels[1] for _, label in own),
        "weights": len(classifier.table),
        "held_out_hands": sorted({p.hand for p, _ in other}),
        "held_out": asdict(measure(classifier, [p.text for p, _ in other], [label for _, label in other])),
    }
    if elsewhere:
        side["elsewhere"] = {
            name: asdict(measure(classifier, *labelled)) for name, labelled in elsewhere.items()
        }
    return side
