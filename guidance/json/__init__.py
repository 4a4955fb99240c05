"""Guides for JSON: `JsonSchema` and `Json`."""

from redraft.guidance.json.schema import JsonSchema
from redraft.guidance.json.value import Json

__all__ = ["Json", "JsonSchema"]
