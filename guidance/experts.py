"""Several denoisers at once: a product of experts, and an expert against an anti-expert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Bound, Denoiser, InvalidGuideError, Prompt, Scene, SoftGuide, Step, Verdict, load
from redraft.denoiser.guide import finite
from redraft.denoiser.randomness import Randomness
from redraft.guidance.condition_free import LIMIT, log_ratio, tempered


@lru_cache(maxsize=4)
def _loaded(model: str, device: str) -> Denoiser:
    return load(model, device=device)


def expert(model: str | Denoiser, scene: Scene, whose: str) -> Denoiser:
    """The denoiser of a name, a folder or an object; `InvalidGuideError` where its vocabulary is another one."""
    found = _loaded(model, str(scene.device)) if isinstance(model, str) else model
    if found.vocabulary.key != scene.vocabulary.key:
        raise InvalidGuideError(
            f"{whose}: {found.name} has another vocabulary than the denoiser that writes: experts must share it"
        )
    return found


class Expert:
    """A denoiser that a guide asks beside the one that writes; it encodes the run's prompts once."""

    def __init__(self, model: str | Denoiser, scene: Scene, whose: str) -> None:
        self.model, self.whose = expert(model, scene, whose), whose
        self._encoded: tuple[Prompt, Prompt] | None = None  # the run's, and the expert's own

    def opinion(self, step: Step) -> Tensor:
        """Logits [B, L, V] for the step's canvas, behind each row's own prompt, with the tags that it knows."""
        if self._encoded is None or self._encoded[0] is not step.prompt:
            self._encoded = step.prompt, self._prompt(step)
        canvas = step.canvas
        if self.model.noise != step.denoiser.noise:  # open positions hold what the expert expects there
            own = Randomness(step.random.seeds, step.random.device, step.index + 1)
            canvas = self.model.noise.renoise(canvas, canvas.open, own)
        return self.model(canvas, self._encoded[1])

    def _prompt(self, step: Step) -> Prompt:
        model, blocks = self.model, step.denoiser.block
        if model.block is not None and model.block != blocks:
            raise InvalidGuideError(
                f"{self.whose}: {model.name} writes blocks of {model.block} tokens and the denoiser that writes "
                f"{'whole canvases' if blocks is None else f'blocks of {blocks}'}: experts must see what it sees"
            )
        known = {k: v for k, v in step.prompt.condition.items() if v in model.conditions.get(k, ())}
        prompt = step.prompt.again(model, len(step.canvas.tokens), known)
        room, length = model.longest(prompt), step.canvas.tokens.shape[1] + step.remaining
        if length > room:
            raise InvalidGuideError(
                f"{self.whose}: the canvas has {length} tokens and {model.name} takes {room} behind this prompt: "
                "use a shorter length"
            )
        return prompt


@dataclass(frozen=True, init=False)
class Experts(SoftGuide):
    """log p = own * log p_run + sum_k weight_k * log p_k: a weighted product of denoisers that share a vocabulary.

    `models` is a mapping or pairs of a model (a name or folder for `load`, or a denoiser, which no recipe can
    hold) and its weight; `own` the weight of the denoiser that writes. One forward pass a model and step.
    """

    name: ClassVar[str] = "experts"
    models: tuple[tuple[str | Denoiser, float], ...]
    own: float

    def __init__(
        self,
        models: Mapping[str, float]
        | Mapping[str | Denoiser, float]
        | tuple[tuple[str | Denoiser, float], ...],
        own: float = 1.0,
    ) -> None:
        pairs = tuple(models.items() if isinstance(models, Mapping) else models)
        if not pairs:
            raise InvalidGuideError('Experts has no model: give {"folder": weight}')
        kept = tuple((model, finite(float(weight), f"the weight of {model}")) for model, weight in pairs)
        object.__setattr__(self, "models", kept)
        object.__setattr__(self, "own", finite(float(own), "the weight `own` of Experts"))

    def bind(self, scene: Scene) -> Bound:
        return _BoundExperts(self, scene)

    def check(self, text: str) -> Verdict:
        """Always unknown: nothing in a text says which denoisers wrote it."""
        return self.verdict("unknown", note="nothing to judge")

    def __str__(self) -> str:
        named = ", ".join(f"{getattr(m, 'name', m)!r}: {w:g}" for m, w in self.models)
        return f"Experts({{{named}}}, own={self.own:g})"


class _BoundExperts(Bound):
    def __init__(self, guide: Experts, scene: Scene) -> None:
        super().__init__(guide, scene)
        self.own = guide.own
        self.experts = [(Expert(model, scene, str(guide)), weight) for model, weight in guide.models]

    def bias(self, step: Step) -> Tensor | None:
        total = (self.own - 1.0) * _bounded(step.log_p)
        for model, weight in self.experts:
            total = total + weight * _bounded(model.opinion(step).log_softmax(-1))
        return tempered(total, step)


def _bounded(log_p: Tensor) -> Tensor:
    """Log-probabilities, at least -2 LIMIT; 0 at tokens that are never written."""
    return torch.where(log_p.isfinite(), log_p.clamp_min(-2 * LIMIT), 0.0)


@dataclass(frozen=True)
class Contrast(SoftGuide):
    """log p = log p_run + scale (log p_expert - log p_anti): towards one denoiser, away from another.

    Both are a name or folder for `load`, or a denoiser (which no recipe can hold), and share the vocabulary of
    the one that writes (DExperts, Liu et al. 2021, equation 1). Two forward passes a step.
    """

    name: ClassVar[str] = "contrast"
    expert: str | Denoiser
    anti_expert: str | Denoiser
    scale: float = 1.0

    def __post_init__(self) -> None:
        finite(self.scale, "the scale of Contrast")

    def bind(self, scene: Scene) -> Bound:
        return _BoundContrast(self, scene)

    def check(self, text: str) -> Verdict:
        """Always unknown: nothing in a text says which denoisers wrote it."""
        return self.verdict("unknown", note="nothing to judge")

    def __str__(self) -> str:
        names = (repr(getattr(model, "name", model)) for model in (self.expert, self.anti_expert))
        return f"Contrast({', '.join(names)}, scale={self.scale:g})"


class _BoundContrast(Bound):
    def __init__(self, guide: Contrast, scene: Scene) -> None:
        super().__init__(guide, scene)
        self.scale = guide.scale
        self.pair = tuple(Expert(model, scene, str(guide)) for model in (guide.expert, guide.anti_expert))

    def bias(self, step: Step) -> Tensor | None:
        over, under = (model.opinion(step) for model in self.pair)
        return tempered(self.scale * log_ratio(over, under), step)
