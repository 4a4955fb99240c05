"""What sentiment and style share: a shipped classifier's token scores as bias, its word judge as check."""

from __future__ import annotations

import difflib
import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from redraft.classifiers import TokenScores, shipped
from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Span, Step, Verdict, Vocabulary
from redraft.guidance.push import Draft, smallest_push

PUSH = 0.8
"""Nats: standard deviation of the bias over the tokens of ordinary text, at scale 1."""
CLITIC = 1.0
"""Nats: at most so much for a piece such as 't or 'm, which only its own few words can carry; no more reward for a
mark such as !, which only a sentence's end can."""
EVIDENCE = 5
"""At most so many words of evidence are shown."""


class Tilt(SoftGuide):
    """log p'(x) = log p(x) + PUSH / spread * S(x), S the wanted label's log-odds by token scores.

    The bias is the vector (w - centre) * PUSH / spread, [V] nats: exact for scores linear in tokens (see
    `TokenScores`), of equal strength for every classifier, 0 for special tokens, so that it decides what is
    said, not how long. As in training, a word counts once: one that stands on the canvas (in any case) is
    rewarded no more, so the bias is [B, 1, V]. The check is a judge of words and word pairs, trained on
    other writers.

    With `target` in (0, 1) the push is not 1 but, row by row and step by step, the smallest one with which the
    classifier's probability of the expected draft reaches `target`: its log-odds of what stands on the canvas,
    plus sum_i E[w(x_i)] over open positions under the tempered guided distribution. It is never negative, and at
    most `push.MOST`; a scale multiplies the push that was found.
    """

    target: float | None

    @abstractmethod
    def wanted(self) -> tuple[str, str]:
        """(name of the shipped classifier, label wanted of it)."""

    def bind(self, scene: Scene) -> Bound:
        name, label = self.wanted()
        return BoundTilt(self, scene, shipped(name).tokens, label, self.target)

    def check(self, text: str) -> Verdict:
        """Satisfied where the judge gives the label at least 0.5; unknown where it knows no word."""
        name, label = self.wanted()
        judge = shipped(name).judge
        sign = 1.0 if label == judge.labels[1] else -1.0
        evidence = [e for e in judge.evidence(text) if e.nats]
        if not evidence:
            return self.verdict("unknown", note="the judge knows none of the words")
        score = float(judge.score([text])[0, judge.labels.index(label)])
        held = score >= 0.5
        side = sign if held else -sign
        shown = sorted((e for e in evidence if side * e.nats > 0), key=lambda e: (-side * e.nats, e.start))[
            :EVIDENCE
        ]
        spans = tuple(
            Span(e.start, e.end, f"{sign * e.nats:+.1f}") for e in sorted(shown, key=lambda e: e.start)
        )
        return self.verdict(held, score, spans, f"probability of {label}: {score:.2f}")


class BoundTilt(Bound):
    """A guide that tilts by the token scores of `label`: push 1, or what `target` takes."""

    def __init__(
        self, guide: SoftGuide, scene: Scene, scores: TokenScores, label: str, target: float | None
    ) -> None:
        super().__init__(guide, scene)
        self.target = target
        self.source = scores, label
        self.vector = _vector(scores, label, scene.vocabulary).to(scene.device)
        self.words = word_numbers(scene.vocabulary).to(scene.device)
        self.reward = self.vector > 0
        self._used: tuple[Step, Tensor] | None = None

    def bias(self, step: Step) -> Tensor | None:
        again = written(step, self.words)  # [B, V]
        bias = torch.where(again & self.reward, 0.0, self.vector)[:, None, :]
        if self.target is None:
            return bias
        push = self._push(step, bias, again)
        self._used = step, push
        return push[:, None, None] * bias

    def push(self, step: Step) -> Tensor | None:
        if self._used is not None and self._used[0] is step:
            return self._used[1]
        return torch.ones(len(step.canvas.tokens), device=step.logits.device)

    def _push(self, step: Step, bias: Tensor, again: Tensor) -> Tensor:
        """[B]; a word that stands on the canvas already counts no more, as in training."""
        assert self.target is not None
        scores = self._scores
        new = torch.where(again[:, scores.among], 0.0, scores.weights[scores.among])[:, None, :]
        draft = Draft.of(step, scores.among)
        goal = math.log(self.target) - math.log1p(-self.target)
        return smallest_push(draft, bias[..., scores.among], new, self._scores.log_odds(step), goal)

    @cached_property
    def _scores(self) -> _Scores:
        scores = _Scores(*self.source, self.scene)
        scores.among = ((self.vector != 0) | (scores.weights != 0)).nonzero().squeeze(-1)
        return scores


