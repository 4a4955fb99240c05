"""What others do, behind the interface of guides, for comparison only: python benchmarks/quality.py labels them so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from redraft.classifiers import NoiseAware, TokenScores, shipped
from redraft.classifiers.sentences import sentence_encoder
from redraft.denoiser import Bound, Scene, SoftGuide, Step, Verdict, Vocabulary, load
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
    """m2m-energy-fields 0.1.0: alpha * (1 - t / (T - 1)) * e(token), e = half and half, each over its largest value,
    the topic's likeness to the denoiser's own token embeddings and to sentence embeddings of the tokens; beside it,
    5 nats * progress off a token for each time past the first that it stands on the canvas.
    """

    name: ClassVar[str] = "baseline-annealed-topic"
    topic: str
    alpha: float = 10.0
    penalty: float = 5.0

    def bind(self, scene: Scene) -> Bound:
        fused = _likeness(self.topic, scene.vocabulary)
        return _Annealed(self, scene, self.alpha * fused / fused.abs().max())

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown")


@lru_cache(maxsize=8)
def _likeness(topic: str, vocabulary: Vocabulary) -> Tensor:
    """[V]: the topic's likeness to each token, half by the denoiser's embeddings and half by the encoder's."""
    own = load().model.tokens.weight.float()  # type: ignore[attr-defined]
    near = own @ torch.nn.functional.normalize(own[vocabulary.encode(" " + topic)].mean(0), dim=-1)
    meant = _token_meanings(vocabulary) @ sentence_encoder().embed([topic])[0]
    return 0.5 * near / near.abs().max() + 0.5 * meant / meant.abs().max()


@lru_cache(maxsize=1)
def _token_meanings(vocabulary: Vocabulary) -> Tensor:
    texts = [(raw or b"").decode("utf-8", "ignore").strip() or "<pad>" for raw in vocabulary.token_bytes]
    return sentence_encoder().embed(texts)


class _Annealed(Bound):
    def __init__(self, guide: SoftGuide, scene: Scene, vector: Tensor) -> None:
        super().__init__(guide, scene)
        self.vector = vector

    def bias(self, step: Step) -> Tensor | None:
        guide, tokens = self.guide, step.canvas.tokens
        assert isinstance(guide, AnnealedTopic)
        times = torch.zeros(len(tokens), len(self.vector)).scatter_add_(
            1, tokens, (~step.canvas.open).float()
        )
        excess = guide.penalty * step.progress * (times - 1).clamp_min(0.0)
        return (1.0 - step.index / max(1, step.steps - 1)) * self.vector - excess[:, None, :]


@lru_cache(maxsize=8)
def _scores(pair: str) -> TokenScores:
    return shipped(pair).tokens.bind(load().vocabulary)


def probabilities(pair: str, label: str, texts: Sequence[str]) -> list[float]:
    """P(label | text) by the guiding classifier."""
    scores = _scores(pair)
    found: list[float] = scores.score(texts)[:, scores.labels.index(label)].tolist()
    return found


def classifier_reward(pair: str, label: str, scale: float) -> Reward:
    """scale * log P(label | text) by the guiding classifier, the reward of best-of-n and of FK-style particles."""

    def log_p(texts: Sequence[str]) -> list[float]:
        return [math.log(max(p, 1e-9)) for p in probabilities(pair, label, texts)]

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
