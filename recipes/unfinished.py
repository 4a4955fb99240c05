"""A recipe that still lacks the value of a parameter: it takes that value and nothing else."""

from __future__ import annotations

from typing import Any, NoReturn

from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.plan import Plan
from redraft.recipes.recipe import _KEYS, Recipe


class Unfinished(Recipe):
    """A recipe as read, some of whose parameters have neither a default nor a value.

    `title`, `description`, `plan`, `parameters` and `with_parameters` work; whatever else is asked of it
    raises `InvalidRecipeError` that names what is missing.
    """

    def __init__(self, plan: Plan) -> None:
        object.__setattr__(self, "plan", plan)

    title = property(lambda self: str(self.plan.table.get("title", "")))
    description = property(lambda self: str(self.plan.table.get("description", "")))

    @classmethod
    def _of(cls, plan: Plan) -> Recipe:
        return Recipe._of(plan)

    def __repr__(self) -> str:
        assert self.plan is not None
        return f"Unfinished({', '.join(self.plan.missing)})"

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unfinished) and self.plan == other.plan

    def _refuse(self) -> NoReturn:
        assert self.plan is not None
        names = self.plan.missing
        what = f'parameter "{names[0]}" has' if len(names) == 1 else f"parameters {', '.join(names)} have"
        raise InvalidRecipeError(
            f"{what} no value: give --set {names[0]}=VALUE, with_parameters({names[0]}=...) or a default"
        )


def _refusing() -> Any:
    return property(lambda self: self._refuse())


for _name in _KEYS:
    if _name not in ("title", "description"):
        setattr(Unfinished, _name, _refusing())
