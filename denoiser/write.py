"""Write texts: bind, refine, decode, check."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.blocks import Schedule
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError, UnsatisfiableError
from redraft.denoiser.guide import Guide
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.refine import Refinement, refine
from redraft.denoiser.result import Commit, Result, Timing
from redraft.denoiser.settings import Settings
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Scene


def write(
    denoiser: Denoiser,
    guides: Guide | Sequence[Guide] = (),
    *,
    prompt: str = "",
    samples: int = 1,
    seed: int | None = None,
    length: int | None = None,
    condition: Mapping[str, str] | None = None,
    batch_size: int = 16,
    on_step: Callable[[Refinement], object] | None = None,
    settings: Settings | None = None,
    **changes: Any,
) -> list[Result]:
    """Write `samples` texts under guides; text k has seed `seed + k` and does not depend on the others.

    `length` is the canvas in tokens, the EOS token included; by default what the guides want, within the
    denoiser's limit. `settings` replaces the denoiser's own; `steps`, `selection`, `temperature`, `top_k`,
    `top_p`, `min_p`, `revision`, `block_length` and `stop` change single ones. `on_step` sees every `Refinement`.
    Raises `UnsatisfiableError`, `InvalidGuideError` or `UnwritableTextError` before any forward pass.
    """
    guides = (guides,) if isinstance(guides, Guide) else tuple(guides)
    for guide in guides:
        if not isinstance(guide, Guide):
            raise InvalidGuideError(f"{guide!r} is no guide: pass objects such as Keywords('storm')")
    unknown = set(changes) - set(Settings.__dataclass_fields__)
    if unknown:
        raise TypeError(f"write() has no option {', '.join(sorted(unknown))}")
    settings = (settings or denoiser.settings).override(**changes)
    for name, value, most in (("samples", samples, 1_000_000), ("batch_size", batch_size, 4096)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise InvalidGuideError(f"{name} is {value!r}: use a whole number from 1 to {most}")
    seed = secrets.randbits(31) if seed is None else seed
    Randomness([seed, seed + samples - 1])  # an impossible seed is refused before anything runs
    limit = denoiser.longest(denoiser.prepare(prompt, 1, condition))
    if limit < 1:
        raise InvalidGuideError(
            f"the prompt of {len(prompt)} characters leaves {denoiser.name} no canvas: shorten it"
        )
    results: list[Result] = []
    steering: Steering | None = None
    for begin in range(0, samples, batch_size):
        seeds = range(seed + begin, seed + min(begin + batch_size, samples))
        if steering is None or steering.scene.batch != len(seeds):
            steering = _bind(denoiser, guides, prompt, len(seeds), length, limit, settings)
        results += _run(denoiser, steering, guides, prompt, seeds, condition, settings, on_step)
    return results


def _bind(
    denoiser: Denoiser,
    guides: tuple[Guide, ...],
    prompt: str,
    batch: int,
    length: int | None,
    limit: int,
    settings: Settings,
) -> Steering:
    """Bind at the given length, or at the length that the guides want, made longer if that is what they need."""

    def at(tokens: int) -> Steering:
        Schedule.of(settings.steps, tokens, settings.block_length, denoiser.block)
        return Steering(
            guides, Scene(denoiser.vocabulary, denoiser.device, batch, tokens, settings.steps, prompt)
        )

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
        if error.needed is None or error.needed > limit:
            raise
        return at(min(error.needed + error.needed // 4, limit))


def _run(
    denoiser: Denoiser,
    steering: Steering,
    guides: tuple[Guide, ...],
    prompt: str,
    seeds: Sequence[int],
    condition: Mapping[str, str] | None,
    settings: Settings,
    on_step: Callable[[Refinement], object] | None,
) -> list[Result]:
    begin = time.perf_counter()
    before = dict(steering.seconds)
    scene = steering.scene
    ready = denoiser.prepare(prompt, scene.batch, condition)
    random = Randomness(seeds, denoiser.device)
    canvas = denoiser.noise.blank(scene.length, random)
    history = _History()
    run = refine(denoiser, canvas, steering, prompt=ready, settings=settings, random=random)
    final = _drain(run, history, on_step)
    tokens_of, commits, pressures = final.tokens.tolist(), *history.read(scene.batch)
    timing = Timing(
        denoiser_ms=history.denoiser_ms,
        guidance_ms=history.guidance_ms,
        total_ms=1e3 * (time.perf_counter() - begin),
        guides_ms={name: 1e3 * (spent - before[name]) for name, spent in steering.seconds.items()},
    )
    results = []
    for row, seed in enumerate(seeds):
        tokens = tokens_of[row]
        trace, pressure = tuple(commits[row]), tuple(pressures[row])
        text = denoiser.vocabulary.decode(tokens)
        results.append(
            Result(
                text=text,
                seed=seed,
                prompt=prompt,
                condition=dict(condition or {}),
                length=scene.length,
                guides=guides,
                settings=settings,
                verdicts=tuple(steering.check(text, tokens)),
                steps=len(trace),
                forward_passes=len(trace),
                pressure=pressure,
                timing=timing,
                tokens=tuple(tokens),
                trace=trace,
            )
        )
    return results


def _drain(
    run: Generator[Refinement, Tensor | None, Canvas],
    history: _History,
    on_step: Callable[[Refinement], object] | None,
) -> Canvas:
    """The canvas that the loop ends with."""
    while True:
        try:
            refinement = next(run)
        except StopIteration as end:
            canvas: Canvas = end.value
            return canvas
        history.add(refinement)
        if on_step is not None:
            on_step(refinement)


class _History:
    """What happened at each step; keeps no logits, and waits for no device before it is read."""

    def __init__(self) -> None:
        self.denoiser_ms = self.guidance_ms = 0.0
        self._steps: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, r: Refinement) -> None:
        self.denoiser_ms += r.denoiser_ms
        self.guidance_ms += r.guidance_ms
        # bits of the last: 1 committed, 2 reopened, 4 the row had anything open
        marks = r.committed.long() + 2 * r.reopened + 4 * r.step.canvas.open.any(-1, keepdim=True)
        self._steps.append((r.draft, marks, r.pressure))

    def read(self, batch: int) -> tuple[list[list[Commit]], list[list[float]]]:
        """Commits and pressures of each row while it had anything open."""
        commits: list[list[Commit]] = [[] for _ in range(batch)]
        pressures: list[list[float]] = [[] for _ in range(batch)]
        for drafts, marks, pressure in self._steps:
            both = torch.stack([drafts, marks]).tolist()
            for row, (draft, mark, nats) in enumerate(zip(*both, pressure.tolist(), strict=True)):
                if not mark or not mark[0] & 4:
                    continue
                where = tuple(i for i, bits in enumerate(mark) if bits & 1)
                again = tuple(i for i, bits in enumerate(mark) if bits & 2)
                commits[row].append(Commit(where, tuple(draft[i] for i in where), again))
                pressures[row].append(nats)
        return commits, pressures
