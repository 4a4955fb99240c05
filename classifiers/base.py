"""What every classifier offers: calibrated probabilities of texts, and files without code in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.errors import RedraftError


class InvalidClassifierError(RedraftError, ValueError):
    """A classifier's files, labels or training texts are not what they must be."""


def needs_sklearn() -> None:
    """Raise `InvalidClassifierError` where scikit-learn, which fits classifiers, is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise InvalidClassifierError(
            "to fit a classifier takes scikit-learn: pip install 'redraft[classifiers]'"
        ) from error


@runtime_checkable
class Classifier(Protocol):
    """Probabilities of labels for whole texts.

    `score(texts)` is float64 [N, labels], rows sum to 1, calibrated as if every label were equally common.
    `fit` gives a fitted copy; `groups` (one a text: who wrote it) keeps a group together in cross-validation.
    `save` and `load` use safetensors and JSON; `load` raises
    `InvalidClassifierError` for what it cannot read.
    """

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]: ...

    def fit(
        self, texts: Sequence[str], labels: Sequence[str], groups: Sequence[str] | None = None
    ) -> Self: ...

    def save(self, folder: Path) -> None: ...

    @classmethod
    def load(cls, folder: Path) -> Self: ...
