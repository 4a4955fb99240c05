"""Counting guides decide early where the text ends, so that the rest is written towards it."""

from __future__ import annotations

from torch import Tensor

from redraft.denoiser import Bound, Step


class EndAnchored(Bound):
    """Commits the draft's EOS token at the first step; without an EOS token it does nothing.

    Left to chance, a word far to the right may be committed first, and a text with few words is then
    stretched to reach it. A text that is written in order comes to its end by itself, and knows its words then.
    """

    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        eos = self.scene.vocabulary.eos_id
        if eos is None or step.index > 0 or step.in_order:
            return None
        return (draft == eos) & step.canvas.open & (draft == eos).cumsum(-1).eq(1)
