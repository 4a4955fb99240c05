"""Fit a calibrated logistic regression on sets of keys; with `head_fitting.py` all that needs scikit-learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.classifiers.base import InvalidClassifierError, needs_sklearn

FOLDS = 4
STRENGTHS = (0.03, 0.1, 0.3, 1.0)
"""Values of C (inverse L2 strength) that cross-validation chooses from."""


@dataclass(frozen=True)
class Shape:
    """Guards against rare keys: at least `least` texts hold a key; its weight is shrunk by n / (n + `shrink`)
    for n texts and cut off at `most` nats; the `keep` keys of largest |weight| * sqrt(n) are kept."""

    least: int
    shrink: float
    most: float
    keep: int


def fit_table(
    documents: Sequence[frozenset[bytes]],
    truth: NDArray[np.bool_],
    groups: Sequence[str] | None,
    shape: Shape,
) -> tuple[dict[bytes, float], float]:
    """(weights, intercept) with logit P(true | document) = intercept + sum of its keys' weights, in nats.

    L2 logistic regression on presence, classes weighted as if equally common; C by the log-loss of
    cross-validation (whole groups held out where every class has two), then slope and offset of the logit
    refitted on the held-out logits (Platt) and folded into the weights. Deterministic.
    """
    if len(documents) != len(truth) or bool(truth.all()) or not bool(truth.any()):
        raise InvalidClassifierError(
            f"{len(documents)} texts with {int(truth.sum())} of the wanted label: give texts of both labels"
        )
    found = Counter(key for document in documents for key in document)
    keys = sorted(key for key, n in found.items() if n >= shape.least)
    if not keys:
        raise InvalidClassifierError(
            f"nothing occurs in {shape.least} of {len(documents)} texts: give more texts"
        )
    counts = np.array([found[key] for key in keys], dtype=np.float64)
    matrix = _presence(documents, keys)
    folds = _folds(truth, groups)
    best = min(
        ((_held_out(matrix, truth, folds, c, counts, shape), c) for c in STRENGTHS), key=lambda r: r[0][0]
    )
    (_, slope, offset), c = best
    weights, intercept = _solve(matrix, truth, c, counts, shape)
    kept = np.argsort(-np.abs(weights) * np.sqrt(counts), kind="stable")[: shape.keep]
    table = {keys[k]: round(float(slope * weights[k]), 4) for k in kept}
    return {k: float(np.float32(w)) for k, w in table.items() if w}, round(
        float(slope * intercept + offset), 4
    )


def _presence(documents: Sequence[frozenset[bytes]], keys: Sequence[bytes]) -> Any:
    needs_sklearn()
    from scipy.sparse import csr_matrix

    number = {key: k for k, key in enumerate(keys)}
    rows = [sorted(number[key] for key in document if key in number) for document in documents]
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.array([k for row in rows for k in row], dtype=np.int64)
    return csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(rows), len(keys)))


def _solve(
    matrix: Any, truth: NDArray[np.bool_], c: float, counts: NDArray[np.float64], shape: Shape
) -> tuple[NDArray[np.float64], float]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=c, class_weight="balanced", max_iter=1000).fit(matrix, truth)
    weights = (model.coef_[0] * counts / (counts + shape.shrink)).clip(-shape.most, shape.most)
    return weights, float(model.intercept_[0])


def _held_out(
    matrix: Any,
    truth: NDArray[np.bool_],
    folds: NDArray[np.int64],
    c: float,
    counts: NDArray[np.float64],
    shape: Shape,
) -> tuple[float, float, float]:
    """(balanced log-loss, slope, offset) of held-out logits after the best slope and offset."""
    from sklearn.linear_model import LogisticRegression

    logits = np.zeros(len(truth))
    for fold in range(int(folds.max()) + 1):
        rest, here = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        weights, intercept = _solve(matrix[rest], truth[rest], c, counts, shape)
        logits[here] = matrix[here] @ weights + intercept
    platt = LogisticRegression(C=1e6, class_weight="balanced").fit(logits[:, None], truth)
    slope, offset = max(float(platt.coef_[0, 0]), 0.05), float(platt.intercept_[0])
    loss = np.logaddexp(0.0, np.where(truth, -1.0, 1.0) * (slope * logits + offset))
    return float((loss[truth].mean() + loss[~truth].mean()) / 2), slope, offset


def _folds(truth: NDArray[np.bool_], groups: Sequence[str] | None) -> NDArray[np.int64]:
    """A fold for each text; groups stay whole if each class then has texts in two folds, else they don't."""
    if groups is not None:
        names = np.array(groups)
        own = sorted(set(groups), key=lambda g: (-float(truth[names == g].mean()), g))
        number = {group: k % FOLDS for k, group in enumerate(own)}
        folds = np.array([number[group] for group in groups], dtype=np.int64)
        if all(len(set(folds[truth == side].tolist())) > 1 for side in (True, False)):
            return folds
    folds = np.zeros(len(truth), dtype=np.int64)
    for side in (True, False):
        where = np.flatnonzero(truth == side)
        folds[where] = np.arange(len(where)) % min(FOLDS, max(len(where), 1))
    return folds
