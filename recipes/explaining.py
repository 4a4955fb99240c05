"""What a recipe comes to: values after everything it extends and sets, and what each guide means and costs."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from redraft.denoiser import Scene, Settings, Steering, load, write
from redraft.denoiser.errors import StateBudgetError, UnsatisfiableError
from redraft.denoiser.guide import Guide
from redraft.recipes import settings as plain_settings
from redraft.recipes.recipe import Recipe
from redraft.recipes.toml import inline

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser

_SAYS = {"guaranteed": "guarantees", "encouraged": "encourages", "searched": "searches for"}


class _EnoughError(Exception):
    """The step to measure is over."""


def explained(recipe: Recipe, denoiser: Denoiser | None = None, *, measure: bool = True) -> dict[str, Any]:
    """A recipe as plain values: where it comes from, its effective settings, its guides with states and cost.

    Loads the recipe's denoiser and binds the guides; two forward passes where `measure` is true. Guides that
    cannot be met together are no error here: `conflict` says which.
    """
    denoiser = denoiser or load(recipe.model)
    effective = plain_settings.effective(denoiser, recipe.settings)
    limit = denoiser.longest(denoiser.prepare(recipe.prompt, 1, recipe.condition))
    length, why = _length(recipe, denoiser, limit)
    guides = [_guide(guide, _scene(denoiser, recipe, length, effective)) for guide in recipe.guides]
    table: dict[str, Any] = {
        "title": recipe.title,
        "description": recipe.description,
        "extends": [] if recipe.plan is None else list(recipe.plan.chain),
        "parameters": _parameters(recipe),
        "prompt": recipe.prompt,
        "condition": dict(recipe.condition),
        "samples": recipe.samples,
        "seed": recipe.seed,
        "denoiser": {"name": recipe.model, "vocabulary": len(denoiser.vocabulary), "longest": limit},
        "settings": _settings(effective, recipe),
        "guides": guides,
    }
    try:
        steering, length, why = _bound(recipe, denoiser, effective, length, why, limit)
    except (UnsatisfiableError, StateBudgetError) as error:
        names = list(getattr(error, "conflict", ()))
        return table | {
            "canvas": {"length": length, "why": why},
            "together": None,
            "conflict": {"message": str(error), "guides": names, "needed": getattr(error, "needed", None)},
        }
    whole = steering.automaton
    width = int(whole.delta.shape[1])
    together: dict[str, Any] = {
        "states": whole.states,
        "classes": width,
        "operations": length * whole.states * width,
    }
    if measure:
        together |= _measured(recipe, denoiser, effective, length)
    return table | {"canvas": {"length": length, "why": why}, "together": together, "conflict": None}


def told(table: dict[str, Any]) -> Iterator[str]:
    """The lines that say to a reader what `explained` found."""
    yield table["title"] or "(no title)"
    if table["description"]:
        yield f"  {table['description']}"
    if table["extends"]:
        yield f"  extends {', which extends '.join(table['extends'])}"
    if table["parameters"]:
        yield "\nparameters"
        for p in table["parameters"]:
            about = f"  {p['description']}" if p["description"] else ""
            used = f" (in {', '.join(p['places'])})" if p["places"] else " (not used)"
            yield f"  {p['name']} = {inline(p['value'])}  {p['type']}{used}{about}"
    denoiser, canvas = table["denoiser"], table["canvas"]
    yield f"\ndenoiser {denoiser['name']}: {denoiser['vocabulary']:,} tokens, at most {denoiser['longest']} on a canvas"
    if table["prompt"]:
        yield f"  prompt = {inline(table['prompt'])}"
    for kind, value in table["condition"].items():
        yield f"  condition {kind} = {inline(value)}"
    yield f"  length = {canvas['length']}  {canvas['why']}"
    for name, setting in table["settings"].items():
        yield f"  {name} = {inline(setting['value'])}  {setting['from']}"
    yield "\nguides" if table["guides"] else "\nno guide: the denoiser writes as it likes"
    for guide in table["guides"]:
        yield f"  {guide['guide']}"
        yield f"    {guide['verb']}: {guide['says']}"
        if guide["states"] is not None:
            size = f"{guide['states']:,} states, {guide['classes']} classes of tokens"
            yield f"    {size}, bound in {guide['bind_ms']:.0f} ms"
    together = table["together"]
    if together is not None and table["guides"]:
        yield (
            f"\ntogether {together['states']:,} states, {together['classes']} classes: "
            f"{together['operations']:,} operations a step and text"
        )
    if together is not None and "step_denoiser_ms" in together:
        share = together["step_guides_ms"] / max(together["step_denoiser_ms"], 1e-9)
        yield (
            f"a step took {together['step_denoiser_ms']:.1f} ms in the denoiser and "
            f"{together['step_guides_ms']:.1f} ms around it ({share:.0%})"
        )
    if table["conflict"] is not None:
        yield f"\nCONFLICT {table['conflict']['message']}"
    elif table["guides"]:
        yield "no conflict: texts exist that keep to every guarantee"


def _scene(denoiser: Denoiser, recipe: Recipe, length: int, settings: Settings) -> Scene:
    return Scene(denoiser.vocabulary, denoiser.device, 1, length, settings.steps, recipe.prompt)


def _length(recipe: Recipe, denoiser: Denoiser, limit: int) -> tuple[int, str]:
    """The canvas as `write` chooses it before it knows what the guides need, and why."""
    if recipe.length is not None:
        return recipe.length, "recipe"
    rooms = [room for guide in recipe.guides if (room := guide.room()) is not None]
    if not rooms:
        return min(denoiser.length, limit), "denoiser"
    ending = int(denoiser.vocabulary.eos_id is not None)
    return min(max(rooms) + ending, limit), "what the guides want"


def _bound(
    recipe: Recipe, denoiser: Denoiser, settings: Settings, length: int, why: str, limit: int
) -> tuple[Steering, int, str]:
    try:
        return Steering(recipe.guides, _scene(denoiser, recipe, length, settings)), length, why
    except UnsatisfiableError as error:
        if recipe.length is not None or error.needed is None or error.needed > limit:
            raise
        length = min(error.needed + error.needed // 4, limit)
    return Steering(recipe.guides, _scene(denoiser, recipe, length, settings)), length, "what the guides need"


def _guide(guide: Guide, scene: Scene) -> dict[str, Any]:
    begin = time.perf_counter()
    language = guide.bind(scene).language()
    spent = 1e3 * (time.perf_counter() - begin)
    summary = inspect.cleandoc(type(guide).__doc__ or "").split("\n\n")[0].replace("\n", " ")
    return {
        "guide": str(guide),
        "name": guide.name,
        "strength": guide.strength,
        "verb": _SAYS[guide.strength],
        "says": summary,
        "states": None if language is None else language.states,
        "classes": None if language is None else int(language.delta.shape[1]),
        "bind_ms": round(spent, 2),
        "wants_tokens": guide.room(),
    }


def _settings(effective: Settings, recipe: Recipe) -> dict[str, Any]:
    complete = plain_settings.complete(effective)
    return {
        name: {"value": value, "from": "recipe" if name in recipe.settings else "denoiser"}
        for name, value in complete.items()
    }


def _parameters(recipe: Recipe) -> list[dict[str, Any]]:
    plan = recipe.plan
    if plan is None:
        return []
    return [
        {
            "name": name,
            "type": parameter.kind,
            "value": _plain(plan.values.get(name)),
            "default": _plain(parameter.default),
            "description": parameter.description,
            "places": plan.uses(name),
        }
        for name, parameter in plan.parameters.items()
    ]


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _measured(recipe: Recipe, denoiser: Denoiser, settings: Settings, length: int) -> dict[str, float]:
    """Milliseconds of the second step of a run (the first one warms up)."""
    found: dict[str, float] = {}

    def stop(refinement: Any) -> None:
        found["step_denoiser_ms"] = round(refinement.denoiser_ms, 2)
        found["step_guides_ms"] = round(refinement.guidance_ms, 2)
        if refinement.step.index:
            raise _EnoughError

    with suppress(_EnoughError):
        write(
            denoiser,
            recipe.guides,
            prompt=recipe.prompt,
            seed=0,
            length=length,
            condition=recipe.condition,
            settings=replace(settings, steps=max(settings.steps, 2)),
            on_step=stop,
        )
    return found
