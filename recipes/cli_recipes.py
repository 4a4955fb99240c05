"""`redraft recipes`: list, show, schema, explain, diff."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from typer import Argument, Context, Option

from redraft.recipes.cli_options import SET

recipes = typer.Typer(help="The recipes that ship with Redraft.", rich_markup_mode=None)


@recipes.callback(invoke_without_command=True)
def _default(context: Context) -> None:
    if context.invoked_subcommand is None:
        list_()


@recipes.command("list")
def list_() -> None:
    """Every shipped recipe: name, title, what it is for."""
    from redraft.recipes.shelf import shipped

    known = shipped()
    width = max(map(len, known), default=0)
    for recipe in known.values():
        print(f"{recipe.name:<{width}}  {recipe.title}")
        if recipe.description:
            print(f"{'':<{width}}  {recipe.description}")


@recipes.command()
def show(name: Annotated[str, Argument(metavar="NAME")]) -> int:
    """A shipped recipe's TOML, ready to copy and change."""
    from redraft.recipes.shelf import shipped

    known = shipped()
    if name not in known:
        from redraft.recipes.nearest import did_you_mean

        print(f'redraft: no shipped recipe "{name}": {did_you_mean(name, known)}', file=sys.stderr)
        return 2
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.syntax import Syntax

        Console().print(Syntax(known[name].text.rstrip("\n"), "toml", background_color="default"))
    else:
        print(known[name].text, end="")
    return 0


@recipes.command()
def schema() -> None:
    """The JSON Schema of recipe files, with every guide that is installed here."""
    from redraft.recipes.json_schema import schema as recipe_schema

    print(json.dumps(recipe_schema(), indent=2))


@recipes.command()
def explain(
    name: Annotated[str, Argument(metavar="RECIPE", help="A shipped recipe's name, or a file.")],
    set_: Annotated[list[str] | None, SET] = None,
    as_json: Annotated[bool, Option("--json", help="One JSON object.")] = False,
) -> int:
    """What a recipe comes to: settings, what each guide guarantees, states, cost; exit 3 where guides conflict."""
    from redraft.recipes.explaining import explained, told
    from redraft.recipes.lookup import find
    from redraft.recipes.options import with_set

    table = explained(with_set(find(name), set_ or ()))
    print(json.dumps(table, indent=2) if as_json else "\n".join(told(table)))
    return 3 if table["conflict"] else 0


@recipes.command()
def diff(
    one: Annotated[str, Argument(metavar="A", help="A shipped recipe's name, or a file.")],
    two: Annotated[str, Argument(metavar="B", help="Another.")],
) -> int:
    """What two recipes differ in, after all they extend; exit 1 where they differ."""
    from redraft.recipes.differing import differences
    from redraft.recipes.lookup import find

    lines = differences(find(one), find(two))
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0
