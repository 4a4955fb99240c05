"""The loop: propose, steer, draft, commit, reopen. It names no method, model or guide."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.blocks import Schedule, Window, ahead, ended, follow
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.distribution import distributions
from redraft.denoiser.errors import InvalidGuideError, UnsatisfiableError
from redraft.denoiser.exact import Language, Posterior, feasible, posterior
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.selection import Proposal
from redraft.denoiser.settings import Settings
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Prompt, Step
from redraft.denoiser.vocabulary import Vocabulary

SURE = 1.0 - 1e-4  # far above what float32 logits of another batch size change (1e-7), or they decide
COLD = 0.5  # the lowest temperature at which a posterior says so


@dataclass(frozen=True)
class Refinement:
    """What one step did.

    canvas: after it; draft [B, L]: the whole text as it would be if all were accepted now; committed,
    reopened [B, L] bool; pressure [B]: -log Z in nats, how much the hard guides fight the denoiser;
    denoiser_ms, guidance_ms: where the time went; beliefs: the posterior that the draft is from; pushes [B]:
    the strength each guide that tells it used, by the guide's text; parents [B] int64: with particles, the row that
    each row goes on from behind this step, None where all go on as they are.
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
    parents: Tensor | None = None


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
    language. A denoiser that writes block by block, and every hook, is shown the canvas up to its block; the draft
    is of the whole all the same, with a guess for what nobody has seen. Who drains the loop may send back
    int64 [B], the rows to go on with. Raises `InvalidGuideError` or `UnsatisfiableError` before any forward pass.
    """
    length = canvas.tokens.shape[1]
    schedule = Schedule.of(settings.steps, length, settings.block_length, denoiser.block)
    if settings.revision is not None and settings.revision.provisional and not denoiser.noise.revisable:
        raise InvalidGuideError(
            f"revision {settings.revision.name!r} leaves tokens at open positions, and {denoiser.name} expects "
            "masks there: use Uncertain()"
        )
    _check_pins(canvas, steering)
    steering.admit(denoiser, prompt)
    denoiser = denoiser.begin()
    for window in schedule.windows(apart=denoiser.block is not None):
        language = follow(steering.language, canvas.tokens[:, : window.first])
        canvas, forced = _fill_forced(canvas, language, window)
        if window.index and not bool(canvas.open[:, : window.end].any()):
            continue
        stream = random.fork(window.index) if window.index else random
        run = _Run(steering, schedule, window, prompt, settings, stream)
        canvas, denoiser = yield from _refine(run, denoiser, language, canvas, forced)
    return canvas


@dataclass(frozen=True)
class _Run:
    """What stays the same during the steps of one window."""

    steering: Steering
    schedule: Schedule
    window: Window
    prompt: Prompt
    settings: Settings
    random: Randomness


def _refine(
    run: _Run, denoiser: Denoiser, language: Language, canvas: Canvas, forced: Tensor
) -> Generator[Refinement, Tensor | None, tuple[Canvas, Denoiser]]:
    steering, window, settings = run.steering, run.window, run.settings
    length, first, end = canvas.tokens.shape[1], window.first, window.end
    provisional = settings.revision is not None and settings.revision.provisional
    eos = denoiser.vocabulary.eos_id
    before, stood = canvas.tokens[:, :end], torch.full_like(canvas.tokens[:, 0], -1)
    for index in window.steps:
        begin = time.perf_counter()
        shown = canvas.first(end)
        logits = denoiser(shown, run.prompt)
        thought = time.perf_counter()
        step = Step(
            index,
            settings.steps,
            shown,
            logits,
            run.prompt,
            denoiser,
            run.random,
            settings.temperature,
            length - end,
            in_order=settings.selection.in_order and settings.steps >= length,
        )
        frame = run.schedule.frame(shown, index, eos)
        bias = steering.bias(step)
        weights = distributions(step, bias, settings, language)[:, first:]
        ends, greedy = denoiser.vocabulary.ends, settings.temperature == 0
        weights = ahead(weights, shown.open[:, first:], length - end, ends, greedy)
        beliefs = posterior(language, weights, canvas.tokens[:, first:], canvas.open[:, first:])
        uniform = run.random.uniform(length, 4)
        whole = beliefs.best() if greedy else beliefs.sample(uniform[:, first:, :2])
        draft = window.shown(whole, shown.tokens)
        confidence = window.shown(beliefs.confidence(whole), torch.ones_like(uniform[..., 0]))
        certain = _certain(beliefs, confidence[:, first:], settings.temperature)
        able = shown.open & frame.where
        sure = able & window.shown(certain, ~shown.open)
        last = frame.left == 1
        early = _padding(denoiser.vocabulary, shown, draft, sure, last)
        free = able & ~sure
        sure = sure & ~early
        quota = frame.quota(free, provisional)
        anchors = steering.anchors(step, draft, confidence)
        if anchors is not None:  # they fill the quota: what stands beside one is drawn when it is there
            sure = sure | (anchors & frame.where)
            quota = (quota - (free & sure).sum(-1)).clamp_min(0)
            free = free & ~sure
        unseen = sure & (draft != shown.tokens)
        proposal = Proposal(step, draft, confidence, free, quota, last, uniform[:, :end, 2], unseen)
        chosen = settings.selection(proposal) | sure
        if eos is not None:
            closed = able & ~chosen & ended(draft, chosen | ~shown.open, eos)
            chosen, confidence = chosen | closed, confidence.masked_fill(closed, 1.0)
        stood = torch.where(((draft == before) | ~frame.where).all(-1), stood + 1, 0)
        going = able.any(-1) & (frame.left > 1)
        if settings.stop is not None:
            stops = settings.stop(proposal, stood, able)
            chosen, going = chosen | (able & stops[:, None]), going & ~stops
        after = shown.commit(draft, chosen, confidence)
        going = going & ((after.open & frame.where).any(-1) | provisional)
        reopened = _reopened(step, after, steering, settings, going, uniform[:, :end, 3]) & frame.block
        reopened = reopened | (_after_end(denoiser.vocabulary, after, reopened) & frame.block)
        after = after.reopen(reopened)
        after = denoiser.noise.renoise(after, after.open & ~(reopened & provisional), run.random)
        denoiser = denoiser.carry(step, bias, settings.temperature)
        done = time.perf_counter()
        rows = yield Refinement(
            step=step,
            canvas=after,
            draft=draft,
            committed=(chosen & shown.open) | forced,
            reopened=reopened,
            pressure=_pressure(beliefs, whole, settings.temperature),
            denoiser_ms=1e3 * (thought - begin),
            guidance_ms=1e3 * (done - thought),
            beliefs=beliefs,
            pushes=steering.pushes(step),
        )
        canvas, before, forced = canvas.begin_with(after), draft, torch.zeros_like(forced)
        if rows is not None:
            canvas, denoiser, language = (
                canvas.take(rows),
                denoiser.take(rows),
                language.begin(language.start[rows]),
            )
            before, stood = before[rows], stood[rows]
        if not steering.settle(canvas.open[:, :end].any()):
            break
    return canvas, denoiser


def _check_pins(canvas: Canvas, steering: Steering) -> None:
    """Raise `UnsatisfiableError` where a row's pins leave the language nothing."""
    if not bool(canvas.pinned.any()):
        return
    stuck = ~feasible(steering.language, canvas.committed)
    if bool(stuck.any()):
        names = [str(bound.guide) for bound in steering.bound]
        raise UnsatisfiableError(
            f"row {int(stuck.long().argmax())}: no text on this canvas keeps the pinned tokens and satisfies "
            f"{' and '.join(names) or 'the vocabulary'}: pin less, or relax a guide",
            conflict=names,
        )


