"""Write texts: bind, refine, decode, check."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError, UnsatisfiableError
from redraft.denoiser.guide import Guide
from redraft.denoiser.prompts import Prompts
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
    `top_p`, `min_p` and `revision` change single ones. `on_step` sees every `Refinement`.
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
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 4096:
        raise InvalidGuideError(f"batch_size is {batch_size!r}: use a whole number from 1 to 4096")
    prompts = Prompts.of(prompt, samples, condition, chat)
    samples = len(prompts)
    seed = secrets.randbits(31) if seed is None else seed
    Randomness([seed, seed + samples - 1])  # an impossible seed is refused before anything runs
    limit = prompts.room(denoiser)
    results: list[Result] = []
    steering: Steering | None = None
    for begin in range(0, samples, batch_size):
        seeds = range(seed + begin, seed + min(begin + batch_size, samples))
        if steering is None or steering.scene.batch != len(seeds):
            steering = _bind(denoiser, guides, prompts.shared, len(seeds), length, limit, settings)
        own = prompts.part(begin, begin + batch_size)
        results += _run(denoiser, steering, guides, own, seeds, settings, on_step)
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
    prompts: Prompts,
    seeds: Sequence[int],
    settings: Settings,
    on_step: Callable[[Refinement], object] | None,
) -> list[Result]:
    begin = time.perf_counter()
    before = dict(steering.seconds)
    scene = steering.scene
    ready = prompts.ready(denoiser)
    canvas = Canvas.blank(scene.batch, scene.length, denoiser.noise.fill, denoiser.device)
    random = Randomness(seeds, denoiser.device)
    history = _History(scene.batch)
    for refinement in refine(denoiser, canvas, steering, prompt=ready, settings=settings, random=random):
        history.add(refinement)
        if on_step is not None:
            on_step(refinement)
    timing = Timing(
        denoiser_ms=history.denoiser_ms,
        guidance_ms=history.guidance_ms,
        total_ms=1e3 * (time.perf_counter() - begin),
        guides_ms={name: 1e3 * (spent - before[name]) for name, spent in steering.seconds.items()},
    )
    results = []
    for row, seed in enumerate(seeds):
        tokens = history.tokens[row]
        trace, pressure = tuple(history.commits[row]), tuple(history.pressures[row])
        text = denoiser.vocabulary.decode(tokens)
        results.append(
            Result(
                text=text,
                seed=seed,
                prompt=prompts.texts[row],
                condition=dict(prompts.condition),
                chat=prompts.chat,
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


class _History:
    """What happened to each row while it had anything open; keeps no logits."""

    def __init__(self, batch: int) -> None:
        self.denoiser_ms = self.guidance_ms = 0.0
        self.tokens: list[list[int]] = []
        self.commits: list[list[Commit]] = [[] for _ in range(batch)]
        self.pressures: list[list[float]] = [[] for _ in range(batch)]

    def add(self, r: Refinement) -> None:
        self.denoiser_ms += r.denoiser_ms
        self.guidance_ms += r.guidance_ms
        self.tokens = r.canvas.tokens.tolist()
        draft, committed, reopened = r.draft.tolist(), r.committed.tolist(), r.reopened.tolist()
        pressure, working = r.pressure.tolist(), r.step.canvas.open.any(-1).tolist()
        for row in (row for row, busy in enumerate(working) if busy):
            where = [i for i, yes in enumerate(committed[row]) if yes]
            again = tuple(i for i, yes in enumerate(reopened[row]) if yes)
            self.commits[row].append(Commit(tuple(where), tuple(draft[row][i] for i in where), again))
            self.pressures[row].append(pressure[row])
