"""What pydantic found wrong, as one sentence: condition, value, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from redraft.recipes.nearest import did_you_mean

_REMEDIES = {
    "string_type": "a string in quotes",
    "string_unicode": "a string of whole Unicode characters",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "none_required": "",
}
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("from", "ge"),
    "less_than_equal": ("up to", "le"),
}


def complaint(error: ValidationError, value: Mapping[str, Any], model: type[BaseModel], what: str) -> str:
    """One sentence on the first thing wrong; unknown keys come first, since they explain the rest."""
    problems = error.errors(include_url=False)
    for problem in problems:
        if problem["type"] == "extra_forbidden":
            key = str(problem["loc"][-1])
            known = [known for known in _keys(model) if known not in value]
            return f'unknown key "{key}" in {what}: {did_you_mean(key, known)}'
    first = problems[0]
    place = _place(first["loc"], value)
    if first["type"] == "missing" and isinstance(first["loc"][-1], int):
        return f"{what}: {place} is {_shown(first['input'])}: a value is missing"
    if first["type"] == "missing":
        key = str(first["loc"][-1])
        if place and place != key:
            return f'{what}: {place} lacks "{key}": add it'
        return f'{what} lacks "{key}": add it'
    if first["type"] == "value_error":
        inner = str(first["ctx"]["error"])
        return f"{what}: {place}: {inner}" if place else f"{what}: {inner}"
    own = [p for p in problems if _place(p["loc"], value) == place]
    return f"{what}: {place or 'it'} is {_shown(first['input'])}: {_remedy(own)}"


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _remedy(problems: Sequence[Mapping[str, Any]]) -> str:
    wanted = dict.fromkeys(_wanted(problem) for problem in problems)
    return f"use {' or '.join(word for word in wanted if word)}"


def _wanted(problem: Mapping[str, Any]) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "literal_error":
        return str(context["expected"])
    if kind in ("too_short", "too_long"):
        count = context.get("min_length", context.get("max_length"))
        return f"a list of {'at least' if kind == 'too_short' else 'at most'} {count} values"
    if kind in _BOUNDS:
        word, name = _BOUNDS[kind]
        bound = context[name]
        return f"a number {word} {int(bound) if float(bound).is_integer() else bound}"
    if kind == "string_too_short":
        return "a string that is not empty"
    message = str(problem["msg"])
    return _REMEDIES.get(kind, message[:1].lower() + message[1:])


def _place(loc: Iterable[int | str], value: Any) -> str:
    """`words[2]`: the steps of a location that lead somewhere in the value (pydantic adds union members)."""
    place = ""
    for step in loc:
        if isinstance(step, int) and isinstance(value, (list, tuple)) and step < len(value):
            place, value = f"{place}[{step}]", value[step]
        elif isinstance(value, Mapping) and step in value:
            place, value = f"{place}.{step}" if place else str(step), value[step]
    return place


def _shown(value: object) -> str:
    text = repr(value)
    if isinstance(value, bool):
        text = text.lower()
    return text if len(text) <= 60 else f"{text[:57]}..."
