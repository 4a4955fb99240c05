"""What recipes ask of a guide, as further checks: `check_guide(guide, more=RECIPE_CHECKS)`."""

from __future__ import annotations

import json

from redraft.denoiser.testing.examination import Check, demand
from redraft.denoiser.testing.facts import GuideFacts
from redraft.recipes.convert import from_dict, to_dict
from redraft.recipes.describe import described
from redraft.recipes.recipe import Recipe
from redraft.recipes.registry import discover


def _registered(facts: GuideFacts) -> str:
    entry = discover().get(discover().name_of(facts.guide))
    said = described(entry)
    demand(
        len(said) > 1 and len(said[1].strip()) > 10, f"{entry.name} has no docstring that says what it does"
    )
    return f"from {entry.origin}"


def _table(facts: GuideFacts) -> None:
    guide = facts.guide
    table = to_dict(guide)
    for name, values in (("table", table), ("table in JSON", json.loads(json.dumps(table)))):
        back = from_dict(values)
        demand(back == guide, f"back from its {name} {table} it is {back!r}, not {guide!r}")
        demand(to_dict(back) == table, f"its {name} is written back as {to_dict(back)}, not {table}")


def _file(facts: GuideFacts) -> None:
    recipe = Recipe(guides=(facts.guide,))
    text = recipe.to_toml()
    demand(Recipe.parse(text) == recipe, f"back from a file it is another guide:\n{text}")


def _portable(facts: GuideFacts) -> bool:
    return getattr(facts.guide, "portable", True)


RECIPE_CHECKS: tuple[Check, ...] = (
    Check(
        "recipe-name",
        "recipes and the command find a guide by its name",
        'add an entry point "name = package:Class" in the group redraft.guides, and a docstring',
        _registered,
        needs=("name-and-strength",),
        applies=_portable,
    ),
    Check(
        "recipe-table",
        "a result's recipe writes its text again",
        "annotate fields with str, int, float, bool, tuples of these, or guides",
        _table,
        needs=("recipe-name", "round-trip"),
        applies=_portable,
    ),
    Check(
        "recipe-file",
        "recipes are files",
        "annotate fields with str, int, float, bool, tuples of these, or guides",
        _file,
        needs=("recipe-table",),
        applies=_portable,
    ),
)
