"""The kit that checks classifiers, on classifiers that are broken in one way each."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_classifiers import VOCABULARY, disjoint, token_scores, word_scores

from redraft.classifiers import SHIPPED, InvalidClassifierError, WordScores, shipped
from redraft.classifiers.testing import CLASSIFIER_CHECKS, check_classifier
from redraft.denoiser.testing import ContractError, toy_vocabulary

COUNT = itertools.count()
BROKEN: dict[str, Any] = {}
BASE = word_scores()


def breaks(check: str) -> Any:
    def register(cls: Any) -> Any:
        made = dataclass(frozen=True)(cls)
        BROKEN[check] = lambda: made(BASE.name, BASE.labels, BASE.table, BASE.intercept)
        return cls

    return register


@breaks("labels")
class Twins(WordScores):
    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", ("sad", "sad"))


@breaks("score-shape")
class Single(WordScores):
    def score(self, texts):  # type: ignore[no-untyped-def]
        return super().score(texts)[:, 1]


@breaks("probabilities")
class Odds(WordScores):
    def score(self, texts):  # type: ignore[no-untyped-def]
        return super().score(texts) * 3


@breaks("any-text")
class Mean(WordScores):
    def score(self, texts):  # type: ignore[no-untyped-def]
        for text in texts:
            1 / len(text.split())
        return super().score(texts)


@breaks("deterministic")
class Shaky(WordScores):
    def score(self, texts):  # type: ignore[no-untyped-def]
        first = 0.5 + 0.01 / (1 + next(COUNT)) * np.ones(len(texts))
        return np.stack([first, 1 - first], axis=1)


@breaks("no-edits-in-place")
class Lowers(WordScores):
    def score(self, texts):  # type: ignore[no-untyped-def]
        for k, text in enumerate(texts):
            texts[k] = text.lower()
        return super().score(texts)


@breaks("batch-equals-singles")
class Relative(WordScores):
    def logits(self, texts):  # type: ignore[no-untyped-def]
        return super().logits(texts) + 0.1 * len(texts)


@breaks("no-code-in-files")
class Pickled(WordScores):
    def save(self, folder: Path) -> None:
        super().save(folder)
        (folder / "extra.json").write_bytes(pickle.dumps([1]))


@breaks("save-and-load")
class Forgets(WordScores):
    def save(self, folder: Path) -> None:
        WordScores.save(replace(self, intercept=self.intercept + 1), folder)


@breaks("damaged-files")
class Trusting(WordScores):
    @classmethod
    def load(cls, folder):  # type: ignore[no-untyped-def]
        try:
            return super().load(folder)
        except InvalidClassifierError as error:
            raise KeyError("weights") from error


@breaks("fit-refuses")
class Takes(WordScores):
    def fit(self, texts, labels, groups=None):  # type: ignore[no-untyped-def]
        known = [x if x in self.labels else self.labels[0] for x in labels]
        return self if len(known) < 9 else super().fit(texts, known, groups)


@breaks("fit-gives-a-copy")
class InPlace(WordScores):
    def fit(self, texts, labels, groups=None):  # type: ignore[no-untyped-def]
        fitted = super().fit(texts, labels, groups)
        object.__setattr__(self, "intercept", fitted.intercept + 1)
        return fitted


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_classifier_fails_exactly_its_check(name: str) -> None:
    options: dict[str, Any] = {"training": disjoint(3, 60)}
    results = check_classifier(BROKEN[name](), raises=False, **options)
    assert [r.name for r in results if r.outcome == "failed"] == [name]
    with pytest.raises(ContractError, match=f"{name} failed"):
        check_classifier(BROKEN[name](), **options)


def test_every_check_has_a_classifier_that_fails_it() -> None:
    assert set(BROKEN) == {check.name for check in CLASSIFIER_CHECKS}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_classifiers_keep_the_contract(name: str) -> None:
    check_classifier(shipped(name).judge)
    own = toy_vocabulary()
    check_classifier(shipped(name).tokens.bind(own), ready=lambda loaded: loaded.bind(own))


def test_fitted_classifiers_keep_the_contract() -> None:
    outcomes = {r.outcome for r in check_classifier(BASE, training=disjoint(2, 60))}
    assert outcomes == {"passed"}
    results = check_classifier(
        token_scores(),
        texts=[" warm the day", " cold lost"],
        ready=lambda loaded: loaded.bind(VOCABULARY),
        expected_failures={"any-text": "its vocabulary has eight words"},
    )
    assert {r.name: r.outcome for r in results}["any-text"] == "expected"
    with pytest.raises(InvalidClassifierError, match="is no classifier"):
        check_classifier(WordScores)  # type: ignore[arg-type]
