"""Run a recipe once for each row of a table: one JSON line a row, and on from where it stopped."""

from __future__ import annotations

import json
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redraft.denoiser.errors import GuideError, RedraftError
from redraft.recipes.blame import blame
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.journal import Journal
from redraft.recipes.recipe import Recipe
from redraft.recipes.report import as_dict
from redraft.recipes.rows import Row, digest, read_rows, settled
from redraft.recipes.writing import complete

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser

Change = Callable[[Recipe], Recipe]


def perform_table(
    recipe: Recipe,
    change: Change,
    table: str,
    *,
    out: str | None = None,
    device: str = "cpu",
    asked: object = None,
) -> int:
    """Write one text a row; `change` lays the command's options (said by `asked`) over each row's recipe.

    The exit code: 1 where a row failed or a text violates a hard guide, else 0. A row that fails has its
    error in its line, and the rest goes on.
    """
    parameters = {} if recipe.plan is None else recipe.plan.parameters
    rows = read_rows(table, parameters)
    _check_columns(recipe, rows, table)
    if out is not None and not Path(out).absolute().parent.is_dir():
        raise InvalidRecipeError(f"--out is {out!r}: make its folder first")
    run = _Run(recipe, change, device, _plan_digest(recipe, asked))
    counts: Counter[str] = Counter()
    with Journal(out, run.plan) if out is not None else nullcontext() as journal:
        if journal is not None and journal.repaired:
            print(f"redraft: {out}: its last line was torn; that row is written again", file=sys.stderr)
        try:
            for kind, line in _lines(rows, run, journal):
                counts[kind] += 1
                counts["violating"] += not _sound(line)
        except KeyboardInterrupt:
            if journal is not None:
                print("redraft: stopped: the same command goes on from there", file=sys.stderr)
            raise
    print(_summary(len(rows), counts), file=sys.stderr)
    return 1 if counts["failed"] or counts["violating"] else 0


def _lines(rows: Sequence[Row], run: _Run, journal: Journal | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The line of each row, written or there already, and which of these; a new one is put out at once."""
    done = {} if journal is None else journal.done
    for row in _watched(rows):
        if row.key in done:
            yield "there already", done[row.key]
            continue
        line = run.line(row)
        if journal is None:
            print(json.dumps(line, allow_nan=False), flush=True)
        else:
            journal.add(line)
        yield "failed" if "error" in line else "written", line


class _Run:
    """What rows have in common: the recipe, its digest, a first seed, the models loaded so far."""

    def __init__(self, recipe: Recipe, change: Change, device: str, plan: str) -> None:
        self.recipe, self.change, self.device, self.plan = recipe, change, device, plan
        self.first = secrets.randbits(31)
        self._models: dict[str, Denoiser] = {}

    def line(self, row: Row) -> dict[str, Any]:
        """The JSON line of a row, with its text or its error."""
        head = {"row": row.number, "key": row.key, "plan": self.plan, "parameters": dict(row.cells)}
        try:
            recipe = self._recipe(row)
        except RedraftError as error:
            return head | _error(error, str(error))
        denoiser = self._model(recipe.model)  # a model that cannot be had is no fault of the row's
        try:
            (result,) = recipe.run(denoiser)
        except RedraftError as error:
            return head | _error(error, _said(error))
        except Exception as error:  # whatever a plugin or a model raises on this row's text
            return head | _error(error, blame(error))
        shown = {name: list(v) if isinstance(v, tuple) else v for name, v in self._values.items()}
        return head | {"parameters": shown} | as_dict(result, complete(result, recipe).to_dict())

    def _recipe(self, row: Row) -> Recipe:
        values, own = settled(row, {} if self.recipe.plan is None else self.recipe.plan.parameters)
        base = self.recipe.with_parameters(values)
        self._values = dict(base.parameters)
        made = self.change(base)
        if made.samples != 1:
            raise InvalidRecipeError(
                f"samples is {made.samples}: a table has one text a row; give --samples 1"
            )
        own.setdefault("seed", (self.first if made.seed is None else made.seed) + row.number - 1)
        return made.override(**own)

    def _model(self, name: str) -> Denoiser:
        if name not in self._models:
            from redraft.denoiser import load

            self._models[name] = load(name, device=self.device)
        return self._models[name]


def _said(error: RedraftError) -> str:
    """An error's own words; where a guide crashed, whose code that was."""
    cause = error.__cause__
    return blame(cause) if isinstance(error, GuideError) and isinstance(cause, Exception) else str(error)


def _error(error: Exception, message: str) -> dict[str, Any]:
    return {"error": {"type": type(error).__name__, "message": message}}


def _sound(line: dict[str, Any]) -> bool:
    return all(v["status"] == "satisfied" for v in line.get("verdicts", ()) if v["strength"] == "guaranteed")


def _check_columns(recipe: Recipe, rows: Sequence[Row], table: str) -> None:
    """A parameter without a value that no row sets is refused before the first text."""
    missing = () if recipe.plan is None else recipe.plan.missing
    given = {name for row in rows for name, cell in row.cells.items() if cell is not None}
    for name in missing:
        if name not in given:
            raise InvalidRecipeError(
                f'{table} has no value for parameter "{name}": add the column, or give --set {name}=VALUE'
            )


def _plan_digest(recipe: Recipe, asked: object) -> str:
    plan = recipe.plan
    said = (
        recipe.to_dict()
        if plan is None
        else [plan.table, {n: p.default for n, p in plan.parameters.items()}, plan.given]
    )
    return digest(json.loads(json.dumps([said, repr(asked)], default=repr)))


def _watched(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows, with a progress bar on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield from rows
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=len(rows))
        for row in rows:
            yield row
            progress.advance(task)


def _summary(total: int, counts: Counter[str]) -> str:
    parts = [
        f"{counts[name]} {name}"
        for name in ("written", "there already", "failed", "violating")
        if counts[name]
    ]
    return f"{total} {'row' if total == 1 else 'rows'}: {', '.join(parts)}"
