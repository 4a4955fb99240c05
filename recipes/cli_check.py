"""`redraft check`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def check(
    recipe: Annotated[str, Argument(metavar="RECIPE", help="A shipped recipe's name, or a file.")],
    file: Annotated[
        str,
        Argument(
            metavar="FILE|-", help="The texts, one a line; standard input by default.", show_default=False
        ),
    ] = "-",
    json: Annotated[bool, Option("--json", help="One JSON object a text, a line each.")] = False,
) -> int:
    """Judge texts by a recipe's guides: exit 0 if every hard guide holds on every line, 1 if not."""
    from redraft.recipes.checking import check_file
    from redraft.recipes.lookup import find

    return check_file(find(recipe), file, as_json=json)
