"""Train a denoiser for the command: how long, from what, and what is said meanwhile."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.recipes.errors import InvalidRecipeError

if TYPE_CHECKING:
    from redraft.denoiser.training.schedule import Budget
    from redraft.denoiser.training.settings import Progress

MINUTES = 30.0
INTERRUPTED = 130


def perform(
    corpus: Sequence[str],
    out: str,
    *,
    start_from: str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
) -> int:
    """Train, with a line on standard error now and then; the release folder goes to standard output."""
    _check(minutes, steps, seed)
    release = None if start_from is None else release_folder(start_from)
    from redraft.denoiser.training.settings import Settings
    from redraft.denoiser.training.train import train

    settings = replace(Settings() if release is None else Settings.fine_tuning(), seed=seed, device=device)
    with _interruption() as stopped:
        try:
            written = train(
                [Path(name) for name in corpus],
                Path(out),
                budget=_budget(minutes, steps),
                start_from=release,
                settings=settings,
                progress=_say,
                stop=stopped.is_set,
            )
        except OSError as error:
            raise InvalidRecipeError(f"{error.filename or out}: {error.strerror or error}") from error
    if written is None:
        print(f"redraft: stopped and saved in {out}: the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    print(written)
    return 0


def release_folder(name: str) -> Path:
    """The folder of "embedded", or of a denoiser that `redraft train` wrote."""
    from redraft.denoiser.models.embedded import HOME

    folder = HOME if name == "embedded" else Path(name)
    inner = folder / "release"
    folder = inner if (inner / "redraft.json").is_file() else folder
    if not (folder / "redraft.json").is_file():
        raise InvalidRecipeError(
            f"--from is {name!r}, where no denoiser is: use embedded, or a folder that `redraft train` wrote"
        )
    return folder


def _check(minutes: float | None, steps: int | None, seed: int) -> None:
    if minutes is not None and steps is not None:
        raise InvalidRecipeError("--minutes and --steps are both given: use one of them")
    if minutes is not None and not (math.isfinite(minutes) and minutes > 0):
        raise InvalidRecipeError(f"--minutes is {minutes}: use a finite number above 0")
    if steps is not None and steps < 1:
        raise InvalidRecipeError(f"--steps is {steps}: use a whole number from 1")
    if not 0 <= seed < 2**31:
        raise InvalidRecipeError(f"--seed is {seed}: use a whole number from 0 to {2**31 - 1}")


def _budget(minutes: float | None, steps: int | None) -> Budget:
    from redraft.denoiser.training.schedule import Budget

    if steps is not None:
        return Budget.steps(steps)
    return Budget.minutes(MINUTES if minutes is None else minutes, now=time.time())


@contextmanager
def _interruption() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one interrupts as ever."""
    stopped = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        stopped.set()
        print("\nredraft: saving; once more to leave at once", file=sys.stderr)

    signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def _say(report: Progress) -> None:
    share = "" if report.share_done is None else f"{report.share_done:4.0%}  "
    if report.raw is not None:
        figures = "; ".join(
            f"{kind} {' / '.join(f'{figure.cross_entropy:.2f}' for figure in by_rate.values())}"
            for kind, by_rate in report.raw.items()
        )
        print(
            f"{share}held-out cross-entropy by share masked: {figures or 'no text was held out'}",
            file=sys.stderr,
        )
        for text in report.samples:
            print(f"      {text}", file=sys.stderr)
    elif report.note:
        print(f"{share}{report.note}", file=sys.stderr)
    else:
        speed = f"{report.tokens_per_second:.0f} tokens/s"
        print(f"{share}step {report.step}, loss {report.loss:.3f}, {speed}", file=sys.stderr)
    sys.stderr.flush()
