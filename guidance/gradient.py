"""Guides that steer by a gradient: first order in the expected embedding."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from redraft.classifiers.gradients import Differentiable
from redraft.denoiser import Bound, Scene, SoftGuide, Step
from redraft.guidance.push import Draft, smallest_push
from redraft.guidance.tilt import PUSH, glued, word_numbers, written

LIMIT = 8.0
"""Nats: no token's bias is larger at push 1."""
AMONG = 64
"""A target's expectation looks at so many of a position's likeliest tokens."""


class BoundGradient(Bound):
    """bias_i(v) = push * PUSH / spread * <dS/de_i, E[v] - e_i>, S a differentiable score of expected embeddings.

    e_i = sum_v p_i(v) E[v] under the denoiser's tempered distribution (a committed token's own embedding),
    S(e_1..e_L) the score in nats: one forward and one backward pass of the model behind it. To first order S
    grows by sum_i <dS/de_i, E[v_i] - e_i>. `spread` is the standard deviation of that over the tokens of the open
    positions, row by row, so that every guide pushes equally hard. Special tokens get 0 and, as in `Tilt`, a word
    that stands on the canvas, or that would stick to the word before, is not rewarded. With `target` in (0, 1) the
    push is the smallest with which S reaches log(target / (1 - target)) to first order, else it is 1.
    """

    def __init__(
        self, guide: SoftGuide, scene: Scene, model: Differentiable, goal: str, target: float | None
    ) -> None:
        super().__init__(guide, scene)
        self.model, self.goal, self.target = model, goal, target
        with torch.inference_mode(False):
            self.table = model.table(scene).detach().clone()  # [V, D]
        self.text = torch.tensor(scene.vocabulary.is_text, device=scene.device)
        self.words = word_numbers(scene.vocabulary).to(scene.device)
        self.glued = glued(scene.vocabulary).to(scene.device)
        self._used: tuple[Step, Tensor] | None = None

    def bias(self, step: Step) -> Tensor | None:
        if not self._open(step):
            return None
        draft = Draft.of(step)
        scores, value = self._scores(step, draft)
        among = draft.alive[..., None] * draft.q
        spread = (
            ((among * scores.square()).sum((1, 2)) / draft.alive.sum(1).clamp_min(1e-6))
            .sqrt()
            .clamp_min(1e-6)
        )
        unit = (scores * (PUSH / spread)[:, None, None]).clamp(-LIMIT, LIMIT)
        spared = written(step, self.words)[:, None, :] | self.glued
        unit = torch.where(spared, unit.clamp_max(0.0), unit)
        push = torch.ones_like(value)
        if self.target is not None:
            push = self._push(draft, unit, scores, value)
        self._used = step, push
        return push[:, None, None] * unit

    def push(self, step: Step) -> Tensor | None:
        return self._used[1] if self._used is not None and self._used[0] is step else None

    def _open(self, step: Step) -> bool:
        return bool(step.canvas.open.any())

    def _scores(self, step: Step, draft: Draft) -> tuple[Tensor, Tensor]:
        """(first-order scores [B, L, V], centred under q, 0 for special tokens; S [B])."""
        canvas = step.canvas
        held = ~canvas.open & self.text[canvas.tokens]
        with torch.inference_mode(False), torch.enable_grad():
            expected = draft.q.clone() @ self.table
            mixed = torch.where(canvas.open[..., None], expected, self.table[canvas.tokens.clone()])
            mixed = mixed.detach().requires_grad_()
            weight = torch.where(held, 1.0, draft.alive).clone()
            value = self.model.soft(mixed, weight, self.goal)
            (slope,) = torch.autograd.grad(value.sum(), mixed)
        slope = slope * canvas.open[..., None]
        scores = slope @ self.table.T - (slope * mixed.detach()).sum(-1, keepdim=True)
        return torch.where(self.text, scores, 0.0), value.detach()

    def _push(self, draft: Draft, unit: Tensor, scores: Tensor, value: Tensor) -> Tensor:
        assert self.target is not None
        q, best = draft.q.topk(min(AMONG, draft.q.shape[-1]), dim=-1)
        few = Draft(q, (1.0 - q.sum(-1)).clamp_min(0.0), draft.alive)
        goal = math.log(self.target) - math.log1p(-self.target)
        return smallest_push(few, unit.gather(-1, best), scores.gather(-1, best), value, goal)