class _Scores:
    """A classifier's log-odds of the tokens on a canvas, as `TokenScores.logits` gives them for the text."""

    among: Tensor

    def __init__(self, tokens: TokenScores, label: str, scene: Scene) -> None:
        pieces = scene.vocabulary.token_bytes
        self.weights = torch.from_numpy(tokens.weights(scene.vocabulary, label)).to(scene.device)
        self.offset = tokens.offset(label)
        self.begins = torch.tensor([bool(raw and raw[:1].isalpha()) for raw in pieces], device=scene.device)
        self.ends = torch.tensor([bool(raw and raw[-1:].isalpha()) for raw in pieces], device=scene.device)

    def log_odds(self, step: Step) -> Tensor:
        """[B] nats: offset + the weight of each different committed token that is no piece of a longer word."""
        tokens, held = step.canvas.tokens, ~step.canvas.open
        joined = (self.ends[tokens] & held)[:, :-1] & (self.begins[tokens] & held)[:, 1:]
        inside = torch.nn.functional.pad(joined, (1, 0)) | torch.nn.functional.pad(joined, (0, 1))
        seen = torch.zeros(len(tokens), len(self.weights), dtype=torch.bool, device=tokens.device)
        seen = seen.scatter_reduce(1, tokens, held & ~inside, "amax")
        # in float64, a row at a time: the sum does not depend on the batch
        return (seen * self.weights.double()).sum(-1) + self.offset


@lru_cache(maxsize=8)
def word_numbers(vocabulary: Vocabulary) -> Tensor:
    """int64 [V]: a number for each word, the same whatever its case and the spaces around it."""
    numbers: dict[bytes, int] = {}
    return torch.tensor(
        [numbers.setdefault((raw or b"").strip().lower(), len(numbers)) for raw in vocabulary.token_bytes]
    )


def written(step: Step, words: Tensor) -> Tensor:
    """bool [B, V]: tokens whose word, by `words` [V], stands on the canvas already."""
    own = words[step.canvas.tokens]  # [B, L]
    found = torch.zeros(len(own), len(words), dtype=torch.bool, device=words.device)
    return found.scatter_reduce(1, own, ~step.canvas.open, "amax")[:, words]


@lru_cache(maxsize=8)
def glued(vocabulary: Vocabulary) -> Tensor:
    """bool [V]: tokens that would stick to the word before, where a space marks a word's start."""
    pieces = vocabulary.token_bytes
    marked = any(raw and raw[:1] == b" " and len(raw) > 1 for raw in pieces)
    return torch.tensor([marked and bool(raw and raw[:1].isalnum()) for raw in pieces])


@lru_cache(maxsize=32)
def _vector(tokens: TokenScores, label: str, vocabulary: Vocabulary) -> Tensor:
    """float32 [V]; a word without the space before it is not rewarded, for it would stick to the last one."""
    pieces = vocabulary.token_bytes
    vector = PUSH / tokens.spread * torch.from_numpy(tokens.vector(vocabulary, label))
    clitic = torch.tensor([bool(raw and raw[:1] == b"'" and raw[1:].isalpha()) for raw in pieces])
    mark = torch.tensor(
        [bool(raw) and not any(chr(c).isalnum() or c > 127 for c in raw or b"") for raw in pieces]
    )
    vector = torch.where(mark, vector.clamp_max(CLITIC), vector)
    vector = torch.where(clitic, vector.clamp(-CLITIC, CLITIC), vector)
    return torch.where(glued(vocabulary), vector.clamp_max(0.0), vector)


def known(value: str, what: str, names: Sequence[str]) -> None:
    """Raise `InvalidGuideError` unless `value` is one of `names`; the message has the nearest."""
    if value not in names:
        near = difflib.get_close_matches(str(value).lower(), names, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InvalidGuideError(f"{what} is {value!r}: {hint}use one of {', '.join(names)}")
