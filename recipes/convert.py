"""Guides as plain tables and back: `{"guide": "keywords", "words": ["storm"]}`.

A field that is itself called `guide` stands under `of`. A soft guide's table may have `scale = 2.0` and
`during = [0, 0.5]`, short for `during(0, 0.5, 2.0 * guide)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Strict, ValidationError

from redraft.denoiser.algebra import During, Scaled
from redraft.denoiser.errors import RedraftError
from redraft.denoiser.guide import Guide, SoftGuide
from redraft.recipes.complaints import complaint
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.registry import Entry, discover
from redraft.recipes.shapes import model, parameters, plain

KEYS = {"guide": "of"}
_PERIOD = Annotated[tuple[float, float], Strict(False)]
_SHORTHANDS: dict[str, tuple[Any, Any]] = {"scale": (float, 1.0), "during": (_PERIOD, (0.0, 1.0))}


def to_dict(guide: Guide) -> dict[str, Any]:
    """A guide as plain values, every field said; `from_dict` gives an equal guide."""
    base, short = guide, dict[str, Any]()
    if type(base) is During:
        short["during"] = [float(base.start), float(base.stop)]
        base = base.guide
    if type(base) is Scaled:
        short["scale"] = float(base.scale)
        base = base.guide
    return _table(base) | short if set(short) <= shorthands(type(base)) else _table(guide)


def from_dict(table: object) -> Guide:
    """The guide of a table; raises `InvalidRecipeError` (or the guide's own error) naming key and remedy."""
    if isinstance(table, Guide):
        return table
    if not isinstance(table, Mapping):
        raise InvalidRecipeError(f'a guide is a table such as {{guide = "words", least = 3}}, not {table!r}')
    kind = table.get("guide")
    if not isinstance(kind, str):
        raise InvalidRecipeError(
            'a guide lacks "guide", its name: add it'
            if kind is None
            else f'"guide" is {kind!r}: give a guide\'s name (a guide inside another stands under "of")'
        )
    entry = discover().get(kind)
    made = guide_model(entry)
    try:
        checked = made.model_validate(dict(table))
    except ValidationError as error:
        raise InvalidRecipeError(complaint(error, table, made, f'guide "{kind}"')) from error
    given = {name.removesuffix("_"): getattr(checked, name) for name in checked.model_fields_set}
    del given["guide_"]
    short = {key: given.pop(f"{key}_") for key in shorthands(entry.guide) if f"{key}_" in given}
    guide = build(entry, given)
    if "scale" in short:
        guide = Scaled(_soft(guide), short["scale"])
    if "during" in short:
        start, stop = short["during"]
        guide = During(start, stop, _soft(guide))
    return guide


def build(entry: Entry, values: dict[str, Any]) -> Guide:
    """Call a guide's constructor with its fields; whatever it raises says which guide it was."""
    variadic = entry.guide.variadic
    positional = values.pop(variadic, ()) if variadic else ()
    try:
        return entry.guide(*positional, **values)
    except RedraftError:
        raise
    except Exception as error:  # a plugin's constructor may raise anything
        raise InvalidRecipeError(
            f'guide "{entry.name}" of {entry.origin} refuses its values: {type(error).__name__}: {error}'
        ) from error


@lru_cache(maxsize=256)
def guide_model(entry: Entry) -> type[BaseModel]:
    """The pydantic model of a guide's table, the shorthand keys included where they make sense."""
    short = shorthands(entry.guide)
    tail = [(key, *_SHORTHANDS[key]) for key in _SHORTHANDS if key in short]
    return model(entry.guide, from_dict, keys=KEYS, head=[("guide", Literal[entry.name], ...)], tail=tail)


def shorthands(cls: type[Guide]) -> set[str]:
    """The keys that a guide's table may have beside the guide's own fields."""
    if not issubclass(cls, SoftGuide) or cls in (Scaled, During):
        return set()
    return set(_SHORTHANDS) - {parameter.name for parameter in parameters(cls)}


def _table(guide: Guide) -> dict[str, Any]:
    table: dict[str, Any] = {"guide": discover().name_of(guide)}
    for p in parameters(type(guide)):
        value = getattr(guide, p.name)
        if value is not None:
            table[KEYS.get(p.name, p.name)] = plain(value, p.hint, to_dict)
        elif p.default is not None:
            raise InvalidRecipeError(
                f"{guide} cannot be put in a recipe: its {p.name} is None, which TOML cannot say, "
                f"and leaving it out would mean {p.default!r}"
            )
    return table


def _soft(guide: Guide) -> SoftGuide:
    assert isinstance(guide, SoftGuide)
    return guide
