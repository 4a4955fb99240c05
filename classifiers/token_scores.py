"""Token scores: a linear classifier whose weights are a guide's bias."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from redraft.classifiers.base import InvalidClassifierError
from redraft.classifiers.fitting import Shape
from redraft.classifiers.linear import Linear
from redraft.denoiser.vocabulary import Vocabulary


@dataclass(frozen=True)
class TokenScores(Linear):
    """Linear in the tokens a text holds, stored by the tokens' bytes, so that it binds to any vocabulary.

    With independent positions p(x) = prod_i p_i(x_i) and the score S(x) = sum_i w(x_i), the tilt

        p(x) exp(s S(x)) / Z = prod_i  p_i(x_i) exp(s w(x_i)) / Z_i

    is again independent: adding `s * vector` to log-probabilities is exact, not a first-order step. By
    Bayes' rule exp(S) is, up to a constant, the odds of the wanted label if each token counts each time it
    occurs. Training counts a token once a text (a second "great" says little); the tilt counts every one.

    `vocabulary` is what `fit` and `score` split texts with. `centre` is the mean weight over the tokens of
    the training texts that have one; `vector` is taken relative to it, so no token gains by being common.
    `spread` is the vector's standard deviation over the tokens of the training texts.
    """

    kind: ClassVar[str] = "token-scores"
    shape: ClassVar[Shape] = Shape(least=8, shrink=8.0, most=3.0, keep=8000)

    vocabulary: Vocabulary | None = field(default=None, repr=False, compare=False)
    centre: float = 0.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (math.isfinite(self.centre) and 0 < self.spread < math.inf):
            raise InvalidClassifierError(
                f"{self.name} has centre {self.centre}, spread {self.spread}: train it again"
            )

    def keys(self, text: str) -> frozenset[bytes]:
        """Bytes of the tokens that stand for themselves: a piece of a longer word says nothing alone."""
        pieces = self._pieces(text)
        letters = [(raw[:1].isalpha(), raw[-1:].isalpha()) for raw in pieces]  # ASCII letters at either end
        joined = [end and begin for (_, end), (begin, _) in pairwise(letters)]
        inside = zip([False, *joined], [*joined, False], strict=True)
        return frozenset(raw for raw, sides in zip(pieces, inside, strict=False) if not any(sides))

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        groups: Sequence[str] | None = None,
        shape: Shape | None = None,
    ) -> Self:
        fitted = super().fit(texts, labels, groups, shape)
        counts = Counter(piece for text in texts for piece in self._pieces(text))
        if not fitted.table:  # nothing tells the labels apart
            return replace(fitted, centre=0.0, spread=1.0)
        pairs = [(weight, counts[piece]) for piece, weight in sorted(fitted.table.items())]
        centre = sum(weight * n for weight, n in pairs) / sum(n for _, n in pairs)
        square = sum((weight - centre) ** 2 * n for weight, n in pairs) / sum(counts.values())
        return replace(fitted, centre=centre, spread=math.sqrt(square))

    def bind(self, vocabulary: Vocabulary) -> Self:
        """The same scores, splitting texts with `vocabulary`."""
        return replace(self, vocabulary=vocabulary)

    def vector(self, vocabulary: Vocabulary, label: str | None = None) -> NDArray[np.float32]:
        """float32 [V], nats: how much each token speaks for `label` (the wanted one by default).

        w(token) - centre, where w is the weight of the same bytes, else of the same word whatever its case
        and leading space; 0 for a token without either and for special tokens. A token that continues a
        word (no leading space, in a vocabulary that marks word starts) takes no word's weight.
        """
        weights, known = self._weights(vocabulary)
        return self._sign(label) * np.where(known, weights - np.float32(self.centre), np.float32(0.0))

    def weights(self, vocabulary: Vocabulary, label: str | None = None) -> NDArray[np.float32]:
        """float32 [V], nats: what each token adds to the log-odds of `label`: `vector` without the centring."""
        weights, _ = self._weights(vocabulary)
        return self._sign(label) * weights

    def offset(self, label: str | None = None) -> float:
        """Log-odds of `label` in nats for a text without any known token."""
        return float(self._sign(label)) * self.intercept

    def _sign(self, label: str | None) -> np.float32:
        if label is not None and label not in self.labels:
            raise InvalidClassifierError(f"{self.name} has no label {label!r}: use one of {self.labels}")
        return np.float32(-1.0 if label == self.labels[0] else 1.0)

    def _weights(self, vocabulary: Vocabulary) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(weights, which tokens have one) [V]."""
        words = self._words()
        marked = any(raw is not None and raw[:1] == b" " and len(raw) > 1 for raw in vocabulary.token_bytes)
        weights = np.zeros(len(vocabulary), dtype=np.float32)
        known = np.zeros(len(vocabulary), dtype=np.bool_)
        for token, raw in enumerate(vocabulary.token_bytes):
            weight = self.table.get(raw) if raw else None
            if raw and weight is None and (word := _word(raw)) and not (marked and _continues(raw)):
                weight = words.get(word)
            if weight is not None:
                weights[token], known[token] = weight, True
        return weights, known

    def meta(self) -> dict[str, Any]:
        return super().meta() | {"centre": self.centre, "spread": self.spread}

    @classmethod
    def fields(cls, meta: Mapping[str, Any]) -> dict[str, Any]:
        return super().fields(meta) | {"centre": float(meta["centre"]), "spread": float(meta["spread"])}

    def _pieces(self, text: str) -> list[bytes]:
        if self.vocabulary is None:
            raise InvalidClassifierError(
                f"{self.name} has no vocabulary to split texts with: bind(vocabulary) first"
            )
        return [self.vocabulary.token_bytes[token] or b"" for token in self.vocabulary.encode(text)]

    def _words(self) -> dict[str, float]:
        """Weights by word; the plainest spelling (a leading space, lower case) speaks for the word."""
        best: dict[str, tuple[tuple[bool, bool], float]] = {}
        for raw, weight in sorted(self.table.items()):
            if word := _word(raw):
                rank = (raw[:1] != b" ", raw.lower() != raw)
                if word not in best or rank < best[word][0]:
                    best[word] = (rank, weight)
        return {word: weight for word, (_, weight) in best.items()}


def _word(raw: bytes) -> str | None:
    """The word a token is, in lower case, or None where it is none."""
    try:
        word = raw.decode().removeprefix(" ").lower()
    except UnicodeDecodeError:
        return None
    return word if word.isalpha() else None


def _continues(raw: bytes) -> bool:
    return raw[:1] != b" " and raw[:1].islower()
