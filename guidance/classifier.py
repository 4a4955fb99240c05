"""Any classifier as a guide: your own, from a folder or an object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from redraft.classifiers import Classifier as Judge
from redraft.classifiers import InvalidClassifierError, TokenScores, load_classifier
from redraft.classifiers.gradients import Differentiable
from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Verdict, Vocabulary, load
from redraft.guidance.gradient import BoundGradient
from redraft.guidance.push import probability
from redraft.guidance.tilt import BoundTilt


@lru_cache(maxsize=8)
def _loaded(folder: str) -> Any:
    return load_classifier(folder)


@lru_cache(maxsize=1)
def _words() -> Vocabulary:
    """What token scores of no vocabulary of their own split a text with: the embedded denoiser's tokens."""
    return load().vocabulary


@dataclass(frozen=True)
class Classifier(SoftGuide):
    """Prefer texts that a classifier gives `label`: `Classifier("pirate/", "pirate")`.

    `source` is a folder of `redraft classifiers train`, or a fitted classifier (which no recipe can hold). Token
    scores are an exact bias; sentence and noise-aware heads steer by a gradient, one more forward and backward
    pass a step (`gradient.BoundGradient`). Strength is `scale * guide`, or `target`, a probability by the classifier.
    The verdict is the guiding classifier's own, and says so; `judge`, another folder, judges in its place.
    """

    name: ClassVar[str] = "classifier"
    source: str | Judge
    label: str
    target: float | None = None
    judge: str | None = None

    def __post_init__(self) -> None:
        if not self.label or not isinstance(self.label, str):
            raise InvalidGuideError(
                f"the label of Classifier is {self.label!r}: name one of the classifier's labels"
            )
        probability(self.target, str(self))

    @property
    def classifier(self) -> Any:
        """The classifier itself; raises `InvalidClassifierError` where the folder holds none."""
        return _loaded(self.source) if isinstance(self.source, str) else self.source

    def bind(self, scene: Scene) -> Bound:
        found = self.classifier
        if self.judge:
            self._judge()
        if self.label not in found.labels:
            raise InvalidGuideError(
                f"{self}: there is no label {self.label!r}: use one of {', '.join(found.labels)}"
            )
        if isinstance(found, TokenScores):
            return BoundTilt(self, scene, found, self.label, self.target)
        if isinstance(found, Differentiable):
            return BoundGradient(self, scene, found, self.label, self.target)
        raise InvalidGuideError(
            f"{self}: a classifier of kind {type(found).__name__} cannot steer, only judge: use one that "
            "`redraft classifiers train` makes, or Reward(lambda texts: ...) with particles"
        )

    def check(self, text: str) -> Verdict:
        """Satisfied where the judge (or the guiding classifier) gives the label at least 0.5."""
        judge = self._judge()
        if isinstance(judge, TokenScores) and judge.vocabulary is None:
            judge = judge.bind(_words())
        score = float(judge.score([text])[0, judge.labels.index(self.label)])
        by = "a judge that did not guide" if self.judge else "the classifier that guided"
        return self.verdict(score >= 0.5, score, note=f"probability of {self.label}: {score:.2f}, by {by}")

    def _judge(self) -> Any:
        """The classifier of the verdict; raises `InvalidClassifierError` where there is none for the label."""
        judge: Any = _loaded(self.judge) if self.judge else self.classifier
        if self.label not in judge.labels:
            raise InvalidClassifierError(
                f"{self}: the judge has no label {self.label!r}: {', '.join(judge.labels)}"
            )
        return judge

    def __str__(self) -> str:
        source = (
            repr(self.source) if isinstance(self.source, str) else f"<{getattr(self.source, 'name', '?')}>"
        )
        target = "" if self.target is None else f", target={self.target:g}"
        return f"Classifier({source}, {self.label!r}{target})"
