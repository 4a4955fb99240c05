"""What the command's options add to a recipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redraft.denoiser.algebra import During, Scaled
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.guide import Guide
from redraft.denoiser.particles import Drafts
from redraft.recipes.convert import from_dict
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.parameters import parse_assignments
from redraft.recipes.recipe import Recipe
from redraft.recipes.settings import OFF

MOST_DRAFTS = 256
_RANGE = re.compile(r"\s*(\d+)\s*(?:(-)\s*(\d*)\s*)?")


@dataclass(frozen=True)
class Asked:
    """The guides that options name, as they stand on the command line."""

    keyword: Sequence[str] = ()
    forbid: Sequence[str] = ()
    sentiment: str | None = None
    style: str | None = None
    template: str | None = None
    pattern: str | None = None
    words: str | None = None
    sentences: str | None = None
    tokens: str | None = None
    json_schema: str | None = None
    one_of: Sequence[str] = ()

    def guides(self) -> list[Guide]:
        """One guide an option, all keywords in one, all forbidden phrases in one; errors name the option."""
        tables: list[tuple[str, dict[str, Any]]] = []
        if self.template is not None:
            tables.append(("--template", {"guide": "infill", "template": self.template}))
        if self.keyword:
            tables.append(
                ("--keyword", {"guide": "keywords", "words": [_alternatives(word) for word in self.keyword]})
            )
        if self.forbid:
            tables.append(("--forbid", {"guide": "forbid", "phrases": list(self.forbid)}))
        if self.pattern is not None:
            tables.append(("--pattern", {"guide": "pattern", "pattern": self.pattern}))
        if self.json_schema is not None:
            tables.append(("--json-schema", {"guide": "json-schema", "schema": _text(self.json_schema)}))
        if self.one_of:
            tables.append(("--one-of", {"guide": "one-of", "choices": list(self.one_of)}))
        for name in ("words", "sentences", "tokens"):
            if (value := getattr(self, name)) is not None:
                tables.append((f"--{name}", {"guide": name} | parse_range(f"--{name}", value)))
        if self.sentiment is not None:
            tables.append(("--sentiment", {"guide": "sentiment", "tone": self.sentiment}))
        if self.style is not None:
            tables.append(("--style", {"guide": "style", "style": self.style}))
        return [_guide(option, table) for option, table in tables]


def add_to(guides: Sequence[Guide], asked: Iterable[Guide]) -> tuple[Guide, ...]:
    """A recipe's guides and those asked for: keywords and forbidden phrases are added, any other guide takes
    the place of the recipe's own of its kind."""
    asked = tuple(asked)
    replaced = {type(guide) for guide in asked if guide.name not in ("keywords", "forbid")}
    return (*(guide for guide in guides if type(_core(guide)) not in replaced), *asked)


def apply(recipe: Recipe, asked: Asked, **changes: Any) -> Recipe:
    """A recipe with the options laid over it; a change that is None is none."""
    given = {name: value for name, value in changes.items() if value is not None}
    return recipe.override(guides=add_to(recipe.guides, asked.guides()), **given)


def with_set(recipe: Recipe, pairs: Sequence[str]) -> Recipe:
    """A recipe with the parameters of `--set NAME=VALUE` options."""
    if not pairs:
        return recipe
    declared = {} if recipe.plan is None else recipe.plan.parameters
    return recipe.with_parameters(parse_assignments(declared, pairs))


def refuse_together(
    *, table: str | None, out: str | None, save_recipe: str | None, report: str | None
) -> None:
    """Refuse options that make no sense beside one another."""
    if table is None and out is not None:
        raise InvalidRecipeError("--out is for --table: send the texts to a file with > instead")
    for option, value in (("--save-recipe", save_recipe), ("--report", report)):
        if table is not None and value is not None:
            raise InvalidRecipeError(
                f"{option} is for one recipe, and --table has one a row: write the row with its line's recipe"
            )


def parse_range(option: str, value: str) -> dict[str, int]:
    """{"least": A, "most": B} of "A-B"; "A" is exactly A, "A-" at least A."""
    match = _RANGE.fullmatch(value)
    if match is None or not value.isascii() or len(value) > 30:
        raise InvalidRecipeError(
            f"{option} is {value!r}: write A-B, A for exactly A, or A- for at least A, such as 15-30"
        )
    least, dash, most = match.groups()
    if dash is None:
        return {"least": int(least), "most": int(least)}
    return {"least": int(least)} | ({"most": int(most)} if most else {})


def parse_conditions(pairs: Sequence[str]) -> dict[str, str] | None:
    """{"genre": "tale"} of ["genre=tale"]; None where there are none."""
    table = {}
    for pair in pairs:
        kind, mark, value = pair.partition("=")
        if not (kind.strip() and mark and value.strip()):
            raise InvalidRecipeError(f"--condition is {pair!r}: write KIND=VALUE, such as genre=tale")
        table[kind.strip()] = value.strip()
    return table or None


def drafts_table(count: int) -> dict[str, Any] | str:
    """`[settings] particles` for `--drafts N`."""
    if not 1 <= count <= MOST_DRAFTS:  # they are written side by side
        raise InvalidRecipeError(f"--drafts is {count}: use a whole number from 1 to {MOST_DRAFTS}")
    return asdict(Drafts(count)) if count > 1 else OFF


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRecipeError(f"--json-schema: {path} cannot be read: {error}") from error


def _alternatives(word: str) -> str | list[str]:
    return word.split("|") if "|" in word else word


def _core(guide: Guide) -> Guide:
    while isinstance(guide, (Scaled, During)):
        guide = guide.guide
    return guide


def _guide(option: str, table: dict[str, Any]) -> Guide:
    try:
        return from_dict(table)
    except InvalidGuideError as error:
        raise InvalidRecipeError(f"{option}: {error}") from error
