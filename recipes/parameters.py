"""The parameters of a recipe: typed values with defaults, set from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pydantic import BaseModel, ValidationError

from redraft.recipes.complaints import complaint
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.shapes import STRICT
from redraft.recipes.toml import inline

Kind = Literal["string", "integer", "number", "boolean", "list"]
Value = str | int | float | bool | tuple[str, ...]
KINDS: tuple[str, ...] = get_args(Kind)
RESERVED = ("seed", "prompt", "key", "row")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WANTED = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a finite number",
    "boolean": "true or false",
    "list": "a list of strings",
}


class ParameterTable(BaseModel):
    """What stands under `[parameters]` for one name, where it is more than the default alone."""

    model_config = STRICT

    type: Kind | None = None
    default: Any = None
    description: str = ""
    choices: list[Any] | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Parameter:
    """One parameter; `default` None: it must be given. `least` and `most` bound a number, ends included."""

    name: str
    kind: Kind
    default: Value | None = None
    description: str = ""
    choices: tuple[Value, ...] = ()
    least: float | None = None
    most: float | None = None

    def accept(self, value: object) -> Value:
        """The value in this parameter's own type; raises `InvalidRecipeError` with value and remedy."""
        made = _typed(value, self.kind)
        if made is None:
            raise self._wrong(value, f"use {_WANTED[self.kind]}")
        if self.choices and made not in self.choices:
            raise self._wrong(value, f"use {' or '.join(_shown(choice) for choice in self.choices)}")
        if isinstance(made, (int, float)) and not isinstance(made, bool):
            if self.least is not None and made < self.least:
                raise self._wrong(value, f"use a number from {self.least:g}")
            if self.most is not None and made > self.most:
                raise self._wrong(value, f"use a number up to {self.most:g}")
        return made

    def parse(self, text: str) -> Value:
        """The value of a text, as the command and a CSV table give it.

        A number as Python writes it, `true` or `false`, a list as `a,b,c` or as JSON, a string as it stands.
        """
        read: object = text
        word = text.strip()
        try:
            if self.kind == "integer":
                read = int(word)
            elif self.kind == "number":
                read = float(word)
            elif self.kind == "boolean":
                read = {"true": True, "false": False}.get(word.lower(), text)
            elif self.kind == "list":
                read = (
                    json.loads(word)
                    if word.startswith("[")
                    else [p.strip() for p in word.split(",") if p.strip()]
                )
        except ValueError as error:
            raise self._wrong(text, f"use {_WANTED[self.kind]}") from error
        return self.accept(read)

    def _wrong(self, value: object, remedy: str) -> InvalidRecipeError:
        return InvalidRecipeError(f'parameter "{self.name}" is {_shown(value)}: {remedy}')


def declared(tables: object) -> dict[str, Parameter]:
    """The parameters under `[parameters]` by name, in order; raises `InvalidRecipeError`."""
    if not isinstance(tables, Mapping):
        raise InvalidRecipeError(f"the recipe: parameters is {tables!r}: use a table")
    return {name: _declared(name, table) for name, table in tables.items()}


def inherit(parent: Mapping[str, Any], child: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of two recipes joined: a plain value of the child's is a new default for the parent's."""
    made = dict(parent)
    for name, value in child.items():
        before = made.get(name)
        whole = isinstance(value, Mapping) or not isinstance(before, Mapping)
        made[name] = value if whole else {**before, "default": value}  # type: ignore[dict-item]
    return made


def settle(parameters: Mapping[str, Parameter], given: Mapping[str, object]) -> dict[str, Value]:
    """The value of each parameter given, checked; raises for a name that is not declared."""
    for name in given:
        if name not in parameters:
            raise InvalidRecipeError(f'the recipe has no parameter "{name}": {_instead(name, parameters)}')
    return {name: parameters[name].accept(value) for name, value in given.items()}


def parse_assignments(parameters: Mapping[str, Parameter], pairs: Sequence[str]) -> dict[str, Value]:
    """{"hero": "Ada"} of ["hero=Ada"], each in its declared type; errors name the option."""
    made: dict[str, Value] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not (name and equals):
            raise InvalidRecipeError(f"--set is {pair!r}: write NAME=VALUE, such as hero=Ada")
        if name in made:
            raise InvalidRecipeError(f'--set gives "{name}" twice: keep one')
        if name not in parameters:
            raise InvalidRecipeError(
                f'--set: the recipe has no parameter "{name}": {_instead(name, parameters)}'
            )
        made[name] = parameters[name].parse(text)
    return made


def _instead(name: str, parameters: Mapping[str, Parameter]) -> str:
    return did_you_mean(name, parameters) if parameters else "it declares none under [parameters]"


def _declared(name: str, table: object) -> Parameter:
    what = f'parameter "{name}"'
    if not _NAME.fullmatch(name):
        raise InvalidRecipeError(f"{what}: a name is letters, digits, _ and -, and begins with a letter or _")
    if name in RESERVED:
        raise InvalidRecipeError(f"{what}: the name has a meaning of its own in tables of rows; use another")
    if not isinstance(table, Mapping):
        kind = _kind(table)
        if kind is None:
            raise InvalidRecipeError(
                f"{what} is {table!r}: give a default (a string, number, boolean or list of strings), "
                'or a table such as { type = "string" }'
            )
        return Parameter(name, kind, _typed(table, kind))
    try:
        said = ParameterTable.model_validate(dict(table))
    except ValidationError as error:
        raise InvalidRecipeError(complaint(error, table, ParameterTable, what)) from error
    guessed = [said.default] if said.default is not None else said.choices or []
    kind = said.type or (_kind(guessed[0]) if guessed else None)
    if kind is None:
        raise InvalidRecipeError(f'{what} lacks "type": use {", ".join(KINDS[:-1])} or {KINDS[-1]}')
    if kind not in ("integer", "number") and (said.least is not None or said.most is not None):
        raise InvalidRecipeError(
            f"{what}: least and most are for numbers, and it is a {kind}; leave them out"
        )
    if said.least is not None and said.most is not None and said.least > said.most:
        raise InvalidRecipeError(
            f"{what} runs from {said.least:g} to {said.most:g}: put the smaller number first"
        )
    made = Parameter(name, kind, None, said.description, (), said.least, said.most)
    made = replace(made, choices=tuple(made.accept(choice) for choice in said.choices or ()))
    return made if said.default is None else replace(made, default=made.accept(said.default))


def _kind(value: object) -> Kind | None:
    kinds: list[Kind] = ["boolean", "integer", "number", "string", "list"]
    return next((kind for kind in kinds if _typed(value, kind) is not None), None)


def _typed(value: object, kind: str) -> Value | None:
    """The value as one of a kind, or None where it is none; a whole number is a number, no other changes."""
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "list":
        fits = isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
        return tuple(value) if fits else None  # type: ignore[arg-type]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if kind == "integer":
        return value if isinstance(value, int) else None
    made = float(value)
    return made if abs(made) != float("inf") and made == made else None


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        value = list(value)
    try:
        text = inline(value)
    except TypeError:
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
