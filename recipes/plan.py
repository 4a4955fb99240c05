"""A recipe before its parameters have values: the whole table, and what may be set in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redraft.denoiser.guide import Guide
from redraft.recipes.convert import from_dict as guide_from_dict
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.extending import whole
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.parameters import Parameter, Value, declared, settle
from redraft.recipes.references import filled, references
from redraft.recipes.versions import NEW_IN_2

_PLAIN = ("version", "title", "description")


@dataclass(frozen=True)
class Plan:
    """The table of a recipe with all that it extends, its parameters, and the values given to them."""

    table: Mapping[str, Any]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    given: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Mapping[str, Any], keys: list[str], path: Path | None = None) -> Plan:
        """The plan of a recipe's table, in the file `path` if in any; `keys` are those of a recipe.

        Raises `InvalidRecipeError` for an unknown key, for what it extends, and for a parameter that is
        declared wrongly or not at all.
        """
        known = [*keys, *NEW_IN_2]
        for key in table:
            if key not in known:
                meant = did_you_mean(str(key), [name for name in known if name not in table])
                raise InvalidRecipeError(f'unknown key "{key}" in the recipe: {meant}')
        made = whole(table, path)
        parameters = declared(made.table.get("parameters", {}))
        rest = {key: value for key, value in made.table.items() if key != "parameters"}
        for place, name in references(rest):
            if place in _PLAIN:
                raise InvalidRecipeError(
                    f"{place} is a parameter: write it out, so that a recipe can be told by it"
                )
            if name not in parameters:
                remedy = did_you_mean(name, parameters) if parameters else "add it under [parameters]"
                raise InvalidRecipeError(f'{place}: parameter "{name}" is not declared: {remedy}')
        return cls(rest, parameters, made.places, made.chain)

    def with_values(self, given: Mapping[str, object]) -> Plan:
        """This plan with values for some parameters, beside those that were given before."""
        return replace(self, given={**self.given, **settle(self.parameters, given)})

    @property
    def values(self) -> dict[str, Value]:
        """The value of every parameter that has one, in the order declared."""
        pairs = ((name, self.given.get(name, p.default)) for name, p in self.parameters.items())
        return {name: value for name, value in pairs if value is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """The parameters that have neither a default nor a value given."""
        return tuple(name for name in self.parameters if name not in self.values)

    def uses(self, name: str) -> list[str]:
        """The places that a parameter stands in."""
        return [place for place, used in references(self.table) if used == name]

    def filled(self) -> dict[str, Any]:
        """The recipe's table with every parameter replaced and every guide built; none may be missing."""
        table: dict[str, Any] = filled(self.table, self.values)
        guides = table.get("guides")
        if isinstance(guides, list):
            table["guides"] = tuple(
                _guide(guide, place) for guide, place in zip(guides, self.places, strict=True)
            )
        return table


def _guide(value: object, place: str) -> Guide:
    try:
        return guide_from_dict(value)
    except ValueError as error:
        raise InvalidRecipeError(f"{place}: {error}") from error
