"""Run a recipe and write the page that explains its texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from redraft.denoiser import Denoiser, Refinement
from redraft.denoiser.result import Result
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.page.build import page
from redraft.recipes.page.recorder import Recorder
from redraft.recipes.recipe import Recipe


def run_observed(
    recipe: Recipe,
    file: str | Path,
    denoiser: Denoiser,
    *,
    on_step: Callable[[Refinement], object] | None = None,
    **options: Any,
) -> list[Result]:
    """A recipe's results, explained on the page `file`; raises `InvalidRecipeError` where it has no folder."""
    if not Path(file).absolute().parent.is_dir():
        raise InvalidRecipeError(f"report is {str(file)!r}: make its folder first")
    recorder = Recorder(recipe)

    def both(refinement: Refinement) -> None:
        recorder(refinement)
        if on_step is not None:
            on_step(refinement)

    results = recipe.run(denoiser, on_step=both, **options)
    write_page(file, results, recorder, recipe)
    return results


def write_page(file: str | Path, results: Sequence[Result], recorder: Recorder, recipe: Recipe) -> None:
    """Write the page on results to a file; raises `InvalidRecipeError` where that cannot be."""
    content = page(results, recorder, recipe)
    try:
        Path(file).write_text(content, encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise InvalidRecipeError(f"{file} cannot be written: {error.strerror or error}") from error
