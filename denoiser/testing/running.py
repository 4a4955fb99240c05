"""Checks of whole runs: scale 0, pins, early errors, what a guide costs."""

from __future__ import annotations

import torch

from redraft.denoiser.errors import GuideError, RedraftError
from redraft.denoiser.guide import SoftGuide
from redraft.denoiser.settings import Settings
from redraft.denoiser.testing.examination import Check, demand
from redraft.denoiser.testing.facts import GuideFacts
from redraft.denoiser.testing.moments import HOOKS, Moment, hooks
from redraft.denoiser.testing.toys import ToyDenoiser, toy_vocabulary

_HOOKS_WORK = ("deterministic", "verdict")


def _nothing(facts: GuideFacts) -> None:
    assert isinstance(facts.guide, SoftGuide)
    settings = Settings(steps=facts.bench.steps)
    ways = [dict(facts.bench.options), facts.options] if facts.bound.weighs else [facts.options]
    for options in ways:  # at scale 0 no guide needs particles
        own = {"samples": 2, "seed": 5, "settings": settings, **options}
        plain = facts.bench.denoiser.write([], **own)
        none = facts.bench.denoiser.write([0.0 * facts.guide], **own)
        for one, other in zip(plain, none, strict=True):
            demand(
                (one.tokens, one.trace) == (other.tokens, other.trace),
                f"seed {one.seed} writes {one.text!r} without the guide and {other.text!r} at scale 0",
            )


def _pins(facts: GuideFacts) -> None:
    words = [tokens for _, tokens in facts.words][: facts.bench.batch]
    held = torch.tensor(words, device=facts.scene.device)
    where = torch.zeros_like(held, dtype=torch.bool)
    where[:, ::3] = True
    canvas = facts.canvas(len(words)).pin(held, where)
    seeds = facts.seeds[: len(words)]
    for r in facts.run([facts.guide], canvas, seeds, Settings(steps=facts.bench.steps)):
        demand(
            torch.equal(r.canvas.tokens[where], held[where]) and not bool(r.canvas.open[where].any()),
            f"a pinned position changes at step {r.step.index}",
        )
        if len(words) == facts.bench.batch:
            sure = torch.ones_like(r.draft, dtype=torch.float64)
            moment = Moment(r.step, r.draft, sure, seeds)
            mark = HOOKS["revise"](facts.bound, moment.fresh())
            demand(
                mark is None or not bool((mark & r.step.canvas.pinned).any()),
                f"revise marks a pinned position at step {r.step.index}",
            )


def _early(facts: GuideFacts) -> None:
    """On every canvas, and with a vocabulary of a few letters, it runs to the end or is refused at once."""
    conditions = facts.bench.denoiser.conditions
    poor = ToyDenoiser(toy_vocabulary(b"aehst .\n", ()), length=12, conditions=conditions)
    ways: list[tuple[ToyDenoiser, int | None, str]] = [
        (
            ToyDenoiser(facts.scene.vocabulary, length=facts.scene.length, conditions=conditions),
            length,
            f"a canvas of {length} tokens",
        )
        for length in (1, 2, facts.scene.length)
    ]
    for denoiser, length, where in [*ways, (poor, None, "a vocabulary of eight letters")]:
        try:
            denoiser.write([facts.guide], seed=3, length=length, steps=3, **facts.options)
        except GuideError as error:
            demand(False, f"on {where}: {error}")
        except RedraftError as error:
            demand(
                denoiser.calls == 0,
                f"on {where} it is refused after {denoiser.calls} forward passes: {error}",
            )


def _cost(facts: GuideFacts) -> str:
    """Not judged: what the guide takes of a run of the bench's denoiser."""
    denoiser, guides = facts.bench.denoiser, [facts.guide]
    settings = Settings(steps=facts.bench.steps)
    options = {"settings": settings, "length": facts.scene.length, **facts.options}
    result = denoiser.write(guides, samples=4, seed=1, **options)[0]
    timing = result.timing
    each = timing.guides_ms[str(facts.guide)] / result.forward_passes
    share = timing.guidance_ms / max(timing.guidance_ms + timing.denoiser_ms, 1e-9)
    used = [name for name in hooks() if HOOKS[name](facts.bound, facts.moments[0].fresh()) is not None]
    bound = facts.bound.language()
    size = f"{bound.minimise().states:,} states, " if bound is not None else ""
    return (
        f"{size}{each:.2f} ms a step in its hooks ({', '.join(used) or 'none'}), "
        f"steering is {share:.0%} of a step of {denoiser.name}"
    )


RUNNING = (
    Check(
        "zero-is-nothing",
        "a scale is a dial that starts at off",
        "leave `*` to SoftGuide: 0.0 * guide is no guide at all",
        _nothing,
        needs=_HOOKS_WORK,
        applies=lambda facts: facts.soft,
    ),
    Check(
        "pins-untouched",
        "what the caller pinned is the caller's",
        "leave pinned positions out of revise: `& ~step.canvas.pinned`",
        _pins,
        needs=_HOOKS_WORK,
    ),
    Check(
        "early-errors",
        "an error after a minute of work is a minute lost",
        "raise InvalidGuideError, UnwritableTextError or UnsatisfiableError in bind; let hooks work on any canvas",
        _early,
        needs=_HOOKS_WORK,
    ),
    Check(
        "cost",
        "it is shown, not judged: a slow guide is slow in every run",
        "precompute in bind; keep hooks in tensor operations",
        _cost,
        needs=_HOOKS_WORK,
    ),
)
