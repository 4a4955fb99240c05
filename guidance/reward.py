"""Reward: any score of finished texts, through particles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor

from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Step, Verdict
from redraft.denoiser.guide import Strength, finite


@dataclass(frozen=True)
class Reward(SoftGuide):
    """Aim at p(x) exp(scale * score(x)); `score` maps a list of texts to as many finite numbers.

    `score` may be anything: a classifier, a parser, a simulator. It sees the drafts of every step (only the
    finished texts with `BestOf`), and needs particles. For use from Python alone: a function cannot be put in a
    recipe. `least`: a text counts as satisfied from this score on (without it, the verdict is unknown).
    """

    name: ClassVar[str] = "reward"
    strength: ClassVar[Strength] = "searched"
    portable: ClassVar[bool] = False
    score: Callable[[Sequence[str]], Sequence[float]]
    scale: float = 1.0
    least: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.score):
            raise InvalidGuideError(
                f"the score of Reward is {self.score!r}: give a function of a list of texts"
            )
        finite(self.scale, "the scale of Reward")

    def bind(self, scene: Scene) -> Bound:
        return _BoundReward(self, scene)

    def scores(self, texts: Sequence[str]) -> list[float]:
        """The texts' scores; raises `InvalidGuideError` for one that is not finite, or too few."""
        scores = [float(value) for value in self.score(texts)]
        if len(scores) != len(texts):
            raise InvalidGuideError(f"{self}: {len(scores)} scores for {len(texts)} texts: give one a text")
        return [
            finite(value, f"{self}: the score of {text[:40]!r}")
            for value, text in zip(scores, texts, strict=True)
        ]

    def check(self, text: str) -> Verdict:
        """The score in the note; satisfied from `least` on, by the same function that guided."""
        (score,) = self.scores([text])
        note = f"score {score:.3f}, by the function that guided"
        return self.verdict("unknown" if self.least is None else score >= self.least, note=note)

    def __str__(self) -> str:
        name = getattr(self.score, "__qualname__", type(self.score).__qualname__)
        return f"Reward({name}, scale={self.scale:g})"


class _BoundReward(Bound):
    @property
    def weighs(self) -> bool:
        return cast(Reward, self.guide).scale != 0.0

    def weigh(self, step: Step, draft: Tensor) -> Tensor | None:
        guide = cast(Reward, self.guide)
        if not self.weighs:
            return None
        texts = [self.scene.vocabulary.decode(row) for row in draft.tolist()]
        scores = torch.tensor(guide.scores(texts), dtype=torch.float64, device=draft.device)
        return guide.scale * scores
