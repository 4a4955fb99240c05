"""Values that stand for parameters: `{ parameter = "hero" }`, and `{ join = ["Dear ", ...] }`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.parameters import Value

ESCAPES = {
    "template": re.compile(r"[\\_\[]"),  # what `infill` reads as its own marks
    "pattern": re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]"),  # what a regular expression does
}


def is_reference(value: object) -> bool:
    """Whether a value is `{ parameter = "name" }`, perhaps with `escape`."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("parameter"), str)
        and set(value) <= {"parameter", "escape"}
    )


def is_join(value: object) -> bool:
    """Whether a value is `{ join = [...] }`, the pieces of one string."""
    return isinstance(value, Mapping) and set(value) == {"join"} and isinstance(value["join"], list)


def filled(value: Any, values: Mapping[str, Value]) -> Any:
    """A value with the parameters in it replaced; raises `InvalidRecipeError` for one that is not declared."""
    if is_reference(value):
        return _of(value, values)
    if is_join(value):
        return "".join(_piece(piece, values) for piece in value["join"])
    if isinstance(value, Mapping):
        return {key: filled(item, values) for key, item in value.items()}
    return [filled(item, values) for item in value] if isinstance(value, list) else value


def references(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every reference in a value: the place (`guides[0].words[1]`) and the parameter's name."""
    if is_reference(value):
        yield place, value["parameter"]
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from references(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from references(item, f"{place}[{k}]")


def _of(reference: Mapping[str, str], values: Mapping[str, Value]) -> Any:
    name = reference["parameter"]
    if name not in values:
        raise InvalidRecipeError(
            f'parameter "{name}" is not declared: '
            + (did_you_mean(name, values) if values else "add it under [parameters]")
        )
    value = values[name]
    if "escape" not in reference:
        return list(value) if isinstance(value, tuple) else value
    how = reference["escape"]
    if how not in ESCAPES:
        raise InvalidRecipeError(f"escape is {how!r}: use {' or '.join(sorted(ESCAPES))}")
    if not isinstance(value, str):
        raise InvalidRecipeError(f'parameter "{name}" is {value!r}: escape is for strings; leave it out')
    return ESCAPES[how].sub(r"\\\g<0>", value)


def _piece(piece: object, values: Mapping[str, Value]) -> str:
    value = _of(piece, values) if is_reference(piece) else piece  # type: ignore[arg-type]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidRecipeError(
            f"join has {value!r}: its pieces are strings, numbers and parameters of these"
        )
    return value if isinstance(value, str) else repr(value)
