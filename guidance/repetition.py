"""Repetition: do not say the same two words again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Span, Step, Verdict


@dataclass(frozen=True)
class Repetition(SoftGuide):
    """Lower, by `strength` nats, tokens that would repeat a neighbour or a pair of tokens already committed.

    At an open position i with committed left neighbour a: -strength for a itself, and for every v that
    follows an a elsewhere on the canvas; the same on the right. `strength` is finite and not negative.
    """

    name: ClassVar[str] = "repetition"
    strength_nats: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.strength_nats < float("inf"):
            raise InvalidGuideError(f"strength_nats is {self.strength_nats}: use a finite number from 0")

    def bind(self, scene: Scene) -> Bound:
        return _BoundRepetition(self, scene)

    def check(self, text: str) -> Verdict:
        """Satisfied where no word stands twice in a row and no three words stand twice; score: share not repeated."""
        words = [word.strip(".,;:!?\"'()").lower() for word in text.split()]
        doubled = [k for k in range(1, len(words)) if words[k] and words[k] == words[k - 1]]
        threes = [tuple(words[k : k + 3]) for k in range(len(words) - 2)]
        again = len(threes) - len(set(threes))
        score = 1.0 - (again + len(doubled)) / max(1, len(words))
        return self.verdict(not doubled and not again, max(0.0, score), _word_spans(text, doubled))


class _BoundRepetition(Bound):
    def bias(self, step: Step) -> Tensor | None:
        guide = self.guide
        assert isinstance(guide, Repetition)
        if guide.strength_nats == 0:
            return None
        tokens, held = step.canvas.tokens, ~step.canvas.open
        text = held & self._is_text.to(tokens.device)[tokens]
        bias = torch.zeros_like(step.logits)

        def lower(which: Tensor, where: Tensor) -> None:
            """Lower the tokens `which` at the rows and positions where `where` [B, L, n] holds."""
            bias.scatter_reduce_(-1, which, torch.where(where, -guide.strength_nats, 0.0), "amin")

        for side in (1, -1):
            near, near_text = _shift(tokens, side), _shift(text, side)  # the neighbour of each position
            lower(near[..., None], (near_text & step.canvas.open)[..., None])
            follows, follows_text = (
                _shift(tokens, -side),
                _shift(text, -side),
            )  # what stands on the other side of j
            same = near[:, :, None] == tokens[:, None, :]
            same &= (near_text & step.canvas.open)[:, :, None] & (text & follows_text)[:, None, :]
            lower(follows[:, None, :].expand_as(same), same)
        return bias

    def __init__(self, guide: Repetition, scene: Scene) -> None:
        super().__init__(guide, scene)
        self._is_text = torch.tensor(scene.vocabulary.is_text)


def _shift(values: Tensor, by: int) -> Tensor:
    """values[i - by] at i, with zeros (False) past the ends."""
    rolled = values.roll(by, dims=-1)
    if by > 0:
        rolled[..., :by] = 0
    else:
        rolled[..., by:] = 0
    return rolled


def _word_spans(text: str, numbers: list[int]) -> tuple[Span, ...]:
    spans, at = [], 0
    for k, word in enumerate(text.split()):
        at = text.index(word, at)
        if k in numbers:
            spans.append(Span(at, at + len(word), word))
        at += len(word)
    return tuple(spans)
