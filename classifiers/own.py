"""A user's own classifier in one call, and back from its folder."""

from __future__ import annotations

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
    _check_strings("texts", texts)
    _check_strings("labels", labels)
    if groups is not None and len(groups) != len(texts):
        raise InvalidClassifierError(f"{len(groups)} groups for {len(texts)} texts: give one a text")
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
    kinds = held_kinds(folder)
    if len(kinds) > 1:
        raise InvalidClassifierError(
            f"{folder} holds classifiers of {len(kinds)} kinds ({', '.join(kinds)}): keep each in a folder of its own"
        )
    if kinds:
        found: Classifier = KINDS[kinds[0]].load(folder)  # type: ignore[attr-defined]
        return found
    raise InvalidClassifierError(
        f"{folder} holds no classifier: make one with `redraft classifiers train FILE --out {folder}`"
    )


def held_kinds(folder: Path) -> list[str]:
    """The kinds of classifier that a folder has a file of; a word judge stands beside token scores as their check."""
    kinds = [kind for kind in KINDS if (folder / f"{kind}.json").is_file()]
    return kinds if len(kinds) == 1 else [kind for kind in kinds if kind != WordScores.kind]


def vacant(folder: str | Path, kind: Kind) -> None:
    """Raise `InvalidClassifierError` unless a classifier of this kind can be saved there, in place of its like."""
    folder, own = Path(folder), TokenScores.kind if kind == "tokens" else kind
    if folder.exists() and not folder.is_dir():
        raise InvalidClassifierError(f"{folder} is a file: name a folder")
    others = [other for other in held_kinds(folder) if other != own]
    if others:
        raise InvalidClassifierError(
            f"{folder} holds a classifier of kind {others[0]}: name another folder, or delete that one"
        )


def _check_strings(what: str, values: Sequence[str]) -> None:
    if isinstance(values, str):
        raise InvalidClassifierError(f"{what} is one string: give a list of strings")
    for k, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidClassifierError(f"{what}[{k}] is {repr(value)[:40]}: give strings")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidClassifierError(
                f"{what}[{k}] has half a surrogate pair, which is no text: drop it"
            ) from error