def _fill_forced(canvas: Canvas, language: Language, window: Window) -> tuple[Canvas, Tensor]:
    """The canvas with what the language leaves no choice about in this window committed; where that is: bool [B, end].

    A later window's block is padding in every row whose text has ended; such rows need no forward pass.
    """
    if not window.index:
        return canvas, torch.zeros_like(canvas.open[:, : window.end])
    tokens, open = canvas.tokens[:, window.first :], canvas.open[:, window.first :]
    flat = torch.zeros((), device=tokens.device).expand(*tokens.shape, len(language.classes))
    forced, only = posterior(language, flat, tokens, open).forced()
    where = window.shown(forced, torch.zeros_like(canvas.open))
    shown = canvas.first(window.end)
    filled = shown.commit(window.shown(only, shown.tokens), where, torch.ones_like(shown.confidence))
    return canvas.begin_with(filled), where


def _certain(beliefs: Posterior, confidence: Tensor, temperature: float) -> Tensor:
    """bool [B, L]: positions that have one token left. Near temperature 0 every best token looks certain,
    so there only those count that the language forces."""
    return confidence > SURE if temperature >= COLD else beliefs.forced()[0]


def _padding(vocabulary: Vocabulary, shown: Canvas, draft: Tensor, sure: Tensor, last: Tensor) -> Tensor:
    """bool [B, L]: padding that is sure and waits for the EOS token, but in a row's `last` step [B].

    That a text is over by then is a product of guesses, one for each position before it that nobody has come to;
    committed, they would hold the text to what was guessed. Where EOS is its own padding it is the denoiser's word.
    """
    if len(vocabulary.ends) < 2:
        return torch.zeros_like(sure)
    eos, pad = vocabulary.ends
    return sure & (draft == pad) & ~ended(draft, sure | ~shown.open, eos) & ~last[:, None]


def _after_end(vocabulary: Vocabulary, after: Canvas, reopened: Tensor) -> Tensor:
    """bool [B, L]: the padding behind an EOS token that is `reopened`; it would hold the text to where it ended.

    Where EOS is its own padding each of them is reopened, or not, for itself.
    """
    if len(vocabulary.ends) < 2:
        return torch.zeros_like(reopened)
    return ended(after.tokens, reopened, vocabulary.ends[0]) & ~after.open & ~after.pinned


def _pressure(beliefs: Posterior, draft: Tensor, temperature: float) -> Tensor:
    """[B] nats: -log Z; at temperature 0, where Z has no meaning, -log p(draft) / p(best draft without guides)."""
    if temperature > 0:
        return (-beliefs.log_z).clamp_min(0.0)
    weight = beliefs.log_p.gather(-1, draft[..., None]).squeeze(-1)
    return -torch.where(beliefs.open, weight.double().clamp_min(-1e4), 0.0).sum(-1)


def _reopened(
    step: Step, after: Canvas, steering: Steering, settings: Settings, going: Tensor, uniform: Tensor
) -> Tensor:
    """bool [B, L]: what to reopen now, in the rows [B] that are still `going`; never a pin."""
    mark = torch.zeros_like(after.open)
    if settings.revision is not None:
        mark = settings.revision(step, after, uniform)
    wish = steering.revise(step)
    mark = mark if wish is None else mark | wish
    return mark & going[:, None] & ~after.pinned & ~after.open
