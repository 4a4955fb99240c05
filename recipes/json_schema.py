"""The JSON Schema of recipe files, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from redraft.denoiser.guide import HardGuide, SoftGuide
from redraft.recipes.convert import guide_model
from redraft.recipes.recipe import VERSION, RecipeTable
from redraft.recipes.registry import discover
from redraft.recipes.settings import POLICIES, policy_model, settings_model
from redraft.recipes.shapes import KIND

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
    whole["properties"]["version"] = {"const": VERSION, "title": "Version"}
    whole["properties"]["guides"] = {"type": "array", "items": {"$ref": "#/$defs/guide"}, "title": "Guides"}
    whole["properties"]["settings"] = _settings()
    return {"$schema": DIALECT, **whole, "title": "Redraft recipe", "$defs": definitions}


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
