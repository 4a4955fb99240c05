"""The contract of classifiers as checks to run: `check_classifier`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.classifiers.base import Classifier, InvalidClassifierError
from redraft.denoiser.errors import RedraftError
from redraft.denoiser.testing.examination import Check, CheckResult, Examination, demand
from redraft.denoiser.testing.texts import ODD

TEXTS = (
    "It was a warm and happy day by the sea.",
    "The storm took the house, and nobody came.",
    "Dear Sir, I write to complain of the delay.",
    "lol see you there!!",
    "The storm took the house, and nobody came.",
)
_PLAIN = (".json", ".safetensors", ".txt", ".toml", ".md")


def check_classifier(
    classifier: Classifier,
    *,
    texts: Sequence[str] = TEXTS,
    training: tuple[Sequence[str], Sequence[str]] | None = None,
    ready: Callable[[Any], Any] = lambda loaded: loaded,
    tolerance: float = 1e-6,
    expected_failures: Mapping[str, str] | None = None,
    raises: bool = True,
) -> list[CheckResult]:
    """Hold a classifier against its contract; one result a check, in order.

    `texts` are scored; `training` are texts and their labels for `fit`, None leaves that out; `ready` makes a
    loaded classifier able to score (such as `lambda c: c.bind(vocabulary)`); `tolerance` in probability is
    for batches against single texts. Raises `ContractError` naming each failed check with its reason and
    remedy, unless `raises` is false.
    """
    if isinstance(classifier, type) or not isinstance(classifier, Classifier):
        raise InvalidClassifierError(
            f"{classifier!r} is no classifier: it needs name, labels, score, fit, save and load"
        )
    with tempfile.TemporaryDirectory(prefix="redraft-check-") as folder:
        facts = ClassifierFacts(classifier, tuple(texts), training, ready, tolerance, Path(folder) / "saved")
        return Examination(classifier.name, facts, CLASSIFIER_CHECKS, expected_failures).report(raises=raises)


class ClassifierFacts:
    """A classifier, texts for it and the folder it was saved to."""

    def __init__(
        self,
        classifier: Classifier,
        texts: tuple[str, ...],
        training: tuple[Sequence[str], Sequence[str]] | None,
        ready: Callable[[Any], Any],
        tolerance: float,
        folder: Path,
    ) -> None:
        self.classifier, self.texts, self.training = classifier, texts, training
        self.ready, self.tolerance = ready, tolerance
        self._folder = folder

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """The texts' probabilities."""
        return self.classifier.score(list(self.texts))

    @cached_property
    def folder(self) -> Path:
        """A folder that the classifier was saved to."""
        self.classifier.save(self._folder)
        return self._folder


def _labels(facts: ClassifierFacts) -> str:
    own = facts.classifier
    demand(isinstance(own.name, str) and bool(own.name.strip()), f"name is {own.name!r}")
    labels = own.labels
    demand(
        isinstance(labels, tuple) and len(labels) >= 2 and all(isinstance(x, str) and x for x in labels),
        f"labels are {labels!r}, not a tuple of two or more names",
    )
    demand(len(set(labels)) == len(labels), f"labels are {labels!r}: a name comes twice")
    return ", ".join(labels)


def _shape(facts: ClassifierFacts) -> None:
    for texts in (list(facts.texts), list(facts.texts[:1]), []):
        scores, wanted = facts.classifier.score(texts), (len(texts), len(facts.classifier.labels))
        demand(isinstance(scores, np.ndarray), f"score returns {type(scores).__name__}, not an array")
        demand(scores.shape == wanted, f"scores of {len(texts)} texts are {scores.shape}, not {wanted}")
        demand(scores.dtype == np.float64, f"scores are {scores.dtype}, not float64")


def _probabilities(facts: ClassifierFacts) -> None:
    _are_probabilities(facts.scores)


def _are_probabilities(scores: NDArray[np.float64]) -> None:
    demand(bool(np.isfinite(scores).all()), "a score is not finite")
    demand(
        bool(((scores >= 0) & (scores <= 1)).all()),
        f"scores run from {scores.min():.3g} to {scores.max():.3g}",
    )
    sums = scores.sum(1)
    demand(bool(np.allclose(sums, 1.0, atol=1e-6)), f"a row sums to {sums[np.argmax(abs(sums - 1))]:.6g}")


def _any_text(facts: ClassifierFacts) -> None:
    for text in ODD:
        try:
            scores = facts.classifier.score([text])
        except Exception as error:
            demand(False, f"score([{text[:40]!r}]) raises {type(error).__name__}: {error}")
        _are_probabilities(scores)


def _deterministic(facts: ClassifierFacts) -> None:
    again = facts.classifier.score(list(facts.texts))
    demand(np.array_equal(facts.scores, again), "the same texts get other scores the second time")


def _unedited(facts: ClassifierFacts) -> None:
    given = list(facts.texts)
    facts.classifier.score(given)
    demand(given == list(facts.texts), "score changes the list of texts")


def _alone(facts: ClassifierFacts) -> str:
    alone = np.concatenate([facts.classifier.score([text]) for text in facts.texts])
    apart = float(abs(alone - facts.scores).max())
    demand(apart <= facts.tolerance, f"a text alone scores {apart:.3g} apart from its score in a batch")
    return f"at most {apart:.1g} apart"


