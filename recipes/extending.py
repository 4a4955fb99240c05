"""Recipes that extend others: one parent each, tables joined, guides appended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.parameters import inherit
from redraft.recipes.shelf import shipped
from redraft.recipes.source import read_table
from redraft.recipes.versions import migrated

DEEPEST = 16
_TABLES = ("condition", "settings")


@dataclass(frozen=True)
class Whole:
    """A recipe's table with all that it inherits.

    `places` says where each guide stands (`guides[0]`, `base.toml: guides[2]`), `chain` the names of the
    recipes it extends, nearest first.
    """

    table: dict[str, Any]
    places: tuple[str, ...]
    chain: tuple[str, ...] = ()


def whole(table: Mapping[str, Any], path: Path | None) -> Whole:
    """The table of the recipe in the file `path` (None: it has none) joined with what it extends.

    The child's values stand over the parent's, key by key in `[condition]`, `[settings]` and `[parameters]`;
    its guides come after the parent's, without those that `without` names. Raises `InvalidRecipeError`.
    """
    return _whole(table, path, () if path is None else (path.resolve(),))


def _whole(table: Mapping[str, Any], path: Path | None, seen: tuple[Path, ...]) -> Whole:
    own = migrated(table)
    name, without = own.pop("extends", None), own.pop("without", None)
    guides = own.get("guides", [])
    own_places = tuple(f"guides[{k}]" for k in range(len(guides))) if isinstance(guides, list) else ()
    if name is None:
        if without is not None:
            raise InvalidRecipeError(
                "without names guides of the recipe extended: add extends, or leave it out"
            )
        return Whole(own, own_places)
    target = _target(name, path)
    if target in seen:
        circle = " -> ".join(step.name for step in (*seen[seen.index(target) :], target))
        raise InvalidRecipeError(f"extends goes in a circle: {circle}; leave one out")
    if len(seen) >= DEEPEST:
        raise InvalidRecipeError(f"more than {DEEPEST} recipes extend one another: join some of them")
    try:
        parent = _whole(read_table(target), target, (*seen, target))
    except InvalidRecipeError as error:
        raise InvalidRecipeError(f"extends {name!r}: {error}") from error
    return _joined(own, own_places, parent, without, name)


def _joined(own: dict[str, Any], places: tuple[str, ...], parent: Whole, without: object, name: str) -> Whole:
    made = {**parent.table, **own}
    for key in _TABLES:
        pair = parent.table.get(key), own.get(key)
        if isinstance(pair[0], Mapping) and isinstance(pair[1], Mapping):
            made[key] = {**pair[0], **pair[1]}
    declared = parent.table.get("parameters"), own.get("parameters")
    if isinstance(declared[0], Mapping) and isinstance(declared[1], Mapping):
        made["parameters"] = inherit(declared[0], declared[1])
    theirs, guides = parent.table.get("guides", []), own.get("guides", [])
    kept = _kept(theirs if isinstance(theirs, list) else [], without, name)
    if isinstance(guides, list) and (kept or guides):
        made["guides"] = [*(theirs[k] for k in kept), *guides]
    elif not kept:
        made.pop("guides", None)
    inherited = tuple(
        place if ": " in place else f"{name}: {place}" for place in (parent.places[k] for k in kept)
    )
    return Whole(made, (*inherited, *places), (name, *parent.chain))


def _kept(guides: list[Any], without: object, name: str) -> list[int]:
    """The indices of a parent's guides that `without` (a list of names, or "all") leaves."""
    if without is None:
        return list(range(len(guides)))
    if without == "all":
        return []
    if not isinstance(without, list) or not all(isinstance(item, str) for item in without):
        raise InvalidRecipeError(f'without is {without!r}: use "all" or a list of names of guides')
    names = [guide.get("guide") if isinstance(guide, Mapping) else None for guide in guides]
    for item in without:
        if item not in names:
            there = list(dict.fromkeys(str(other) for other in names if other))
            raise InvalidRecipeError(
                f'without names "{item}", and {name} has no such guide: {did_you_mean(item, there)}'
            )
    return [k for k, other in enumerate(names) if other not in without]


def _target(name: object, path: Path | None) -> Path:
    """The file of the recipe extended: a shipped one, or one in the folder of the recipe that asks, or below."""
    if not isinstance(name, str) or not name:
        raise InvalidRecipeError(
            f"extends is {name!r}: use the name of a shipped recipe, or a file, in quotes"
        )
    known = shipped()
    if name in known:
        return known[name].path.resolve()
    looks_like_a_file = "/" in name or name.endswith(".toml")
    if path is None:
        remedy = (
            "put this recipe in a file to extend another file"
            if looks_like_a_file
            else did_you_mean(name, known)
        )
        raise InvalidRecipeError(f"extends is {name!r}, which does not ship: {remedy}")
    folder = path.parent.resolve()
    odd = "\\" in name or ":" in name or "\0" in name or PureWindowsPath(name).is_absolute()
    target = folder if odd else (folder / name).resolve()
    if odd or Path(name).is_absolute() or ".." in Path(name).parts or folder not in target.parents:
        raise InvalidRecipeError(
            f"extends is {name!r}: name a shipped recipe, or a file in the recipe's own folder or below it"
        )
    if not target.is_file():
        remedy = "there is no such file" if looks_like_a_file else did_you_mean(name, known)
        raise InvalidRecipeError(
            f"extends is {name!r}, no recipe that ships or lies in {folder.name}/: {remedy}"
        )
    return target
