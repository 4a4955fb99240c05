"""Likeness of meaning by sentence embeddings, for `denoiser.rewrite(..., similarity=meaning())`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redraft.classifiers.sentences import OFFLINE, sentence_encoder


def meaning(encoder: str = OFFLINE) -> Callable[[str, Sequence[str]], list[float]]:
    """A function of a text and others: the cosine of the first with each, in [-1, 1]; an empty text has 0."""
    model = sentence_encoder(encoder)

    def similarity(text: str, others: Sequence[str]) -> list[float]:
        found = model.embed([text, *others])
        cosines: list[float] = (found[1:] @ found[0]).tolist()
        return [value if other.strip() else 0.0 for value, other in zip(cosines, others, strict=True)]

    return similarity
