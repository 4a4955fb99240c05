"""What a run thinks of its own drafts: their log-likelihood, and the tokens that they say again."""

from __future__ import annotations

import torch
from torch import Tensor

from redraft.denoiser.particles import Particles
from redraft.denoiser.refine import Refinement
from redraft.denoiser.step import Scene, Step

COMMON = 1 / 250  # a token that is likelier than this before anything is written is said again freely
LEAST = -100.0  # nats: what a token counts that the run itself would not have drawn


class OwnScore:
    """`score` [R, K] float64 = likelihood * log p of what is committed - repeats * tokens said again, nats.

    Text tokens alone are said again; a pinned token is never held against a draft. A reopened token counts anew.
    """

    def __init__(self, particles: Particles, scene: Scene, texts: int) -> None:
        self.particles, self.scene = particles, scene
        self.score = torch.zeros(texts, particles.count, dtype=torch.float64, device=scene.device)
        self.off = particles.likelihood == 0 and particles.repeats == 0
        shape = (self.score.numel(), scene.length)
        self._said = torch.zeros(shape, dtype=torch.float64, device=scene.device)
        self._rare: Tensor | None = None

    def gain(self, refinement: Refinement) -> Tensor:
        """What this step added to the score [R, K]."""
        if self.off:
            return torch.zeros_like(self.score)
        before = self.score
        score = self.particles.likelihood * self._log_p(refinement)
        if self.particles.repeats:
            score = score - self.particles.repeats * self._again(refinement)
        self.score = score.reshape(before.shape)
        return self.score - before

    def take(self, rows: Tensor) -> None:
        """Row b becomes what row `rows[b]` was (int64 [R * K], within each text)."""
        self._said = self._said[rows]
        self.score = self.score.flatten()[rows].reshape(self.score.shape)

    def _log_p(self, refinement: Refinement) -> Tensor:
        """Log-probability [R * K] of the committed tokens, each when it was drawn."""
        log_p, end = refinement.beliefs.log_p, refinement.draft.shape[1]
        first = self.scene.length - log_p.shape[1]
        drawn = log_p[:, : end - first].gather(-1, refinement.draft[:, first:, None]).squeeze(-1)
        drawn = drawn.double().clamp_min(LEAST)
        said = self._said.clone()
        part = torch.where(refinement.committed[:, first:], drawn, said[:, first:end])
        said[:, first:end] = torch.where(refinement.reopened[:, first:], 0.0, part)
        self._said = said
        return said.sum(-1)

    def _again(self, refinement: Refinement) -> Tensor:
        """How many rare text tokens [R * K] are committed, not pinned, and stand further left already."""
        if self._rare is None:
            self._rare = self._rarely(refinement.step)
        canvas = refinement.canvas
        held = ~canvas.open & self._rare.gather(1, canvas.tokens)
        same = canvas.tokens[:, :, None] == canvas.tokens[:, None, :]
        before = (same & held[:, None, :]).tril(-1).any(-1)
        return (before & held & ~canvas.pinned).sum(-1).double()

    def _rarely(self, step: Step) -> Tensor:
        """bool [R * K, V]: text tokens whose chance is below `COMMON` in the mean over the open positions."""
        open_ = step.canvas.open[..., None]
        chance = (step.log_p.exp() * open_).sum(1) / open_.sum(1).clamp_min(1)
        text = [raw is not None for raw in self.scene.vocabulary.token_bytes]
        return (chance < COMMON) & torch.tensor(text, device=chance.device)
