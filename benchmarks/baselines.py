"""What others do, behind the interface of guides, for comparison only: python benchmarks/quality.py labels them so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from redraft.classifiers import NoiseAware, TokenScores, shipped
from redraft.classifiers.sentences import sentence_encoder
from redraft.denoiser import Bound, Scene, SoftGuide, Step, Verdict, load
from redraft.guidance import Reward
from redraft.guidance.gradient import LIMIT, BoundGradient
from redraft.guidance.push import Draft


@dataclass(frozen=True)
class TokenBias(SoftGuide):
    """Plain token bias: `nats` for each of the `count` tokens of largest weight, wherever and however often."""

    name: ClassVar[str] = "baseline-token-bias"
    pair: str
    label: str
    nats: float = 2.0
    count: int = 200

    def bind(self, scene: Scene) -> Bound:
        vector = torch.from_numpy(shipped(self.pair).tokens.vector(scene.vocabulary, self.label))
        flat = torch.zeros_like(vector)
        flat[vector.topk(self.count).indices] = self.nats
        return _Flat(self, scene, flat.to(scene.device))

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown")


class _Flat(Bound):
    def __init__(self, guide: SoftGuide, scene: Scene, flat: Tensor) -> None:
        super().__init__(guide, scene)
        self.flat = flat

    def bias(self, step: Step) -> Tensor | None:
        return self.flat


@dataclass(frozen=True)
class FirstOrder(SoftGuide):
    """D-CBG (Schiff et al. 2024): gamma * (first-order change of log P(label | canvas) with each token).

    log P by a noise-aware head, its gradient taken at the expected embedding; no normalisation, no target.
    """

    name: ClassVar[str] = "baseline-d-cbg"
    head: Any
    label: str
    gamma: float = 1.0

    def bind(self, scene: Scene) -> Bound:
        return _FirstOrder(self, scene, self.head, self.label, None)

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown")


class _FirstOrder(BoundGradient):
    def bias(self, step: Step) -> Tensor | None:
        if not bool(step.canvas.open.any()):
            return None
        scores, value = self._scores(step, Draft.of(step))
        chance = torch.sigmoid(value)[:, None, None]  # d log P = (1 - P) d log-odds
        guide = self.guide
        assert isinstance(guide, FirstOrder)
        return (guide.gamma * (1 - chance) * scores).clamp(-LIMIT, LIMIT)


@dataclass(frozen=True)
class AnnealedTopic(SoftGuide):
    """m2m-energy-fields' way: nats * (1 - progress) * cosine of each token's embedding with the topic's words."""

    name: ClassVar[str] = "baseline-annealed-topic"
    topic: str
    nats: float = 8.0

    def bind(self, scene: Scene) -> Bound:
        encoder = sentence_encoder()
        table = torch.nn.functional.normalize(encoder.bridge(scene.vocabulary), dim=-1)
        ids = encoder.tokenizer(self.topic, add_special_tokens=False)["input_ids"]
        words = torch.nn.functional.normalize(encoder.pieces[ids].mean(0), dim=-1)
        return _Annealed(self, scene, self.nats * (table @ words).clamp_min(0.0))

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown")


class _Annealed(Bound):
    def __init__(self, guide: SoftGuide, scene: Scene, vector: Tensor) -> None:
        super().__init__(guide, scene)
        self.vector = vector

    def bias(self, step: Step) -> Tensor | None:
        return (1.0 - step.progress) * self.vector


@lru_cache(maxsize=8)
def _scores(pair: str) -> TokenScores:
    return shipped(pair).tokens.bind(load().vocabulary)


def classifier_reward(pair: str, label: str, scale: float) -> Reward:
    """scale * log P(label | text) by the guiding classifier, the reward of best-of-n and of FK-style particles."""
    scores = _scores(pair)

    def log_p(texts: Sequence[str]) -> list[float]:
        import numpy as np

        found = scores.score(texts)[:, scores.labels.index(label)]
        return np.log(found.clip(1e-9)).tolist()

    return Reward(log_p, scale)


def topic_reward(topic: str, scale: float) -> Reward:
    """scale * cosine of sentence embeddings."""
    encoder = sentence_encoder()
    goal = encoder.embed([topic])[0]

    def cosine(texts: Sequence[str]) -> list[float]:
        return (encoder.embed([text or " " for text in texts]) @ goal).tolist()

    return Reward(cosine, scale)


def head_of(pair: str, label: str, folder: Any, texts: Sequence[str], labels: Sequence[str]) -> NoiseAware:
    """A noise-aware head on the labelled passages, kept in a folder."""
    if (folder / "noise-aware.json").is_file():
        return NoiseAware.load(folder)
    head = NoiseAware(pair).fit(texts, labels)
    head.save(folder)
    return head
