"""Options that several commands have."""

from __future__ import annotations

from typer import Option

SET = Option("--set", metavar="NAME=VALUE", help="A parameter of the recipe, such as hero=Ada. Repeatable.")
