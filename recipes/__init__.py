"""Recipes: all that a run is made of, in a file; and the command that runs them.

Names load when first used, so that the command starts without loading a model's library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redraft.recipes.convert import from_dict, to_dict
    from redraft.recipes.errors import InvalidRecipeError, PluginError
    from redraft.recipes.json_schema import schema
    from redraft.recipes.lookup import find
    from redraft.recipes.recipe import Recipe
    from redraft.recipes.registry import discover
    from redraft.recipes.shelf import shipped

_HOMES = {
    "InvalidRecipeError": "errors",
    "PluginError": "errors",
    "Recipe": "recipe",
    "discover": "registry",
    "find": "lookup",
    "from_dict": "convert",
    "schema": "json_schema",
    "shipped": "shelf",
    "to_dict": "convert",
}

__all__ = [
    "InvalidRecipeError",
    "PluginError",
    "Recipe",
    "discover",
    "find",
    "from_dict",
    "schema",
    "shipped",
    "to_dict",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
