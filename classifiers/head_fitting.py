"""Fit a softmax head on features; needs scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
"""Values of C (inverse L2 strength) that cross-validation chooses from."""
FOLDS = 4
TEMPERATURES = np.exp(np.linspace(np.log(0.05), np.log(20.0), 241))


def fit_head(
    examples: Array, truth: NDArray[np.int64], labels: int, groups: Sequence[str] | None
) -> tuple[Array, Array, float]:
    """(weights [K, D], offsets [K], temperature) from examples [N, M, D]: M rows of each of N texts.

    Multinomial logistic regression with labels weighted as equally common; C by the log-loss of
    cross-validation, texts (or whole groups) held out, after the best temperature, which is kept.
    Features are standardised while fitting, which is folded back into the weights. Deterministic.
    """
    folds = _folds(truth, groups)
    best = min((_held_out(examples, truth, labels, folds, c) + (c,) for c in STRENGTHS), key=lambda r: r[0])
    weights, offsets = _solve(examples, truth, labels, best[2])
    return weights, offsets, best[1]


def fit_temperature(logits: Array, truth: NDArray[np.int64]) -> float:
    """The T on a grid from 0.05 to 20 with the least log-loss of softmax(logits / T), labels equally common."""
    return float(TEMPERATURES[int(np.argmin([loss(logits / t, truth) for t in TEMPERATURES]))])


def loss(logits: Array, truth: NDArray[np.int64]) -> float:
    """Mean over labels of the mean -log softmax(logits)[truth], nats."""
    shifted = logits - logits.max(-1, keepdims=True)
    nats = np.log(np.exp(shifted).sum(-1)) - shifted[np.arange(len(truth)), truth]
    return float(np.mean([nats[truth == k].mean() for k in np.unique(truth)]))


def _held_out(
    examples: Array, truth: NDArray[np.int64], labels: int, folds: NDArray[np.int64], c: float
) -> tuple[float, float]:
    """(loss, temperature) of each text's first row, predicted without that text."""
    logits = np.zeros((len(truth), labels))
    for fold in range(int(folds.max()) + 1):
        here = folds == fold
        weights, offsets = _solve(examples[~here], truth[~here], labels, c)
        logits[here] = examples[here, 0] @ weights.T + offsets
    temperature = fit_temperature(logits, truth)
    return loss(logits / temperature, truth), temperature


def _solve(examples: Array, truth: NDArray[np.int64], labels: int, c: float) -> tuple[Array, Array]:
    from sklearn.linear_model import LogisticRegression

    rows = examples.reshape(-1, examples.shape[2])
    centre, width = rows.mean(0), rows.std(0) + 1e-6
    model = LogisticRegression(C=c / examples.shape[2], class_weight="balanced", max_iter=2000)
    model.fit((rows - centre) / width, np.repeat(truth, examples.shape[1]))
    coef, intercept = model.coef_, model.intercept_
    if labels == 2:  # scikit-learn keeps the difference of the two
        coef, intercept = np.vstack([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
    weights: Array = coef / width
    return weights, intercept - weights @ centre


def _folds(truth: NDArray[np.int64], groups: Sequence[str] | None) -> NDArray[np.int64]:
    """A fold for each text, every label in at least two; groups stay whole where that allows it."""
    folds = np.zeros(len(truth), dtype=np.int64)
    if groups is not None:
        number = {group: k for k, group in enumerate(sorted(set(groups)))}
        folds = np.array([number[g] % FOLDS for g in groups], dtype=np.int64)
        if all(len(set(folds[truth == k].tolist())) > 1 for k in np.unique(truth)):
            return folds
    for k in np.unique(truth):
        where = np.flatnonzero(truth == k)
        folds[where] = np.arange(len(where)) % min(FOLDS, len(where))
    return folds
