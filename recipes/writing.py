"""Run a recipe for the command: load, write, show, a batch at a time."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.recipe import Recipe
from redraft.recipes.report import as_dict, plain_line
from redraft.recipes.settings import effective

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser
    from redraft.denoiser.result import Result
    from redraft.recipes.page import Recorder

BATCH = 16
MOST_IN_REPORT = 100


def perform(
    recipe: Recipe,
    *,
    device: str = "cpu",
    as_json: bool = False,
    save: str | None = None,
    report: str | None = None,
) -> int:
    """Write the recipe's texts to standard output: live on a terminal, else plain text, or JSON lines.

    The exit code: 1 where a text violates a hard guide after all (which is a bug, and is not hidden), else 0.
    """
    for option, file in (("--save-recipe", save), ("--report", report)):
        if file is not None and not Path(file).absolute().parent.is_dir():
            raise InvalidRecipeError(f"{option} is {file!r}: make its folder first")
        if file is not None and (not file or Path(file).is_dir()):
            raise InvalidRecipeError(f"{option} is {file!r}: name a file")
    sound = True
    drawn = recipe.seed is None
    if drawn:
        recipe = recipe.override(seed=secrets.randbits(31))
    if report is not None and recipe.samples > MOST_IN_REPORT:
        raise InvalidRecipeError(
            f"--report shows at most {MOST_IN_REPORT} texts, and {recipe.samples} are asked for: use --samples"
        )
    live = not as_json and sys.stdout.isatty()
    first: Result | None = None
    recorder = _recorder(recipe, report)
    everything: list[Result] = []
    for results in _live(recipe, device, recorder) if live else _batches(recipe, device, recorder):
        everything += results if report is not None else ()
        if first is None and drawn and not (as_json or live):
            print(f"seed {recipe.seed}", file=sys.stderr)
        if as_json:
            _print_json(results, recipe)
        elif not live:
            _print_plain(results, begun=first is not None)
        first = first or results[0]
        sound = sound and all(result.satisfied for result in results)
    if save is not None and first is not None:
        complete(first, recipe, recipe.samples).write(save)
    if report is not None and recorder is not None:
        from redraft.recipes.page.observed import write_page

        write_page(report, everything, recorder, recipe)
    return 0 if sound else 1


def complete(result: Result, recipe: Recipe, samples: int = 1) -> Recipe:
    """The recipe that writes a result again (and the `samples` - 1 after it), under the same title."""
    own = Recipe.from_result(result, recipe.model, title=recipe.title, description=recipe.description)
    return replace(own, samples=samples)


def parts(recipe: Recipe, denoiser: Denoiser) -> Iterator[Recipe]:
    """A recipe with a seed, cut into recipes of one batch each, so that texts are shown when they are done."""
    particles = effective(denoiser, recipe.settings).particles
    batch = max(1, BATCH // particles.count) if particles else BATCH
    seed = recipe.seed or 0
    recipe.override(
        seed=seed + recipe.samples - 1
    )  # an impossible last seed is refused before the first text
    for begun in range(0, recipe.samples, batch):
        yield recipe.override(seed=seed + begun, samples=min(batch, recipe.samples - begun))


def _recorder(recipe: Recipe, report: str | None) -> Recorder | None:
    if report is None:
        return None
    from redraft.recipes.page import Recorder

    return Recorder(recipe)


def _batches(recipe: Recipe, device: str, recorder: Recorder | None) -> Iterator[list[Result]]:
    denoiser = _load(recipe, device)
    for part in parts(recipe, denoiser):
        yield part.run(denoiser, on_step=recorder)


def _live(recipe: Recipe, device: str, recorder: Recorder | None) -> Iterator[list[Result]]:
    from rich.console import Console

    from redraft.recipes.live import write_live

    console = Console(highlight=False)
    with console.status(f"loading {recipe.model}"):
        denoiser = _load(recipe, device)
    for part in parts(recipe, denoiser):
        yield write_live(part, denoiser, console, alone=recipe.samples == 1, also=recorder)


def _load(recipe: Recipe, device: str) -> Denoiser:
    from redraft.denoiser import load

    return load(recipe.model, device=device)


def _print_json(results: list[Result], recipe: Recipe) -> None:
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    for result in results:
        table = as_dict(result, complete(result, recipe).to_dict())
        print(json.dumps(table, ensure_ascii=ascii_only, allow_nan=False), flush=True)


def _print_plain(results: list[Result], *, begun: bool) -> None:
    """The texts, a blank line between them; on standard error what did not come out as asked."""
    for number, result in enumerate(results):
        print(("\n" if begun or number else "") + result.text, flush=True)
        for verdict in result.verdicts:
            if verdict.status != "satisfied":
                print(f"seed {result.seed}: {plain_line(verdict, result.text)}", file=sys.stderr)
