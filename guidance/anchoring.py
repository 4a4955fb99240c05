"""Committing the places that a guide's evidence rests on in the first steps, so that the rest grows around them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from redraft.denoiser import Automaton, Bound, HardGuide, Scene, Span, Step


class Anchoring(HardGuide):
    """A guide whose language is shown to hold by some spans of the text."""

    @abstractmethod
    def witness(self, text: str) -> Sequence[Span]:
        """Spans that together show that the guide holds; none where it does not."""

    def bind(self, scene: Scene) -> Bound:
        return _Anchored(self, scene, self.language(scene))


class _Anchored(Bound):
    def __init__(self, guide: Anchoring, scene: Scene, language: Automaton) -> None:
        super().__init__(guide, scene, language)
        self.witness = guide.witness

    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        """The draft's tokens of the surest span that is not committed yet, one span a step."""
        vocabulary = self.scene.vocabulary
        mark = torch.zeros_like(step.canvas.open)
        held, sure = (~step.canvas.open).tolist(), confidence.tolist()
        for row, tokens in enumerate(draft.tolist()):
            if all(held[row]):
                continue
            text = vocabulary.decode(tokens)
            places = [vocabulary.covering(tokens, text, s.start, s.end) for s in self.witness(text)]
            waiting = [place for place in places if not all(held[row][i] for i in place)]
            if waiting:
                best = max(waiting, key=lambda place: sum(sure[row][i] for i in place) / len(place))
                mark[row, best] = True
        return mark & step.canvas.open
