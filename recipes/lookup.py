"""A recipe by the name of a shipped one, or by its file."""

from __future__ import annotations

import sys
from pathlib import Path

from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.recipe import Recipe
from redraft.recipes.shelf import shipped


def find(name: str) -> Recipe:
    """The shipped recipe `name`, else the recipe in the file `name`; "-" reads standard input.

    Raises `InvalidRecipeError` with the nearest shipped name where there is neither.
    """
    if name == "-":
        return Recipe.of_stream(sys.stdin.buffer, "standard input")
    known = shipped()
    if name in known:
        return Recipe.read(known[name].path)
    if Path(name).is_file() or "/" in name or "\\" in name or name.endswith(".toml"):
        return Recipe.read(name)
    raise InvalidRecipeError(f'no recipe "{name}", shipped or in a file: {did_you_mean(name, known)}')
