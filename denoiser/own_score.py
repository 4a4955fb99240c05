"""What a run thinks of its own drafts: their log-likelihood, and what they say again."""

from __future__ import annotations

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.particles import Particles
from redraft.denoiser.refine import Refinement
from redraft.denoiser.step import Scene, Step

COMMON = 1 / 250  # a token that is likelier than this before anything is written is said again freely
LEAST = -100.0  # nats: what a token counts that the run itself would not have drawn


class OwnScore:
    """`score` [R, K] float64 = likelihood * log p of what is committed - repeats * what is said again, nats.

    log p is that of the run without its hard guides: of each step's commits, given the canvas, among all texts that the
    vocabulary can write. Tokens with a letter in them are said again, and runs of three tokens; what is pinned is
    never held against a draft. A reopened token counts anew.
    """

    def __init__(self, particles: Particles, scene: Scene, texts: int) -> None:
        self.particles, self.vocabulary = particles, scene.vocabulary
        self.score = torch.zeros(texts, particles.count, dtype=torch.float64, device=scene.device)
        self.off = particles.likelihood == 0 and particles.repeats == 0
        shape = (self.score.numel(), scene.length)
        self._said = torch.zeros(shape, dtype=torch.float64, device=scene.device)
        self._text = torch.tensor(self.vocabulary.is_text if particles.repeats else (), device=scene.device)
        self._rare: Tensor | None = None

    def gain(self, refinement: Refinement, before: Tensor, after: Tensor) -> Tensor:
        """What this step added to the score [R, K]; `before`, `after`: log Z as `_log_p` has it, [R * K]."""
        if self.off:
            return torch.zeros_like(self.score)
        former = self.score
        score = torch.zeros_like(former).flatten()
        if self.particles.likelihood:
            score = self.particles.likelihood * self._log_p(refinement, after - before)
        if self.particles.repeats:
            again = self._again(refinement) + runs_again(refinement.canvas, self._text)
            score = score - self.particles.repeats * again
        self.score = score.reshape(former.shape)
        return self.score - former

    def take(self, rows: Tensor) -> None:
        """Row b becomes what row `rows[b]` was (int64 [R * K], within each text)."""
        self._said = self._said[rows]
        self.score = self.score.flatten()[rows].reshape(self.score.shape)

    def _log_p(self, refinement: Refinement, ratio: Tensor) -> Tensor:
        """Log-probability [R * K] of the committed tokens, each step's when they were drawn.

        Of a step's commits S it is sum_S log p_i(v_i) + log Z(after) - log Z(before) (the `ratio`), Z the
        probability that independent draws at the open positions complete a text.
        """
        now = refinement.committed
        drawn = refinement.beliefs.log_p.gather(-1, refinement.draft[..., None]).squeeze(-1)
        place = torch.arange(now.shape[1], device=now.device)
        last = now & (place == torch.where(now, place, -1).amax(-1, keepdim=True))
        drawn = drawn.double().clamp_min(LEAST) + torch.where(last, ratio[:, None], 0.0)
        self._said = torch.where(refinement.reopened, 0.0, torch.where(now, drawn, self._said))
        return self._said.sum(-1)

    def _again(self, refinement: Refinement) -> Tensor:
        """How many committed rare tokens [R * K] stand further left already, or are pinned elsewhere."""
        if self._rare is None:
            self._rare = self._rarely(refinement.step)
        canvas = refinement.canvas
        rare = self._rare[:, None].expand(-1, self.particles.count, -1).flatten(0, 1)
        held = ~canvas.open & rare.gather(1, canvas.tokens)
        same = (canvas.tokens[:, :, None] == canvas.tokens[:, None, :]) & held[:, None, :]
        before = same.tril(-1).any(-1) | (same & canvas.pinned[:, None, :]).any(-1)
        return (before & held & ~canvas.pinned).sum(-1).double()

    def _rarely(self, step: Step) -> Tensor:
        """bool [R, V]: tokens with a letter whose chance among the text's tokens is below `COMMON`.

        The chance is the mean over the open positions and the particles.
        """
        text = self._text
        lettered = torch.tensor(self.vocabulary.has_letter, device=step.logits.device)
        chance = (step.log_p.exp() * step.canvas.open[..., None]).sum(1)
        chance = chance.reshape(len(self.score), -1, len(text)).sum(1) * text
        chance = chance / chance.sum(-1, keepdim=True).clamp_min(1e-12)
        return (chance < COMMON) & lettered


def runs_again(canvas: Canvas, text: Tensor) -> Tensor:
    """How many runs of three committed text tokens [B] stand further left already; runs that are all pinned are free.

    `text` [V] bool: the tokens that are text.
    """
    tokens, held = canvas.tokens, ~canvas.open & text[canvas.tokens]
    count = max(tokens.shape[1] - 2, 0)
    run, given = (marks[:, :count] & marks[:, 1:-1] & marks[:, 2:] for marks in (held, canvas.pinned))
    same = run[:, None, :] & run[:, :, None]
    for part in (tokens[:, :count], tokens[:, 1:-1], tokens[:, 2:]):
        same = same & (part[:, :, None] == part[:, None, :])
    return (same.tril(-1).any(-1) & ~given).sum(-1).double()
