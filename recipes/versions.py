"""Versions of recipe files: older ones are read as the newest, newer ones are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from redraft.recipes.errors import InvalidRecipeError

VERSION = 2
NEW_IN_2 = ("extends", "without", "parameters")


def migrated(table: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's table as the newest version has it; raises `InvalidRecipeError` for a version unknown here.

    A version that is missing or no whole number is left for the check of types to complain about.
    """
    made, version = dict(table), table.get("version")
    if not isinstance(version, int) or isinstance(version, bool):
        return made
    if version > VERSION:
        raise InvalidRecipeError(
            f"recipe version {version}: this Redraft reads versions 1 to {VERSION}; update Redraft"
        )
    if version < 1:
        raise InvalidRecipeError(f"recipe version {version}: versions begin at 1; write version = {VERSION}")
    for step in range(version, VERSION):
        made = _STEPS[step](made)
    return made | {"version": VERSION}


def _one_to_two(table: dict[str, Any]) -> dict[str, Any]:
    """Version 2 added keys and changed none; version 1 never had them, so there they are a slip."""
    for key in NEW_IN_2:
        if key in table:
            raise InvalidRecipeError(f'"{key}" is a key of recipe version 2: write version = 2')
    return table


_STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _one_to_two}
