"""The JSON Schema of recipe files, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from redraft.denoiser.guide import HardGuide, SoftGuide
from redraft.recipes.convert import guide_model
from redraft.recipes.parameters import KINDS, ParameterTable
from redraft.recipes.recipe import RecipeTable
from redraft.recipes.references import ESCAPES
from redraft.recipes.registry import discover
from redraft.recipes.settings import POLICIES, policy_model, settings_model
from redraft.recipes.shapes import KIND
from redraft.recipes.shelf import shipped
from redraft.recipes.versions import VERSION

_PLAIN = ("version", "title", "description")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """What a recipe may hold, every guide that is installed included."""
    registry = discover()
    definitions: dict[str, Any] = {}
    kinds: dict[str, list[str]] = {"guide": [], "hard guide": [], "soft guide": []}
    for name, entry in registry.entries.items():
        definitions[f"guide {name}"] = _of(guide_model(entry))
        for kind, cls in (("hard guide", HardGuide), ("soft guide", SoftGuide)):
            if issubclass(entry.guide, cls):
                kinds[kind].append(name)
        kinds["guide"].append(name)
    for kind, names in kinds.items():
        definitions[kind] = (
            {"oneOf": [{"$ref": f"#/$defs/guide {name}"} for name in names]} if names else False
        )
    whole = _of(RecipeTable)
    properties = whole["properties"]
    properties["guides"] = {"type": "array", "items": {"$ref": "#/$defs/guide"}, "title": "Guides"}
    properties["settings"] = _settings()
    whole["properties"] = {name: properties[name] for name in _PLAIN} | _open(
        {name: value for name, value in properties.items() if name not in _PLAIN}
    )
    whole["properties"] |= _inheritance(list(registry.entries))
    definitions = {
        name: value | {"properties": _open(value["properties"])} if "properties" in value else value
        for name, value in definitions.items()
    } | {"parameter": _reference()}
    return {"$schema": DIALECT, **whole, "title": "Redraft recipe", "$defs": definitions}


def _open(properties: dict[str, Any]) -> dict[str, Any]:
    """Properties each of whose values may stand for a parameter, at any depth."""
    return {name: value if name == "guide" else _either(value) for name, value in properties.items()}


def _either(value: Any) -> Any:
    """A schema that takes a parameter in place of the value, or of any value within it."""
    if not isinstance(value, dict) or "$ref" in value:
        return value
    inner = dict(value)
    if "properties" in inner:
        inner["properties"] = _open(inner["properties"])
    for key in ("items", "additionalProperties"):
        if isinstance(inner.get(key), dict):
            inner[key] = _either(inner[key])
    for key in ("anyOf", "prefixItems"):
        if key in inner:
            inner[key] = [_either(item) for item in inner[key]]
    about = {key: inner.pop(key) for key in ("title", "default", "description") if key in inner}
    return {**about, "anyOf": [inner, {"$ref": "#/$defs/parameter"}]}


def _reference() -> dict[str, Any]:
    name = {"type": "string", "description": "The name of one of the recipe's [parameters]."}
    reference = {
        "type": "object",
        "properties": {"parameter": name, "escape": {"enum": sorted(ESCAPES)}},
        "required": ["parameter"],
        "additionalProperties": False,
    }
    pieces = {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}, reference]}}
    join = {
        "type": "object",
        "properties": {"join": pieces},
        "required": ["join"],
        "additionalProperties": False,
    }
    return {"title": "A parameter's value", "anyOf": [reference, join]}


def _inheritance(guides: list[str]) -> dict[str, Any]:
    table = _of(ParameterTable)
    table["properties"]["type"] = {"enum": list(KINDS), "title": "Type"}
    plain = [{"type": kind} for kind in ("string", "number", "boolean")]
    strings = {"type": "array", "items": {"type": "string"}}
    return {
        "version": {"enum": list(range(1, VERSION + 1)), "title": "Version"},
        "extends": {
            "title": "Extends",
            "description": "A shipped recipe, or a file in this recipe's folder or below it.",
            "anyOf": [{"enum": list(shipped())}, {"type": "string", "minLength": 1}],
        },
        "without": {
            "title": "Without",
            "description": "Guides of the recipe extended that are left out.",
            "anyOf": [{"const": "all"}, {"type": "array", "items": {"enum": guides}}],
        },
        "parameters": {
            "title": "Parameters",
            "type": "object",
            "additionalProperties": {"anyOf": [*plain, strings, table]},
        },
    }


def _of(model: type[BaseModel]) -> dict[str, Any]:
    made: dict[str, Any] = _linked(model.model_json_schema())
    return made


def _linked(value: Any) -> Any:
    """References in place of pydantic's stand-ins for guides."""
    if isinstance(value, dict):
        if KIND in value:
            return {"$ref": f"#/$defs/{value[KIND]}"}
        return {key: _linked(item) for key, item in value.items()}
    return [_linked(item) for item in value] if isinstance(value, list) else value


def _settings() -> dict[str, Any]:
    table = _of(settings_model())
    for what, known in POLICIES.items():
        policies = [_of(policy_model(what, name)) for name in known]
        names = [*known, "off"] if what != "selection" else [*known]
        table["properties"][what] = {"anyOf": [{"enum": names}, *policies], "title": what.capitalize()}
    return table
