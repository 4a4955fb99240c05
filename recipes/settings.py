"""The table `[settings]` of a recipe: what it says about a run, laid over the denoiser's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, create_model

from redraft.denoiser.particles import Drafts
from redraft.denoiser.revision import REVISIONS
from redraft.denoiser.selection import SELECTIONS
from redraft.denoiser.settings import Settings
from redraft.denoiser.stopping import STOPS
from redraft.recipes.complaints import complaint
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.shapes import STRICT, model, parameters

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser

OFF = "off"
POLICIES: dict[str, Mapping[str, type]] = {
    "selection": SELECTIONS,
    "revision": REVISIONS,
    "stop": STOPS,
}


@lru_cache(maxsize=1)
def settings_model() -> type[BaseModel]:
    """The pydantic model of the table; every key may be missing, and means the denoiser's own then."""
    off = Literal["off"]
    share = Annotated[float, Field(gt=0, le=1)]
    fields: dict[str, Any] = {
        "steps": (int, Field(24, ge=1)),
        "selection": (str | dict[str, Any], "random"),
        "temperature": (float, Field(1.0, ge=0)),
        "top_k": (Annotated[int, Field(ge=1)] | off, OFF),
        "top_p": (share | off, OFF),
        "min_p": (share | off, OFF),
        "revision": (str | dict[str, Any], OFF),
        "particles": (off | dict[str, Any], OFF),
        "block_length": (Annotated[int, Field(ge=1)] | off, OFF),
        "stop": (str | dict[str, Any], OFF),
    }
    made: type[BaseModel] = create_model("Settings", __config__=STRICT, **fields)
    return made


@lru_cache(maxsize=64)
def policy_model(what: str, name: str) -> type[BaseModel]:
    """The pydantic model of a policy's table, {name = "confidence", noise = 0.5}."""
    return model(POLICIES[what][name], _no_guide, head=[("name", Literal[name], ...)])


def checked(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table in its one canonical form: policies with all they say, numbers of their own kind.

    Raises `InvalidRecipeError` or `InvalidGuideError` for an unknown key, a wrong type, a value out of range.
    """
    try:
        values = settings_model().model_validate(dict(table))
    except ValidationError as error:
        raise InvalidRecipeError(complaint(error, table, settings_model(), "settings")) from error
    plain = {name: getattr(values, name) for name in table}
    for what in POLICIES:
        if plain.get(what, OFF) != OFF or (what == "selection" and what in plain):
            plain[what] = _policy(what, plain[what])
    settings = Settings.from_dict(_without_off(plain))
    if settings.particles is not None:
        plain["particles"] = asdict(settings.particles)
    return plain


def complete(settings: Settings) -> dict[str, Any]:
    """All that settings say, "off" for what is None, so that no denoiser's own settings shine through."""
    said = settings.to_dict()
    return checked({name: said.get(name, OFF) for name in Settings.__dataclass_fields__})


def over(own: Settings, table: Mapping[str, Any]) -> Settings:
    """A denoiser's own settings with a recipe's table laid over them."""
    given = Settings.from_dict(_without_off(table))
    return replace(own, **{name: getattr(given, name) for name in table})


def effective(denoiser: Denoiser, table: Mapping[str, Any]) -> Settings:
    """A run's settings: the table over the denoiser's own, and `denoiser.drafts` drafts where it names no particles.

    At temperature 0 all drafts are the same, and what writes block by block takes no particles: one draft then.
    """
    settings = over(denoiser.settings, table)
    alone = denoiser.drafts == 1 or settings.temperature == 0 or denoiser.block is not None
    if alone or settings.particles is not None or "particles" in table:
        return settings
    return replace(settings, particles=Drafts(denoiser.drafts))


def _without_off(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value != OFF}


def _policy(what: str, value: str | dict[str, Any]) -> str | dict[str, Any]:
    """A policy's table with all its parameters, or its name alone where it has none."""
    table = {"name": value} if isinstance(value, str) else value
    known, name = POLICIES[what], table.get("name")
    if not isinstance(name, str) or name not in known:
        raise InvalidRecipeError(
            f"settings: unknown {what} {name!r}: {did_you_mean(str(name), sorted(known))}"
        )
    made = policy_model(what, name)
    try:
        values = made.model_validate(table)
    except ValidationError as error:
        raise InvalidRecipeError(complaint(error, table, made, f'{what} "{name}"')) from error
    own = {
        p.name: value for p in parameters(known[name]) if (value := getattr(values, f"{p.name}_")) is not None
    }
    return {"name": name} | own if own else name


def _no_guide(value: object) -> Any:
    raise InvalidRecipeError(f"{value!r} stands where no guide belongs")
