"""`redraft check`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from redraft.recipes.cli_options import SET


def check(
    recipe: Annotated[str, Argument(metavar="RECIPE", help="A shipped recipe's name, or a file.")],
    files: Annotated[
        list[str] | None,
        Argument(metavar="FILE|-", help="The texts; standard input by default.", show_default=False),
    ] = None,
    field: Annotated[
        str | None,
        Option(metavar="NAME", help="Each line is a JSON object with the text under NAME, or a.0.b within."),
    ] = None,
    whole: Annotated[bool, Option("--whole", help="A file is one text, not one a line.")] = False,
    separator: Annotated[
        str | None, Option(metavar="LINE", help="Lines that hold just this stand between texts.")
    ] = None,
    set_: Annotated[list[str] | None, SET] = None,
    json: Annotated[bool, Option("--json", help="Print one JSON object a text, a line each.")] = False,
    json_file: Annotated[
        str | None, Option(metavar="FILE", help="Write all verdicts to a file, as one JSON object.")
    ] = None,
    junit: Annotated[
        str | None, Option(metavar="FILE", help="Write a JUnit report, which CI systems show.")
    ] = None,
) -> int:
    """Judge texts by a recipe's guides: exit 0 if every hard guide holds on every text, 1 if not.

    One text a line, unless --field, --whole or --separator says otherwise.
    """
    from redraft.recipes.checking import check_texts
    from redraft.recipes.lookup import find
    from redraft.recipes.options import with_set
    from redraft.recipes.texts import Cut

    cut = Cut(whole, separator, field)
    judge = with_set(find(recipe), set_ or ())
    return check_texts(
        judge, files or ["-"], cut, name=recipe, as_json=json, json_file=json_file, junit_file=junit
    )
