"""How good a classifier is on texts it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redraft.classifiers.base import Classifier


@dataclass(frozen=True)
class Figures:
    """`texts`, of them `wanted` of the wanted label; shares right, of all and as the mean of both labels'.

    `auc` is the chance that a text of the wanted label scores above one of the other.
    """

    texts: int
    wanted: int
    accuracy: float
    balanced_accuracy: float
    auc: float


def measure(classifier: Classifier, texts: Sequence[str], labels: Sequence[str]) -> Figures:
    """Figures of a binary classifier (wanted label last) on labelled texts."""
    truth = np.array([label == classifier.labels[1] for label in labels], dtype=np.bool_)
    return figures(classifier.score(texts)[:, 1], truth, threshold=0.5)


def figures(scores: NDArray[np.float64], truth: NDArray[np.bool_], threshold: float) -> Figures:
    """Figures of any scores; a text counts as wanted from `threshold` on."""
    right = (scores >= threshold) == truth
    balanced = (right[truth].mean() + right[~truth].mean()) / 2
    return Figures(
        texts=len(truth),
        wanted=int(truth.sum()),
        accuracy=round(float(right.mean()), 4),
        balanced_accuracy=round(float(balanced), 4),
        auc=round(_auc(scores, truth), 4),
    )


def _auc(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """P(a wanted text's score > another's) + P(equal) / 2, from mean ranks."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n = int(truth.sum())
    return float((ranks[truth].sum() - n * (n + 1) / 2) / (n * (len(truth) - n)))
