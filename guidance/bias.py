"""Phrases to prefer or to avoid, by so many nats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Bound, InvalidGuideError, Scene, SoftGuide, Span, Step, Verdict
from redraft.denoiser.errors import UnwritableTextError
from redraft.denoiser.guide import finite
from redraft.guidance.occurrence import find, phrase
from redraft.guidance.spelling import spellings


@dataclass(frozen=True, init=False)
class Bias(SoftGuide):
    """Add `strength` nats to the log-probability of each phrase, where its other tokens are likely.

    For a phrase of tokens t_1..t_n, at position i for t_j: strength * (prod_{k != j} p_{i+k-j}(t_k))^(1/(n-1)),
    p the denoiser's own distribution (1 where committed); for one token the strength itself, everywhere.
    Positive strengths prefer, negative ones avoid. `phrases` is a mapping or pairs of phrase and strength.
    """

    name: ClassVar[str] = "bias"
    phrases: tuple[tuple[str, float], ...]

    def __init__(self, phrases: Mapping[str, float] | tuple[tuple[str, float], ...]) -> None:
        pairs = tuple(phrases.items() if isinstance(phrases, Mapping) else phrases)
        if not pairs:
            raise InvalidGuideError('Bias has no phrase: give {"phrase": strength}')
        kept = []
        for text, strength in pairs:
            text = phrase(text, "a phrase of Bias")
            kept.append((text, finite(float(strength), f"the strength of {text!r}")))
        object.__setattr__(self, "phrases", tuple(kept))

    def bind(self, scene: Scene) -> Bound:
        return _BoundBias(self, scene)

    def check(self, text: str) -> Verdict:
        """Satisfied where every preferred phrase occurs and no avoided one does."""
        places = [(strength, find(text, wanted)) for wanted, strength in self.phrases]
        held = [bool(spans) == (strength > 0) for strength, spans in places]
        spans: tuple[Span, ...] = tuple(span for _, found in places for span in found)
        return self.verdict(all(held), sum(held) / len(held), spans)

    def __str__(self) -> str:
        return f"Bias({', '.join(f'{text!r}: {strength:+g}' for text, strength in self.phrases)})"


class _BoundBias(Bound):
    def __init__(self, guide: Bias, scene: Scene) -> None:
        super().__init__(guide, scene)
        flat = torch.zeros(len(scene.vocabulary), dtype=torch.float32)
        self.longer: list[tuple[tuple[int, ...], float]] = []
        for text, strength in guide.phrases:
            own = spellings(scene.vocabulary, text, exact_case=False)
            if not own:
                raise UnwritableTextError(f"the vocabulary cannot write {text!r}: use another phrase")
            for spelling in own:
                if len(spelling.tokens) == 1:
                    flat[spelling.tokens[0]] += strength
                else:
                    self.longer.append((spelling.tokens, strength))
        self.flat = flat.to(scene.device)

    def bias(self, step: Step) -> Tensor | None:
        if not self.longer:
            return self.flat
        batch, length, size = step.logits.shape
        canvas = step.canvas
        total = self.flat.expand(batch, length, size).clone()
        for tokens, strength in self.longer:
            own = torch.tensor(tokens, device=canvas.tokens.device)
            held = torch.where(canvas.tokens[..., None] == own, 0.0, -1e4)
            here = torch.where(canvas.open[..., None], step.log_p[..., own], held)
            here = here.clamp_min(-1e4)  # [B, L, n]
            n = len(tokens)
            if n > length:
                continue
            windows = torch.stack(
                [here[:, j : length - n + 1 + j, j] for j in range(n)], dim=-1
            )  # [B, L-n+1, n]
            others = (windows.sum(-1, keepdim=True) - windows) / (n - 1)
            for j in range(n):
                total[:, j : length - n + 1 + j, tokens[j]] += strength * others[..., j].exp()
        return total
