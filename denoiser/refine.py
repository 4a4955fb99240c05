"""The loop: propose, steer, draft, commit, reopen. It names no method, model or guide."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.distribution import distributions
from redraft.denoiser.exact import Posterior, posterior
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.selection import Proposal
from redraft.denoiser.settings import Settings
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Prompt, Step

SURE = 1.0 - 1e-9  # a posterior this near to 1 leaves no other token
COLD = 0.5  # the lowest temperature at which a posterior says so


@dataclass(frozen=True)
class Refinement:
    """What one step did.

    canvas: after it; draft [B, L]: the whole text as it would be if all were accepted now; committed,
    reopened [B, L] bool; pressure [B]: -log Z in nats, how much the hard guides fight the denoiser;
    denoiser_ms, guidance_ms: where the time went; beliefs: the posterior that the draft is from; pushes [B]:
    the strength each guide that tells it used, by the guide's text.
    """

    step: Step
    canvas: Canvas
    draft: Tensor
    committed: Tensor
    reopened: Tensor
    pressure: Tensor
    denoiser_ms: float
    guidance_ms: float
    beliefs: Posterior
    pushes: Mapping[str, Tensor]


def refine(
    denoiser: Denoiser,
    canvas: Canvas,
    steering: Steering,
    *,
    prompt: Prompt,
    settings: Settings,
    random: Randomness,
) -> Generator[Refinement, Tensor | None, None]:
    """Refine a canvas until nothing is open, one `Refinement` a step; stop early by leaving the loop.

    Who drains the loop may send back int64 [B], the rows to go on with.

    The draft of every step is a word of the language that agrees with all that is committed, so whatever
    subset is committed the rest of it still completes the canvas: the final canvas is in the language.
    """
    length = canvas.tokens.shape[1]
    for index in range(settings.steps):
        begin = time.perf_counter()
        logits = denoiser(canvas, prompt)
        thought = time.perf_counter()
        step = Step(index, settings.steps, canvas, logits, prompt, denoiser, random, settings.temperature)
        weights = distributions(step, steering.bias(step), settings, steering.language)
        beliefs = posterior(steering.language, weights, canvas.tokens, canvas.open)
        uniform = random.uniform(length, 4)
        draft = beliefs.sample(uniform[..., :2]) if settings.temperature > 0 else beliefs.best()
        confidence = beliefs.confidence(draft)
        forced = canvas.open & _certain(beliefs, confidence, settings.temperature)
        free = canvas.open & ~forced
        quota = -(-free.sum(-1) // (settings.steps - index))
        chosen = settings.selection(Proposal(step, draft, confidence, free, quota, uniform[..., 2])) | forced
        anchors = steering.anchors(step, draft, confidence)
        chosen = chosen if anchors is None else chosen | anchors
        after = canvas.commit(draft, chosen, confidence)
        reopened = _reopened(step, after, steering, settings, uniform[..., 3])
        after = after.reopen(reopened, denoiser.noise.fill)
        done = time.perf_counter()
        rows = yield Refinement(
            step=step,
            canvas=after,
            draft=draft,
            committed=chosen & canvas.open,
            reopened=reopened,
            pressure=_pressure(beliefs, draft, settings.temperature),
            denoiser_ms=1e3 * (thought - begin),
            guidance_ms=1e3 * (done - thought),
            beliefs=beliefs,
            pushes=steering.pushes(step),
        )
        canvas = after if rows is None else after.take(rows)
        if not bool(canvas.open.any()):
            return


def _certain(beliefs: Posterior, confidence: Tensor, temperature: float) -> Tensor:
    """bool [B, L]: positions that have one token left. Near temperature 0 every best token looks certain,
    so there only those count that the language forces."""
    return confidence > SURE if temperature >= COLD else beliefs.forced()[0]


def _pressure(beliefs: Posterior, draft: Tensor, temperature: float) -> Tensor:
    """[B] nats: -log Z; at temperature 0, where Z has no meaning, -log p(draft) / p(best draft without guides)."""
    if temperature > 0:
        return (-beliefs.log_z).clamp_min(0.0)
    weight = beliefs.log_p.gather(-1, draft[..., None]).squeeze(-1)
    return -torch.where(beliefs.open, weight.double().clamp_min(-1e4), 0.0).sum(-1)


def _reopened(step: Step, after: Canvas, steering: Steering, settings: Settings, uniform: Tensor) -> Tensor:
    """bool [B, L]: what to reopen now; never in the last step, never in a row that is finished, never a pin."""
    nothing = torch.zeros_like(after.open)
    if step.index + 1 >= step.steps:
        return nothing
    mark = nothing if settings.revision is None else settings.revision(step, after, uniform)
    wish = steering.revise(step)
    mark = mark if wish is None else mark | wish
    return mark & after.open.any(-1, keepdim=True) & ~after.pinned & ~after.open
