"""What sentiment and style share: a shipped classifier's token scores as bias, its word judge as check."""

from __future__ import annotations

import difflib
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from redraft.classifiers import shipped
from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Span, Step, Verdict, Vocabulary

PUSH = 0.8
"""Nats: standard deviation of the bias over the tokens of ordinary text, at scale 1."""
CLITIC = 1.0
"""Nats: at most so much for a piece such as 't or 'm, which only its own few words can carry."""
EVIDENCE = 5
"""At most so many words of evidence are shown."""


class Tilt(SoftGuide):
    """log p'(x) = log p(x) + PUSH / spread * S(x), S the wanted label's log-odds by token scores.

    The bias is the vector (w - centre) * PUSH / spread, [V] nats: exact for scores linear in tokens (see
    `TokenScores`), of equal strength for every classifier, 0 for special tokens, so that it decides what is
    said, not how long. As in training, a word counts once: one that stands on the canvas (in any case) is
    rewarded no more, so the bias is [B, 1, V]. The check is a judge of words and word pairs, trained on
    other writers.
    """

    @abstractmethod
    def target(self) -> tuple[str, str]:
        """(name of the shipped classifier, label wanted of it)."""

    def bind(self, scene: Scene) -> Bound:
        return _BoundTilt(self, scene)

    def check(self, text: str) -> Verdict:
        """Satisfied where the judge gives the label at least 0.5; unknown where it knows no word."""
        name, label = self.target()
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


class _BoundTilt(Bound):
    def __init__(self, guide: Tilt, scene: Scene) -> None:
        super().__init__(guide, scene)
        self.vector = _vector(*guide.target(), scene.vocabulary).to(scene.device)
        self.words = _words(scene.vocabulary).to(scene.device)
        self.count = int(self.words.max()) + 1
        self.reward = self.vector > 0

    def bias(self, step: Step) -> Tensor | None:
        canvas = step.canvas
        words = self.words[canvas.tokens]  # [B, L]
        written = torch.zeros(len(words), self.count, dtype=torch.bool, device=words.device)
        written = written.scatter_reduce(1, words, ~canvas.open, "amax")
        again = written[:, self.words] & self.reward  # [B, V]
        return torch.where(again, 0.0, self.vector)[:, None, :]


@lru_cache(maxsize=8)
def _words(vocabulary: Vocabulary) -> Tensor:
    """int64 [V]: a number for each word, the same whatever its case and the spaces around it."""
    numbers: dict[bytes, int] = {}
    return torch.tensor(
        [numbers.setdefault((raw or b"").strip().lower(), len(numbers)) for raw in vocabulary.token_bytes]
    )


@lru_cache(maxsize=32)
def _vector(name: str, label: str, vocabulary: Vocabulary) -> Tensor:
    """float32 [V]; a word without the space before it is not rewarded, for it would stick to the last one."""
    tokens = shipped(name).tokens
    pieces = vocabulary.token_bytes
    vector = PUSH / tokens.spread * torch.from_numpy(tokens.vector(vocabulary, label))
    clitic = torch.tensor([bool(raw and raw[:1] == b"'" and raw[1:].isalpha()) for raw in pieces])
    vector = torch.where(clitic, vector.clamp(-CLITIC, CLITIC), vector)
    if any(raw and raw[:1] == b" " and len(raw) > 1 for raw in pieces):  # word starts are marked by a space
        glued = torch.tensor([bool(raw and raw[:1].isalnum()) for raw in pieces])
        vector = torch.where(glued, vector.clamp_max(0.0), vector)
    return vector


def known(value: str, what: str, names: Sequence[str]) -> None:
    """Raise `InvalidGuideError` unless `value` is one of `names`; the message has the nearest."""
    if value not in names:
        near = difflib.get_close_matches(str(value).lower(), names, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InvalidGuideError(f"{what} is {value!r}: {hint}use one of {', '.join(names)}")
