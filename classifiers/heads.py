"""Softmax heads on features of whole texts: what noise-aware and sentence classifiers share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from redraft.classifiers.base import InvalidClassifierError, needs_sklearn
from redraft.classifiers.head_fitting import fit_head, fit_temperature
from redraft.classifiers.storage import FORMAT, begun, read_meta

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """P(label k | text) = softmax_k((W f(text) + b) / T), f a subclass's features, T fitted on held-out logits.

    `weights` [K, D], `offsets` [K]; every label counts as equally common.
    """

    kind: ClassVar[str]

    name: str
    labels: tuple[str, ...] = ()
    weights: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)
    offsets: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if len(self.labels) == 1 or len(set(self.labels)) != len(self.labels) or not all(self.labels):
            raise InvalidClassifierError(f"labels are {self.labels}: use at least two different names")
        if len(self.weights) and (
            len(self.weights) != len(self.labels) or len(self.offsets) != len(self.labels)
        ):
            raise InvalidClassifierError(
                f"{self.name} has weights {self.weights.shape} for {len(self.labels)} labels: train it again"
            )
        if not (0 < self.temperature < float("inf") and np.isfinite(self.weights).all()):
            raise InvalidClassifierError(f"{self.name} holds numbers that are not finite: train it again")

    @abstractmethod
    def features(self, texts: Sequence[str]) -> Array:
        """float64 [N, D]."""

    def examples(self, texts: Sequence[str]) -> Array:
        """float64 [N, M, D]: what is learnt from each text; one row of features, or several noisy ones."""
        return self.features(texts)[:, None]

    def logits(self, texts: Sequence[str]) -> Array:
        """float64 [N, K] nats, up to a constant in each row."""
        if not len(self.weights):
            raise InvalidClassifierError(f"{self.name} has learnt nothing yet: fit(texts, labels) first")
        scores: Array = (self.features(texts) @ self.weights.T + self.offsets) / self.temperature
        return scores

    def score(self, texts: Sequence[str]) -> Array:
        """float64 [N, K]: probabilities of `labels`."""
        logits = self.logits(texts)
        shares: Array = np.exp(logits - logits.max(-1, keepdims=True))
        found: Array = shares / shares.sum(-1, keepdims=True)
        return found

    def fit(self, texts: Sequence[str], labels: Sequence[str], groups: Sequence[str] | None = None) -> Self:
        """A fitted, calibrated copy; `groups` are kept whole in cross-validation. Needs scikit-learn.

        Without labels of its own it takes those of the texts, sorted. Raises `InvalidClassifierError` for a label
        that it does not know or that has fewer than two texts.
        """
        own = self.labels or tuple(sorted(set(labels)))
        truth = numbered(texts, labels, own)
        needs_sklearn()
        weights, offsets, temperature = fit_head(self.examples(texts), truth, len(own), groups)
        return replace(self, labels=own, weights=weights, offsets=offsets, temperature=temperature)

    def calibrate(self, texts: Sequence[str], labels: Sequence[str]) -> Self:
        """A copy with the temperature that makes held-out `texts` likeliest; accuracy stays as it is."""
        truth = numbered(texts, labels, self.labels)
        factor = fit_temperature(self.logits(texts), truth)
        return replace(self, temperature=self.temperature * factor)

    def number(self, label: str) -> int:
        """The place of a label in `labels`; raises `InvalidClassifierError` for another."""
        if label not in self.labels:
            raise InvalidClassifierError(
                f"{self.name} has no label {label!r}: use one of {', '.join(self.labels)}"
            )
        return self.labels.index(label)

    def save(self, folder: Path) -> None:
        """Write `KIND.json` and `KIND.safetensors`."""
        folder = Path(folder)
        begun(folder, self.kind)
        arrays = {"weights": self.weights, "offsets": self.offsets}
        save_file(
            {name: np.ascontiguousarray(a, dtype=np.float32) for name, a in arrays.items()},
            folder / f"{self.kind}.safetensors",
        )
        write_meta(folder, self.kind, self.meta())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote; raises `InvalidClassifierError` for another format or a broken file."""
        folder = Path(folder)
        meta = read_meta(folder / f"{cls.kind}.json", cls.kind)
        path = folder / f"{cls.kind}.safetensors"
        try:
            arrays = load_file(path)
            weights, offsets = (arrays[name].astype(np.float64) for name in ("weights", "offsets"))
            return cls(weights=weights, offsets=offsets, **cls.fields(meta))
        except (OSError, safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
            raise InvalidClassifierError(
                f"{path} cannot be read ({error!r}): copy or train it again"
            ) from error

    def meta(self) -> dict[str, Any]:
        """What is stored beside the arrays."""
        return {"name": self.name, "labels": list(self.labels), "temperature": self.temperature}

    @classmethod
    def fields(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        """Constructor arguments from what is stored."""
        return {
            "name": str(meta["name"]),
            "labels": tuple(map(str, meta["labels"])),
            "temperature": float(meta["temperature"]),
        }


def write_meta(folder: Path, kind: str, meta: Mapping[str, Any]) -> None:
    import json

    text = json.dumps({"format": FORMAT, "kind": kind, **meta}, indent=2)
    (folder / f"{kind}.json").write_text(text + "\n", encoding="utf-8")


def numbered(texts: Sequence[str], labels: Sequence[str], own: Sequence[str]) -> NDArray[np.int64]:
    """int64 [N]: the labels' places in `own`; raises `InvalidClassifierError` for what cannot be learnt from."""
    stray = sorted(set(labels) - set(own))
    few = [label for label in own if list(labels).count(label) < 2]
    if stray or len(texts) != len(labels):
        raise InvalidClassifierError(
            f"{len(texts)} texts, {len(labels)} labels, unknown: {stray}; use {', '.join(own)}, one a text"
        )
    if few or len(own) < 2:
        raise InvalidClassifierError(
            f"at least two labels with two texts each are needed, too few: {', '.join(few or own)}; give more"
        )
    place = {label: k for k, label in enumerate(own)}
    return np.array([place[label] for label in labels], dtype=np.int64)
