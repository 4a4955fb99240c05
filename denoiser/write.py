"""Write texts: bind, refine, decode, check."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.blocks import Schedule
from redraft.denoiser.checked import check
from redraft.denoiser.errors import InvalidGuideError, UnsatisfiableError
from redraft.denoiser.guide import Guide
from redraft.denoiser.history import History
from redraft.denoiser.prompts import Prompts
from redraft.denoiser.randomness import Randomness, check_seeds
from redraft.denoiser.refine import Refinement, refine
from redraft.denoiser.result import Result, Timing
from redraft.denoiser.settings import Settings
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Scene
from redraft.denoiser.swarm import Swarm, drain, row_seeds


def write(
    denoiser: Denoiser,
    guides: Guide | Sequence[Guide] = (),
    *,
    prompt: str | Sequence[str] = "",
    samples: int | None = None,
    seed: int | None = None,
    length: int | None = None,
    condition: Mapping[str, str] | None = None,
    chat: bool = False,
    batch_size: int = 16,
    on_step: Callable[[Refinement], object] | None = None,
    settings: Settings | None = None,
    **changes: Any,
) -> list[Result]:
    """Write `samples` texts under guides; text k has seed `seed + k` and does not depend on the others.

    `prompt` is one for all, or a list with one for each text; with `chat` it is a user's message, put into the
    model's chat template. One canvas length serves all, so with prompts near the model's limit the longest
    prompt decides it.
    `length` is the canvas in tokens, the EOS token included; by default what the guides want, within the
    denoiser's limit. `settings` replaces the denoiser's own; `steps`, `selection`, `temperature`, `top_k`,
    `top_p`, `min_p`, `revision`, `block_length`, `stop` and `particles` change single ones. `on_step` sees every
    `Refinement`.
    Raises `UnsatisfiableError`, `InvalidGuideError` or `UnwritableTextError` before any forward pass.
    """
    guides = listed(guides)
    unknown = set(changes) - set(Settings.__dataclass_fields__)
    if unknown:
        raise TypeError(f"write() has no option {', '.join(sorted(unknown))}")
    for what, value, hint in (
        ("seed", seed, int | None),
        ("condition", condition, Mapping[str, str] | None),
        ("settings", settings, Settings | None),
    ):
        check(what, value, hint)
    if on_step is not None and not callable(on_step):
        raise InvalidGuideError(f"on_step is {on_step!r}: use a function of a Refinement")
    settings = (denoiser.settings if settings is None else settings).override(**changes)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 4096:
        raise InvalidGuideError(f"batch_size is {batch_size!r}: use a whole number from 1 to 4096")
    prompts = Prompts.of(prompt, samples, condition, chat)
    samples = len(prompts)
    seed = secrets.randbits(31) if seed is None else seed
    check_seeds(seed, samples)
    limit = prompts.room(denoiser)
    results: list[Result] = []
    steering: Steering | None = None
    count = settings.particles.count if settings.particles else 1
    texts = max(1, batch_size // count)  # `batch_size` counts rows, and every particle is one
    for begin in range(0, samples, texts):
        seeds = range(seed + begin, seed + min(begin + texts, samples))
        if steering is None or steering.scene.batch != len(seeds) * count:
            steering = _bind(denoiser, guides, prompts.shared, len(seeds) * count, length, limit, settings)
            _weighable(denoiser, steering, settings)
        own = prompts.part(begin, begin + texts)
        results += _run(denoiser, steering, guides, own, seeds, settings, on_step)
    return results


def listed(guides: Guide | Sequence[Guide]) -> tuple[Guide, ...]:
    """Guides as `write` takes them; raises `InvalidGuideError` for anything else."""
    if isinstance(guides, Guide):
        return (guides,)
    if isinstance(guides, (str, Mapping)) or not isinstance(guides, Iterable):
        raise InvalidGuideError(f"guides is {guides!r}: pass a list of objects such as Keywords('storm')")
    listed = tuple(guides)
    for guide in listed:
        if not isinstance(guide, Guide):
            raise InvalidGuideError(f"{guide!r} is no guide: pass objects such as Keywords('storm')")
    return listed


def _bind(
    denoiser: Denoiser,
    guides: tuple[Guide, ...],
    prompt: str,
    batch: int,
    length: int | None,
    limit: int,
    settings: Settings,
) -> Steering:
    """Bind at the given length, or at the one that the guides want, longer or shorter if that is what they need."""

    def at(tokens: int) -> Steering:
        Schedule.of(settings.steps, tokens, settings.block_length, denoiser.block)
        scene = Scene(denoiser.vocabulary, denoiser.device, batch, tokens, settings.steps, prompt)
        try:
            return Steering(guides, scene)
        except UnsatisfiableError as error:
            if error.needed is None or error.needed <= limit:
                raise
            names = " and ".join(error.conflict)
            raise UnsatisfiableError(
                f"{names} cannot fit a canvas of {error.needed - 1} tokens, and {denoiser.name} writes at most {limit} "
                "behind this prompt: relax a guide, or shorten the prompt",
                conflict=error.conflict,
                needed=error.needed,
            ) from error

    if length is not None:
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= limit:
            raise InvalidGuideError(
                f"length is {length!r}: {denoiser.name} writes canvases of 1 to {limit} tokens behind this prompt"
            )
        return at(length)
    rooms = [room for guide in guides if (room := guide.room()) is not None]
    ending = int(denoiser.vocabulary.eos_id is not None)
    wanted = min(max(rooms) + ending if rooms else denoiser.length, limit)
    try:
        return at(wanted)
    except UnsatisfiableError as error:
        if error.filled:
            with suppress(UnsatisfiableError):  # then the first error is the one to tell
                return at(max(error.filled))
        if error.needed is None or error.needed > limit:
            raise
        return at(min(error.needed + error.needed // 4, limit))


def _run(
    denoiser: Denoiser,
    steering: Steering,
    guides: tuple[Guide, ...],
    prompts: Prompts,
    seeds: Sequence[int],
    settings: Settings,
    on_step: Callable[[Refinement], object] | None,
    held: Tensor | None = None,
) -> list[Result]:
    begin = time.perf_counter()
    before = dict(steering.seconds)
    scene = steering.scene
    count = settings.particles.count if settings.particles else 1
    ready = prompts.ready(denoiser, count)
    ready = replace(ready, fitted=held is not None or any(guide.fits() for guide in guides))
    random = Randomness(row_seeds(seeds, count), denoiser.device)
    canvas = denoiser.noise.blank(scene.length, random)
    canvas = canvas if held is None else canvas.pin(held, held >= 0)
    swarm = Swarm(settings.particles, steering, seeds) if settings.particles else None
    history = History()
    run = refine(denoiser, canvas, steering, prompt=ready, settings=settings, random=random)
    final = drain(run, history, swarm, on_step)
    tokens_of, pasts = final.tokens.tolist(), history.read(scene.batch)
    timing = Timing(
        denoiser_ms=history.denoiser_ms,
        guidance_ms=history.guidance_ms,
        total_ms=1e3 * (time.perf_counter() - begin),
        guides_ms={name: 1e3 * (spent - before[name]) for name, spent in steering.seconds.items()},
    )
    results = []
    populations = swarm.populations(_texts(denoiser, tokens_of)) if swarm else [None] * len(seeds)
    for number, (seed, population) in enumerate(zip(seeds, populations, strict=True)):
        row = number * count + (population.chosen if population else 0)
        tokens, past = tokens_of[row], pasts[row]
        trace, pressure = tuple(past.commits), tuple(past.pressures)
        text = denoiser.vocabulary.decode(tokens)
        results.append(
            Result(
                text=text,
                seed=seed,
                prompt=prompts.texts[number],
                condition=dict(prompts.condition),
                chat=prompts.chat,
                length=scene.length,
                guides=guides,
                settings=settings,
                verdicts=tuple(steering.check(text, tokens)),
                steps=len(trace),
                forward_passes=len(trace) * count,
                pressure=pressure,
                timing=timing,
                tokens=tuple(tokens),
                trace=trace,
                pushes={name: tuple(values) for name, values in past.pushes.items()},
                particles=population,
            )
        )
    return results


def run_canvas(
    denoiser: Denoiser,
    steering: Steering,
    guides: tuple[Guide, ...],
    seeds: Sequence[int],
    settings: Settings,
    held: Tensor,
    condition: Mapping[str, str] | None = None,
) -> list[Result]:
    """Refine canvases of which the tokens `held` [B, L] int64 stand (-1: open), one row (or K particles') a seed."""
    _weighable(denoiser, steering, settings)
    prompts = Prompts.of("", len(seeds), condition, False)
    return _run(denoiser, steering, guides, prompts, seeds, settings, None, held)


def _weighable(denoiser: Denoiser, steering: Steering, settings: Settings) -> None:
    if steering.weighing and settings.particles is None:
        raise InvalidGuideError(
            f"{steering.weighing[0]} weighs whole drafts, which one draft alone cannot answer: "
            "add particles=Particles(8), or BestOf(8)"
        )
    if settings.particles is not None and denoiser.block is not None:
        raise InvalidGuideError(
            f"particles weigh whole drafts, and {denoiser.name} sees one block at a time: leave particles out"
        )


def _texts(denoiser: Denoiser, rows: Sequence[Sequence[int]]) -> list[str]:
    return [denoiser.vocabulary.decode(tokens) for tokens in rows]
