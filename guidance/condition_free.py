"""Classifier-free guidance: from what the denoiser writes without a condition towards what it writes with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Bound, Denoiser, InvalidGuideError, Prompt, Scene, SoftGuide, Step, Verdict
from redraft.denoiser.guide import finite

LIMIT = 15.0
"""Nats: log-ratios are cut off here, where both probabilities are next to nothing."""


def log_ratio(over: Tensor, under: Tensor) -> Tensor:
    """log p_over - log p_under [B, L, V] of two logits, within LIMIT; 0 at tokens that neither writes."""
    over, under = over.log_softmax(-1), under.log_softmax(-1)
    both = over.isfinite() | under.isfinite()
    gap = over.clamp_min(-2 * LIMIT) - under.clamp_min(-2 * LIMIT)
    return torch.where(both, gap, 0.0).clamp(-LIMIT, LIMIT)


def tempered(bias: Tensor, step: Step) -> Tensor:
    """A bias on log p as one on log p / T, which is where the run adds it."""
    return bias if step.temperature in (0, 1) else bias / step.temperature


@dataclass(frozen=True, init=False)
class ClassifierFree(SoftGuide):
    """log p = u + scale (c - u): u without the condition, c with it, both log-probabilities, T after both.

    With `condition`, the denoiser's own tags such as {"tone": "positive"}, c is the run with these tags in place
    of its own of the kind, u the run as it is. Without, c is the run as it is, and u the same canvas without tags
    and prompt; scale 1 is then no guide. Pins and all that is committed stand in both branches. One more forward
    pass a step.
    """

    name: ClassVar[str] = "classifier-free"
    condition: tuple[tuple[str, str], ...]
    scale: float

    def __init__(
        self, condition: Mapping[str, str] | tuple[tuple[str, str], ...] = (), scale: float = 1.5
    ) -> None:
        pairs = condition.items() if isinstance(condition, Mapping) else condition
        object.__setattr__(self, "condition", tuple((str(kind), str(value)) for kind, value in pairs))
        object.__setattr__(self, "scale", finite(float(scale), "the scale of ClassifierFree"))

    def bind(self, scene: Scene) -> Bound:
        return _BoundClassifierFree(self, scene)

    def check(self, text: str) -> Verdict:
        """Always unknown: whether a text is of a genre or tone is for Style, Sentiment or Classifier to say."""
        return self.verdict("unknown", note="no judge of conditions")

    def __str__(self) -> str:
        return f"ClassifierFree({dict(self.condition)!r}, scale={self.scale:g})"


class _BoundClassifierFree(Bound):
    def __init__(self, guide: ClassifierFree, scene: Scene) -> None:
        super().__init__(guide, scene)
        self.condition, self.scale = dict(guide.condition), guide.scale
        self._other: tuple[Prompt, Prompt] | None = None  # the run's prompt, and that of the other branch

    def bias(self, step: Step) -> Tensor | None:
        strength = self.scale if self.condition else self.scale - 1.0
        if strength == 0.0:
            return None
        if self._other is None or self._other[0] is not step.prompt:
            self._other = step.prompt, self._prompt(step.denoiser, step.prompt)
        other = step.denoiser(step.canvas, self._other[1])
        over, under = (other, step.logits) if self.condition else (step.logits, other)
        return tempered(strength * log_ratio(over, under), step)

    def admit(self, denoiser: Denoiser, prompt: Prompt) -> None:
        self._prompt(denoiser, prompt)

    def _prompt(self, denoiser: Denoiser, prompt: Prompt) -> Prompt:
        if self.condition:
            return prompt.again(denoiser, len(prompt.tokens), {**prompt.condition, **self.condition})
        if not prompt.condition and not any((prompt.text, *prompt.texts)):
            raise InvalidGuideError(
                f"{self.guide} drops the condition, and the run has none: give the run a condition or a prompt, "
                'or name one here, such as ClassifierFree({"tone": "positive"})'
            )
        return denoiser.prepare("", len(prompt.tokens))
