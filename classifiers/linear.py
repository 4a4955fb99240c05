"""A binary classifier that adds up one weight for each key a text holds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from redraft.classifiers.base import InvalidClassifierError
from redraft.classifiers.fitting import Shape, fit_table
from redraft.classifiers.storage import read_table, write_table


@dataclass(frozen=True)
class Linear:
    """logit P(labels[1] | text) = intercept + sum_{key in keys(text)} table[key], in nats; other keys add 0.

    `labels` are two names, the wanted one last; for more labels, train one against the rest for each.
    """

    kind: ClassVar[str]
    shape: ClassVar[Shape]

    name: str
    labels: tuple[str, str] = ("other", "wanted")
    table: Mapping[bytes, float] = field(default_factory=dict, repr=False, hash=False)
    intercept: float = 0.0

    def __post_init__(self) -> None:
        if len(self.labels) != 2 or self.labels[0] == self.labels[1] or not all(self.labels):
            raise InvalidClassifierError(
                f"labels are {self.labels}: use two different names, the wanted one last"
            )
        if not math.isfinite(self.intercept):
            raise InvalidClassifierError(f"the intercept of {self.name} is {self.intercept}: train it again")

    @abstractmethod
    def keys(self, text: str) -> frozenset[bytes]:
        """What a text holds."""

    def logits(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """float64 [N]: log-odds of the wanted label, in nats."""
        get = self.table.get
        # sorted: the sum, and so the last bit, does not depend on the order of a set
        sums = [sum(get(key, 0.0) for key in sorted(self.keys(text))) for text in texts]
        return np.array(sums, dtype=np.float64) + self.intercept

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """float64 [N, 2]: probabilities of `labels`, calibrated as if both were equally common."""
        logits = self.logits(texts)
        return np.exp(-np.logaddexp(0.0, np.stack([logits, -logits], axis=1)))

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        groups: Sequence[str] | None = None,
        shape: Shape | None = None,
    ) -> Self:
        """A fitted copy; `groups` are kept whole in cross-validation, `shape` guards against rare keys. Needs
        scikit-learn.

        Raises `InvalidClassifierError` for other labels than its own, or texts of one label only.
        """
        stray = sorted(set(labels) - set(self.labels))
        if stray or len(texts) != len(labels):
            raise InvalidClassifierError(
                f"{len(texts)} texts, {len(labels)} labels, unknown: {stray}; use {self.labels}, one a text"
            )
        truth = np.array([label == self.labels[1] for label in labels], dtype=np.bool_)
        table, intercept = fit_table([self.keys(text) for text in texts], truth, groups, shape or self.shape)
        return replace(self, table=table, intercept=intercept)

    def save(self, folder: Path) -> None:
        """Write `KIND.json` and `KIND.safetensors`."""
        write_table(Path(folder), self.kind, self.meta(), self.table)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; raises `InvalidClassifierError` for another format or a broken file."""
        meta, table = read_table(Path(folder), cls.kind)
        try:
            return cls(table=table, **cls.fields(meta))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidClassifierError(
                f"{Path(folder) / cls.kind}.json is incomplete: {error!r}"
            ) from error

    def meta(self) -> dict[str, Any]:
        """What is stored beside the table."""
        return {"name": self.name, "labels": list(self.labels), "intercept": self.intercept}

    @classmethod
    def fields(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        """Constructor arguments from what is stored."""
        first, second = map(str, meta["labels"])
        return {"name": str(meta["name"]), "labels": (first, second), "intercept": float(meta["intercept"])}
