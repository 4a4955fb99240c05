"""What two recipes differ in, value by value, guide by guide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from redraft.recipes.recipe import Recipe
from redraft.recipes.toml import inline

_TABLES = ("condition", "settings")


def differences(one: Recipe, two: Recipe) -> list[str]:
    """Lines `- only in one`, `+ only in two`, `~ changed: a -> b`; empty where the recipes are equal.

    Recipes are compared by what they come to: with all they extend, and their parameters' values. A guide of
    one is compared with the equal guide of the other, else with the next of its kind.
    """
    first, second = one.to_dict(), two.to_dict()
    guides = first.pop("guides", []), second.pop("guides", [])
    lines = list(_changes(_flat(first), _flat(second)))
    lines += _guides(*guides)
    return lines


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe's plain values, those of its tables under `settings.steps`."""
    flat = {key: value for key, value in table.items() if key not in _TABLES}
    for key in _TABLES:
        flat |= {f"{key}.{name}": value for name, value in table.get(key, {}).items()}
    return flat


def _changes(one: Mapping[str, Any], two: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key in dict.fromkeys([*one, *two]):
        if key not in two:
            yield f"- {before}{key} = {inline(one[key])}"
        elif key not in one:
            yield f"+ {before}{key} = {inline(two[key])}"
        elif one[key] != two[key]:
            yield f"~ {before}{key}: {inline(one[key])} -> {inline(two[key])}"


def _guides(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> list[str]:
    pairs = _pairs(one, two)
    taken = {k for k in pairs if k is not None}
    lines: list[str] = []
    for table, partner in zip(one, pairs, strict=True):
        if partner is None:
            lines.append(f"- {inline(table)}")
        else:
            lines += _changes(table, two[partner], f"{table['guide']}: ")
    lines += [f"+ {inline(table)}" for k, table in enumerate(two) if k not in taken]
    order = [k for k in pairs if k is not None]
    if order != sorted(order):
        lines.append("~ the order of the guides, and so of the verdicts")
    return lines


def _pairs(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> list[int | None]:
    """For each guide of one the index of its partner in two: an equal one first, then one of the same kind."""
    free = list(range(len(two)))
    partner: list[int | None] = [None] * len(one)
    for alike in (_equal, _akin):
        for k, table in enumerate(one):
            found = next((j for j in free if alike(table, two[j])), None) if partner[k] is None else None
            if found is not None:
                partner[k] = found
                free.remove(found)
    return partner


def _equal(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one == two


def _akin(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return bool(one["guide"] == two["guide"])