def _plain(facts: ClassifierFacts) -> str:
    files = sorted(path for path in facts.folder.rglob("*") if path.is_file())
    demand(bool(files), "save writes no file")
    for path in files:
        begin = path.read_bytes()[:2]
        demand(
            path.suffix in _PLAIN
            and begin not in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
            f"{path.name} may hold code",
        )
    return ", ".join(path.name for path in files)


def _saved(facts: ClassifierFacts) -> None:
    own = facts.classifier
    back = facts.ready(type(own).load(facts.folder))
    demand(back.labels == own.labels and back.name == own.name, f"it comes back as {back.name} {back.labels}")
    apart = float(abs(back.score(list(facts.texts)) - facts.scores).max())
    demand(apart <= facts.tolerance, f"what comes back scores {apart:.3g} apart")


def _damaged(facts: ClassifierFacts) -> None:
    own = type(facts.classifier)
    names = [path.relative_to(facts.folder) for path in facts.folder.rglob("*") if path.is_file()]
    for broken in (None, *names):
        with tempfile.TemporaryDirectory(prefix="redraft-check-") as name:
            for path in names if broken is not None else ():
                target = Path(name) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                raw = (facts.folder / path).read_bytes()
                target.write_bytes(raw[: len(raw) // 2] if path == broken else raw)
            what = "an empty folder" if broken is None else f"a folder with {broken} cut in half"
            try:
                own.load(Path(name))
            except RedraftError:
                continue
            except Exception as error:
                demand(False, f"loading {what} raises a bare {type(error).__name__}: {error}")
            demand(
                broken is not None and broken.suffix in (".md", ".txt"), f"{what} is loaded without a word"
            )


def _refuses(facts: ClassifierFacts) -> None:
    own = facts.classifier
    wrong: tuple[tuple[str, list[str], list[str]], ...] = (
        ("an unknown label", ["a b", "b a"], ["no such label", own.labels[0]]),
        ("more texts than labels", ["a b", "b a"], [own.labels[0]]),
    )
    for what, texts, labels in wrong:
        try:
            own.fit(texts, labels)
        except RedraftError:
            continue
        except Exception as error:
            demand(False, f"fit with {what} raises a bare {type(error).__name__}: {error}")
        demand(False, f"fit takes {what} without a word")


def _copies(facts: ClassifierFacts) -> None:
    assert facts.training is not None
    texts, labels = facts.training
    before = facts.classifier.score(list(facts.texts))
    fitted = facts.classifier.fit(texts, labels)
    demand(
        isinstance(fitted, type(facts.classifier)) and fitted is not facts.classifier,
        "fit returns the classifier itself, or something else",
    )
    demand(
        np.array_equal(before, facts.classifier.score(list(facts.texts))),
        "fit changes the classifier it is called on",
    )
    _are_probabilities(fitted.score(list(facts.texts)))


_SCORES = ("probabilities",)

CLASSIFIER_CHECKS: tuple[Check, ...] = (
    Check(
        "labels", "guides ask for a label by name", "set name and labels, two or more different ones", _labels
    ),
    Check(
        "score-shape",
        "guides and figures index scores by text and label",
        "return a float64 array [N, labels], also for one text and for none",
        _shape,
        needs=("labels",),
    ),
    Check(
        "probabilities",
        "verdicts show them, and targets are set in them",
        "return numbers in [0, 1] whose rows sum to 1",
        _probabilities,
        needs=("score-shape",),
    ),
    Check(
        "any-text",
        "any text may come to be judged",
        "give the prior where a text says nothing",
        _any_text,
        _SCORES,
    ),
    Check(
        "deterministic",
        "a verdict is the same each time",
        "switch dropout off; draw no numbers",
        _deterministic,
        _SCORES,
    ),
    Check("no-edits-in-place", "the texts are the caller's", "work on a copy", _unedited, _SCORES),
    Check(
        "batch-equals-singles",
        "a text's verdict does not depend on its neighbours",
        "use no statistics of the batch; mask padding",
        _alone,
        needs=("deterministic",),
    ),
    Check(
        "no-code-in-files",
        "a file that runs code when it is opened cannot be shared",
        "save safetensors for numbers and JSON for the rest; no pickles",
        _plain,
        needs=("labels",),
    ),
    Check(
        "save-and-load",
        "a classifier outlives its process",
        "store everything that score uses",
        _saved,
        needs=("deterministic", "no-code-in-files"),
    ),
    Check(
        "damaged-files",
        "a broken download must read like one",
        "check format, keys and shapes in load, and raise InvalidClassifierError",
        _damaged,
        needs=("no-code-in-files",),
    ),
    Check(
        "fit-refuses",
        "a wrong label in the data is found before training, not after",
        "raise InvalidClassifierError for unknown labels and different lengths",
        _refuses,
        needs=("labels",),
    ),
    Check(
        "fit-gives-a-copy",
        "a classifier in use must not change under it",
        "return a new object and leave this one as it is",
        _copies,
        needs=("deterministic",),
        applies=lambda facts: facts.training is not None,
    ),
)
