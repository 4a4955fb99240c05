"""Run a recipe for the command: load, write, show."""

from __future__ import annotations

import json
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.recipe import Recipe
from redraft.recipes.report import as_dict, plain_line

if TYPE_CHECKING:
    from redraft.denoiser.result import Result


def perform(recipe: Recipe, *, device: str = "cpu", as_json: bool = False, save: str | None = None) -> int:
    """Write the recipe's texts to standard output: live on a terminal, else plain text, or JSON lines."""
    if save is not None and not Path(save).absolute().parent.is_dir():
        raise InvalidRecipeError(f"--save-recipe is {save!r}: make its folder first")
    drawn = recipe.seed is None
    if drawn:
        recipe = recipe.override(seed=secrets.randbits(31))
    if not as_json and sys.stdout.isatty():
        from redraft.recipes.live import write_live

        results = write_live(recipe, device)
    else:
        results = recipe.run(device=device)
        if drawn and not as_json:
            print(f"seed {recipe.seed}", file=sys.stderr)
        (_print_json if as_json else _print_plain)(results, recipe)
    if save is not None:
        complete(results[0], recipe, recipe.samples).write(save)
    return 0


def complete(result: Result, recipe: Recipe, samples: int = 1) -> Recipe:
    """The recipe that writes a result again (and the `samples` - 1 after it), under the same title."""
    own = Recipe.from_result(result, recipe.model, title=recipe.title, description=recipe.description)
    return replace(own, samples=samples)


def _print_json(results: list[Result], recipe: Recipe) -> None:
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    for result in results:
        table = as_dict(result, complete(result, recipe).to_dict())
        print(json.dumps(table, ensure_ascii=ascii_only, allow_nan=False), flush=True)


def _print_plain(results: list[Result], recipe: Recipe) -> None:
    """The texts, a blank line between them; on standard error what did not come out as asked."""
    for number, result in enumerate(results):
        print(("\n" if number else "") + result.text, flush=True)
        for verdict in result.verdicts:
            if verdict.status != "satisfied":
                print(f"seed {result.seed}: {plain_line(verdict, result.text)}", file=sys.stderr)
