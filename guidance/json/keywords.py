"""The keywords of JSON Schema: which are enforced, which only annotate, what to use instead of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.regex import compile_search
from redraft.guidance.json.formats import FORMATS
from redraft.guidance.json.numbers import MOST_MULTIPLE

#: Keywords that speak of one type only.
BY_TYPE: dict[str, tuple[str, ...]] = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
    "array": ("prefixItems", "items", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
#: Keywords that join schemas, or name values.
JOINING = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "enum", "const", "type")
ANNOTATIONS = (
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id",
    "$comment", "$defs", "definitions",
)  # fmt: skip
_ENFORCED = {*JOINING, *(key for keys in BY_TYPE.values() for key in keys)}
DIALECTS = ("draft/2020-12/schema", "draft/2019-09/schema", "draft-07/schema", "draft-06/schema")
_NAMED = "name every property under properties"
_REMEDIES = {
    "patternProperties": _NAMED,
    "propertyNames": _NAMED,
    "unevaluatedProperties": "leave it out: properties without a name in the schema are not written",
    "contains": "use prefixItems",
    "minContains": "use prefixItems",
    "maxContains": "use prefixItems",
    "unevaluatedItems": "use items",
    "additionalItems": "use items behind prefixItems",
    "dependentRequired": "list the cases under anyOf",
    "dependentSchemas": "list the cases under anyOf",
    "dependencies": "list the cases under anyOf",
    "$dynamicRef": "use $ref",
    "$recursiveRef": "use $ref",
    "$anchor": "use $ref with a path such as #/$defs/name",
}


@dataclass(frozen=True)
class Part:
    """A schema that must hold, with its JSON pointer; `opened` are the references around it, `chain` those
    that led here without a value between."""

    schema: Any
    pointer: str
    opened: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()

    def beside(self, *path: str | int) -> Part:
        """A schema inside this one that speaks of the same value."""
        return replace(self, schema=_at(self.schema, path), pointer=self.pointer + pointer(*path))

    def inside(self, *path: str | int) -> Part:
        """A schema inside this one that speaks of a part of the value."""
        made = self.beside(*path)
        return replace(made, opened=self.opened + self.chain, chain=())

    def without(self, *keys: str) -> Part:
        """This schema without some of its keywords."""
        return replace(self, schema={k: v for k, v in self.schema.items() if k not in keys})


def pointer(*path: str | int) -> str:
    """The steps of a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def check_keywords(part: Part) -> None:
    """Raise `InvalidGuideError` for the first keyword of a schema that is not enforced, by its pointer."""
    for key, value in part.schema.items():
        where = part.pointer + pointer(key)
        if key in _ENFORCED:
            _check_value(key, value, part.schema, where)
        elif key == "$schema" and not any(str(value).rstrip("#").endswith(name) for name in DIALECTS):
            raise InvalidGuideError(f"{where}: the dialect {value!r} is not known: use draft 2020-12")
        elif key == "$id" and part.pointer != "#":
            raise InvalidGuideError(
                f"{where}: a schema inside another cannot have a name of its own: drop it"
            )
        elif key not in ANNOTATIONS and not key.startswith("x-"):
            remedy = _REMEDIES.get(key, "correct or remove it (x-... is for your own notes)")
            raise InvalidGuideError(f"{where} cannot be guaranteed: {remedy}")


def _check_value(key: str, value: Any, schema: Mapping[str, Any], where: str) -> None:
    if key == "uniqueItems" and value and schema.get("maxItems", 2) > 1:
        raise InvalidGuideError(
            f"{where} cannot be guaranteed: list the arrays under enum, or set maxItems to 1"
        )
    if key == "multipleOf" and (value != int(value) or value > MOST_MULTIPLE):
        raise InvalidGuideError(
            f"{where} is {value}, which cannot be guaranteed: use a whole number up to {MOST_MULTIPLE:,}"
        )
    if key == "pattern":
        try:
            compile_search(value)
        except InvalidGuideError as error:
            raise InvalidGuideError(f"{where}: {error}") from error
    if key == "format" and value not in FORMATS:
        raise InvalidGuideError(
            f"{where} is {value!r}, which cannot be guaranteed: use {', '.join(FORMATS)}, or pattern"
        )
    if key == "$ref" and not (value == "#" or value.startswith("#/")):
        raise InvalidGuideError(
            f"{where} is {value!r}: only this schema's own parts can be used, such as #/$defs/name"
        )


def resolve(root: Any, part: Part) -> Part:
    """The schema that a `$ref` names."""
    named = part.schema["$ref"]
    path = [unquote(step).replace("~1", "/").replace("~0", "~") for step in named.split("/")[1:]]
    target = root
    for step in path:
        try:
            target = target[int(step)] if isinstance(target, list) else target[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise InvalidGuideError(
                f"{part.pointer}/$ref is {named!r}: the schema has no such part; correct the path"
            ) from None
    if not isinstance(target, (dict, bool)):
        raise InvalidGuideError(f"{part.pointer}/$ref is {named!r}, which is no schema; correct the path")
    where = "#" + pointer(*path)
    return Part(target, where, part.opened, (*part.chain, where))


def _at(schema: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        schema = schema[step]
    return schema
