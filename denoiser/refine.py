"""The loop: propose, steer, draft, commit, reopen. It names no method, model or guide."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.blocks import Frame, Schedule, Window, completable
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.distribution import distributions
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.exact import Language, Posterior, posterior
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
    denoiser_ms, guidance_ms: where the time went.
    """

    step: Step
    canvas: Canvas
    draft: Tensor
    committed: Tensor
    reopened: Tensor
    pressure: Tensor
    denoiser_ms: float
    guidance_ms: float


def refine(
    denoiser: Denoiser,
    canvas: Canvas,
    steering: Steering,
    *,
    prompt: Prompt,
    settings: Settings,
    random: Randomness,
) -> Generator[Refinement, Tensor | None, Canvas]:
    """Refine a canvas until nothing is open, one `Refinement` a step; stop early by leaving the loop.

    The draft of every step is a word of the language that agrees with all that is committed, so whatever
    subset is committed the rest of it still completes the canvas: the final canvas, which is returned, is in the
    language. A denoiser that writes block by block is shown the canvas up to its block, and the language up to
    there is that of prefixes with a completion in the rest. Who drains the loop may send back int64 [B], the
    rows to go on with. Raises `InvalidGuideError` before any forward pass.
    """
    length = canvas.tokens.shape[1]
    schedule = Schedule.of(settings.steps, length, settings.block_length, denoiser.block)
    if settings.revision is not None and settings.revision.provisional and not denoiser.noise.revisable:
        raise InvalidGuideError(
            f"revision {settings.revision.name!r} leaves tokens at open positions, and {denoiser.name} expects "
            "masks there: use Uncertain()"
        )
    denoiser = denoiser.begin()
    for window in schedule.windows(apart=denoiser.block is not None):
        remaining = length - window.end
        language = completable(steering.language, remaining) if remaining else steering.language
        shown, forced = _fill_forced(canvas.first(window.end), language, window)
        if not window.index or bool(shown.open.any()):
            stream = random if not window.index else random.fork(window.index)
            run = _Run(denoiser, steering, language, schedule, window, remaining, prompt, settings, stream)
            shown, denoiser = yield from _refine(run, shown, forced)
        canvas = canvas.begin_with(shown)
    return canvas


@dataclass(frozen=True)
class _Run:
    """What stays the same during the steps of one window."""

    denoiser: Denoiser
    steering: Steering
    language: Language
    schedule: Schedule
    window: Window
    remaining: int
    prompt: Prompt
    settings: Settings
    random: Randomness


def _refine(
    run: _Run, canvas: Canvas, forced: Tensor
) -> Generator[Refinement, Tensor | None, tuple[Canvas, Denoiser]]:
    denoiser, steering, settings, random = run.denoiser, run.steering, run.settings, run.random
    length = canvas.tokens.shape[1]
    provisional = settings.revision is not None and settings.revision.provisional
    before, stood = canvas.tokens, torch.full_like(canvas.tokens[:, 0], -1)
    for index in run.window.steps:
        begin = time.perf_counter()
        logits = denoiser(canvas, run.prompt)
        thought = time.perf_counter()
        step = Step(index, settings.steps, canvas, logits, run.prompt, denoiser, random, run.remaining)
        frame = run.schedule.frame(canvas, index, denoiser.vocabulary.eos_id)
        bias = steering.bias(step)
        weights = distributions(step, bias, settings, run.language)
        beliefs = posterior(run.language, weights, canvas.tokens, canvas.open)
        uniform = random.uniform(length, 4)
        draft = beliefs.sample(uniform[..., :2]) if settings.temperature > 0 else beliefs.best()
        confidence = beliefs.confidence(draft)
        able = canvas.open & frame.where
        sure = able & _certain(beliefs, confidence, settings.temperature)
        quota = frame.quota(able & ~sure, provisional)
        proposal = Proposal(step, draft, confidence, able & ~sure, quota, frame.left == 1, uniform[..., 2])
        chosen = settings.selection(proposal) | sure
        anchors = steering.anchors(step, draft, confidence)
        chosen = chosen if anchors is None else chosen | (anchors & frame.where)
        stood = torch.where(((draft == before) | ~frame.where).all(-1), stood + 1, 0)
        if settings.stop is not None:
            chosen = chosen | (able & settings.stop(proposal, stood, able)[:, None])
        after = canvas.commit(draft, chosen, confidence)
        reopened = _reopened(step, after, steering, settings, frame, uniform[..., 3])
        after = after.reopen(reopened)
        after = denoiser.noise.renoise(after, after.open & ~(reopened & provisional), random)
        denoiser = denoiser.carry(step, bias, settings.temperature)
        done = time.perf_counter()
        rows = yield Refinement(
            step=step,
            canvas=after,
            draft=draft,
            committed=(chosen & canvas.open) | forced,
            reopened=reopened,
            pressure=_pressure(beliefs, draft, settings.temperature),
            denoiser_ms=1e3 * (thought - begin),
            guidance_ms=1e3 * (done - thought),
        )
        canvas, before, forced = after, draft, torch.zeros_like(forced)
        if rows is not None:
            canvas, denoiser, before, stood = canvas.take(rows), denoiser.take(rows), before[rows], stood[rows]
        if not bool(canvas.open.any()):
            break
    return canvas, denoiser


def _fill_forced(canvas: Canvas, language: Language, window: Window) -> tuple[Canvas, Tensor]:
    """The canvas with what a closed text leaves no choice about committed, and where that is (bool [B, L]).

    A later window's block is padding in every row whose text has ended; such rows need no forward pass.
    """
    nothing = torch.zeros_like(canvas.open)
    if not window.index:
        return canvas, nothing
    flat = torch.zeros((), device=canvas.tokens.device).expand(*canvas.tokens.shape, len(language.classes))
    forced, tokens = posterior(language, flat, canvas.tokens, canvas.open).forced()
    return canvas.commit(tokens, forced, torch.ones_like(canvas.confidence)), forced


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


def _reopened(
    step: Step, after: Canvas, steering: Steering, settings: Settings, frame: Frame, uniform: Tensor
) -> Tensor:
    """bool [B, L]: what to reopen now; never in a block's last step, never in a row that is done with its block,
    never in another block, never a pin."""
    mark = torch.zeros_like(after.open)
    if settings.revision is not None:
        mark = settings.revision(step, after, uniform)
    wish = steering.revise(step)
    mark = mark if wish is None else mark | wish
    working = (after.open & frame.where).any(-1) & (frame.left > 1)
    return mark & working[:, None] & frame.where & ~after.pinned & ~after.open
