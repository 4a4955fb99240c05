"""A user's own classifier in one call, and back from its folder."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from redraft.classifiers.base import Classifier, InvalidClassifierError
from redraft.classifiers.fitting import Shape
from redraft.classifiers.heads import numbered
from redraft.classifiers.noise_aware import NoiseAware
from redraft.classifiers.sentence_head import SentenceHead
from redraft.classifiers.token_scores import TokenScores
from redraft.classifiers.words import WordScores
from redraft.denoiser.vocabulary import Vocabulary

Kind = Literal["sentence", "noise-aware", "tokens"]
KINDS: dict[str, type] = {cls.kind: cls for cls in (TokenScores, SentenceHead, NoiseAware, WordScores)}
FEW = Shape(least=2, shrink=2.0, most=3.0, keep=8000)
"""For a few dozen texts; what ships learns from thousands."""


def fit(
    texts: Sequence[str],
    labels: Sequence[str],
    kind: Kind = "sentence",
    *,
    name: str = "own",
    groups: Sequence[str] | None = None,
    vocabulary: Vocabulary | None = None,
    model: str | None = None,
) -> TokenScores | SentenceHead | NoiseAware:
    """A calibrated classifier of your own texts; a few dozen a label are enough for "sentence".

    `kind`: "sentence" (sentence embeddings), "noise-aware" (the denoiser's hidden states) or "tokens" (weights of
    tokens; exactly two labels, the wanted one last in sorted order; its bias is exact and costs least).
    `model` is the encoder, or the denoiser; `vocabulary` what "tokens" splits texts with (the embedded one's).
    Raises `InvalidClassifierError` for texts it cannot learn from.
    """
    if kind not in get_args(Kind):
        raise InvalidClassifierError(f"kind is {kind!r}: use one of {', '.join(get_args(Kind))}")
    own = tuple(sorted(set(labels)))
    numbered(texts, labels, own)
    if kind == "sentence":
        head = SentenceHead(name, own, encoder=model) if model else SentenceHead(name, own)
        return head.fit(texts, labels, groups)
    if kind == "noise-aware":
        aware = NoiseAware(name, own, denoiser=model) if model else NoiseAware(name, own)
        return aware.fit(texts, labels, groups)
    if len(own) != 2:
        raise InvalidClassifierError(
            f"token scores tell two labels apart, and there are {len(own)}: use 'sentence'"
        )
    if vocabulary is None:
        from redraft.denoiser.load import load

        vocabulary = load(model or "embedded").vocabulary
    scores = TokenScores(name, (own[0], own[1]), vocabulary=vocabulary)
    return scores.fit(texts, labels, groups, FEW if len(texts) < 2000 else None)


def load_classifier(folder: str | Path) -> Classifier:
    """The classifier of a folder, whatever its kind; raises `InvalidClassifierError` where there is none."""
    folder = Path(folder)
    for kind, cls in KINDS.items():
        if (folder / f"{kind}.json").is_file():
            found: Classifier = cls.load(folder)  # type: ignore[attr-defined]
            return found
    raise InvalidClassifierError(
        f"{folder} holds no classifier: make one with `redraft classifiers train FILE --out {folder}`"
    )


def read_labelled(path: str | Path) -> tuple[list[str], list[str]]:
    """(texts, labels) of a file: `label<TAB>text` lines, JSON lines or CSV with the keys "label" and "text".

    The kind is told by the name's end (.jsonl, .json, .csv), else it is tabs. Empty lines are passed over.
    """
    path = Path(path)
    texts, labels = [], []
    for number, pair in _pairs(path):
        label, text = (str(part).strip() if part is not None else "" for part in pair)
        if not label or not text:
            raise InvalidClassifierError(
                f"{path} line {number}: a label and a text are needed: {_form(path)}"
            )
        texts.append(text)
        labels.append(label)
    if not texts:
        raise InvalidClassifierError(f"{path} has no texts: {_form(path)}")
    return texts, labels


def _form(path: Path) -> str:
    if path.suffix == ".csv":
        return "give a header with the columns label and text"
    if path.suffix in (".jsonl", ".json"):
        return 'write {"label": ..., "text": ...}, one a line'
    return "write label<TAB>text, one a line"


def _pairs(path: Path) -> list[tuple[int, tuple[str | None, str | None]]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            return [(rows.line_num, (row.get("label"), row.get("text"))) for row in rows]
    lines = [
        (k, line)
        for k, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1)
        if line.strip()
    ]
    if path.suffix in (".jsonl", ".json"):
        found = []
        for number, line in lines:
            try:
                table = json.loads(line)
                found.append((number, (table["label"], table["text"])))
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidClassifierError(f"{path} line {number}: {_form(path)}") from error
        return found
    split = [(number, line.partition("\t")) for number, line in lines]
    return [(number, (label, text)) for number, (label, _, text) in split]
