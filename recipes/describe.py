"""A guide in words: what its table in a recipe may hold."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from redraft.denoiser.guide import Guide
from redraft.recipes.convert import KEYS, shorthands
from redraft.recipes.registry import Entry
from redraft.recipes.shapes import holdable, is_pairs, kind_of, parameters
from redraft.recipes.toml import inline

_NAMES = {str: "string", int: "whole number", float: "number", bool: "true or false"}


def described(entry: Entry) -> list[str]:
    """Lines: name, strength and origin; what it does; one line a parameter with its type and default."""
    cls = entry.guide
    summary = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    rows = [f"{entry.name} ({cls.strength}) from {entry.origin}", f"    {summary}"]
    for p in parameters(cls):
        default = "" if p.required or p.default in (None, ()) else f", {inline(_plain(p.default))} by default"
        optional = " (optional)" if p.default is None else ""
        rows.append(f"    {KEYS.get(p.name, p.name)}: {typed(p.hint)}{default}{optional}")
    if short := shorthands(cls):
        rows.append(f"    and {', '.join(sorted(short, reverse=True))}")
    return rows


def typed(hint: Any) -> str:
    """An annotation as a writer of recipes would say it."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _NAMES:
        return _NAMES[hint]
    if origin is Literal:
        return " or ".join(inline(arg) for arg in args)
    if origin in (Union, types.UnionType):
        return " or ".join(typed(arg) for arg in holdable(args) if arg is not type(None))
    if is_pairs(hint):
        return f"table of {typed(get_args(args[0])[1])} by string"
    if origin in (tuple, list):
        inner = dict.fromkeys(typed(arg) for arg in args if arg is not ...)
        return (
            f"list of ({' or '.join(inner)})"
            if len(inner) > 1 or " or " in "".join(inner)
            else f"list of {''.join(inner)}"
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"table of {typed(args[1])} by string"
    if isinstance(hint, type) and issubclass(hint, Guide):
        return kind_of(hint)
    return str(hint)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
