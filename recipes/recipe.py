"""A recipe: all that a run is made of, in one TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import BaseModel, Field, ValidationError

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.guide import Guide
from redraft.denoiser.settings import Settings
from redraft.recipes import settings as plain_settings
from redraft.recipes.complaints import complaint
from redraft.recipes.convert import from_dict as guide_from_dict
from redraft.recipes.convert import to_dict as guide_to_dict
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.parameters import Value
from redraft.recipes.plan import Plan
from redraft.recipes.shapes import STRICT
from redraft.recipes.source import read_text, table_of
from redraft.recipes.toml import toml
from redraft.recipes.versions import VERSION

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser
    from redraft.denoiser.result import Result

_AFTER = ("condition", "settings", "guides")  # tables, which TOML wants last


class RecipeTable(BaseModel):
    """The top level of a recipe file; `guides` and `settings` have models of their own."""

    model_config = STRICT

    version: int
    title: str = ""
    description: str = ""
    prompt: str = ""
    chat: bool = False
    model: str = Field("embedded", min_length=1)
    samples: int = Field(1, ge=1, le=1_000_000)
    seed: int | None = Field(None, ge=0, le=2**63 - 1)
    length: int | None = Field(None, ge=1)
    condition: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    guides: list[Any] = Field(default_factory=list)


@dataclass(frozen=True)
class Recipe:
    """All that a run is made of; equal recipes with a seed write equal texts on the same kind of device.

    `condition` names the denoiser's own tags; `settings` is laid over the denoiser's own, "off" standing for
    None; `length` is the canvas in tokens, EOS included (None: what the guides want); `seed` None: any;
    `chat`: the prompt is a user's message for the model's chat template.
    `plan` is what a recipe that was read was made from, with its parameters; it plays no part in equality.
    The constructor checks every value and raises `InvalidRecipeError`.
    """

    title: str = ""
    description: str = ""
    prompt: str = ""
    model: str = "embedded"
    samples: int = 1
    seed: int | None = None
    length: int | None = None
    condition: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    guides: tuple[Guide, ...] = ()
    version: int = VERSION
    chat: bool = False
    plan: Plan | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        values: dict[str, Any] = {name: getattr(self, name) for name in _KEYS}
        values = {name: value for name, value in values.items() if value is not None}
        values |= {
            "guides": list(self.guides),
            "settings": dict(self.settings),
            "condition": dict(self.condition),
        }
        _checked(values)
        guides = tuple(_guide(guide, k) for k, guide in enumerate(self.guides))
        for name, value in (
            ("condition", values["condition"]),
            ("settings", plain_settings.checked(values["settings"])),
            ("guides", guides),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], path: str | Path | None = None) -> Recipe:
        """The recipe of plain values; raises `InvalidRecipeError` with key, value and remedy.

        `path` is the file they stand in, beside which `extends` looks for others. Where a parameter has
        neither default nor value the recipe is unfinished: it takes `with_parameters` and nothing else.
        """
        if not isinstance(table, Mapping):
            raise InvalidRecipeError(f"a recipe is a table of keys and values, not {table!r}")
        return cls._of(Plan.of(table, _KEYS, None if path is None else Path(path)))

    @classmethod
    def _of(cls, plan: Plan) -> Recipe:
        from redraft.recipes.unfinished import Unfinished

        if plan.missing:
            return Unfinished(plan)
        values = plan.filled()
        _checked(values | {"guides": list(values.get("guides", []))} if _is_listed(values) else values)
        return cls(**values, plan=plan)

    @classmethod
    def parse(cls, text: str, path: str | Path | None = None) -> Recipe:
        """The recipe of a TOML text; raises `InvalidRecipeError`, with line and column for bad TOML.

        A JSON object is read as well: a recipe, or what `redraft write --json` printed, whose recipe it holds.
        `path` is the file it stands in, if any.
        """
        try:
            return cls.from_dict(table_of(text), path)
        except RecursionError as error:
            raise InvalidRecipeError(
                "the recipe is nested too deeply: use fewer guides within guides"
            ) from error

    @classmethod
    def read(cls, path: str | Path) -> Recipe:
        """The recipe of a file; every error names the file."""
        try:
            with Path(path).open("rb") as stream:
                return cls.of_stream(stream, str(path), path)
        except OSError as error:
            raise InvalidRecipeError(f"{path} cannot be read: {error.strerror or error}") from error

    @classmethod
    def of_stream(cls, stream: BinaryIO, name: str, path: str | Path | None = None) -> Recipe:
        """The recipe of an open binary stream, called `name` in errors; no more than 1 MB is read."""
        text = read_text(stream, name)
        try:
            return cls.parse(text, path)
        except InvalidGuideError as error:
            raise InvalidRecipeError(f"{name}: {error}") from error

    @property
    def parameters(self) -> Mapping[str, Value]:
        """The value of every parameter of a recipe that was read; empty where it declares none."""
        return {} if self.plan is None else self.plan.values

    def with_parameters(self, values: Mapping[str, object] | None = None, /, **more: object) -> Recipe:
        """This recipe as it was read, with other values for some of its parameters.

        Raises `InvalidRecipeError` for a name that is not declared or a value of another type, and where
        the recipe has been changed since it was read: set the parameters first.
        """
        given = {**(values or {}), **more}
        if self.plan is None:
            if not given:
                return self
            raise InvalidRecipeError(
                f'"{next(iter(given))}" cannot be set: this recipe was not read, or was changed since; '
                "set parameters right after reading it"
            )
        return type(self)._of(self.plan.with_values(given))

    @classmethod
    def from_result(cls, result: Result, model: str = "embedded", **more: Any) -> Recipe:
        """The complete recipe of a text, which writes it again. `more`: title and description."""
        return cls(
            prompt=result.prompt,
            chat=result.chat,
            model=model,
            seed=result.seed,
            length=result.length,
            condition=result.condition,
            settings=plain_settings.complete(result.settings),
            guides=result.guides,
            **more,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` turns back into an equal recipe; what is empty is left out."""
        table: dict[str, Any] = {"version": self.version}
        for name in _KEYS:
            value = getattr(self, name)
            if name not in _AFTER and value not in (None, "") and value is not False:
                table[name] = value
        tables = {
            "condition": dict(self.condition),
            "settings": dict(self.settings),
            "guides": [guide_to_dict(guide) for guide in self.guides],
        }
        return table | {name: value for name, value in tables.items() if value}

    def to_toml(self) -> str:
        """The recipe as a TOML text; reading it gives an equal recipe, writing that the same text."""
        return toml(self.to_dict())

    def write(self, path: str | Path) -> None:
        """Write the recipe to a file."""
        text = self.to_toml()
        try:
            Path(path).write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise InvalidRecipeError(f"{path} cannot be written: {error.strerror or error}") from error

    def override(self, **changes: Any) -> Recipe:
        """This recipe with other values; the names of `[settings]` are taken too, and change that table."""
        own = set(_KEYS)
        names = set(Settings.__dataclass_fields__)
        for name in changes:
            if name not in own | names:
                raise TypeError(f'a recipe has no "{name}": {did_you_mean(name, sorted(own | names))}')
        table = dict(changes.pop("settings", self.settings))
        table |= {name: changes.pop(name) for name in list(changes) if name in names}
        return replace(self, **changes, settings=table, plan=None)

    def run(self, denoiser: Denoiser | None = None, **options: Any) -> list[Result]:
        """Write the recipe's texts, with the denoiser given or the one the recipe names.

        `options` are changes to the recipe (as `override` takes them), or `batch_size` and `on_step` as
        `redraft.denoiser.write` takes them, or the `device` to load on. `report` is a file for the page that
        explains the texts.
        """
        from redraft.denoiser import load, write

        passed = {name: options.pop(name) for name in ("batch_size", "on_step") if name in options}
        device, report = options.pop("device", "cpu"), options.pop("report", None)
        recipe = self.override(**options) if options else self
        if report is not None:
            from redraft.recipes.page.observed import run_observed

            return run_observed(recipe, report, denoiser or load(recipe.model, device=device), **passed)
        denoiser = denoiser or load(recipe.model, device=device)
        return write(
            denoiser,
            recipe.guides,
            prompt=recipe.prompt,
            chat=recipe.chat,
            samples=recipe.samples,
            seed=recipe.seed,
            length=recipe.length,
            condition=recipe.condition,
            settings=plain_settings.effective(denoiser, recipe.settings),
            **passed,
        )


_KEYS = [f.name for f in fields(Recipe) if f.name != "plan"]


def _is_listed(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("guides"), tuple)


def _checked(values: Mapping[str, Any]) -> None:
    version = values.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version != VERSION:
        raise InvalidRecipeError(f"recipe version {version}: a recipe in memory has version {VERSION}")
    try:
        RecipeTable.model_validate(dict(values))
    except ValidationError as error:
        raise InvalidRecipeError(complaint(error, values, RecipeTable, "the recipe")) from error


def _guide(value: object, number: int) -> Guide:
    try:
        return guide_from_dict(value)
    except ValueError as error:
        raise InvalidRecipeError(f"guides[{number}]: {error}") from error
