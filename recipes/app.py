"""The commands of `redraft` as typer sees them; none loads anything before it runs."""

from __future__ import annotations

import typer

from redraft.recipes.cli_check import check
from redraft.recipes.cli_classifiers import classifiers
from redraft.recipes.cli_info import doctor, guides
from redraft.recipes.cli_recipes import recipes
from redraft.recipes.cli_train import train
from redraft.recipes.cli_write import write

CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]  # ClickException, wherever typer keeps it

app = typer.Typer(
    name="redraft",
    help="Write texts by parallel refinement, with guides that steer and proof on the decoded text.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(write)
app.command()(check)
app.add_typer(recipes, name="recipes")
app.command()(guides)
app.add_typer(classifiers, name="classifiers")
app.command()(train)
app.command()(doctor)
