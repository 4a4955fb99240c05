"""For the tests of any text generator: hold its texts to a recipe.

    from redraft.recipes.testing import assert_satisfies

    def test_the_greeting():
        assert_satisfies(my_generator("Ada"), "greeting.toml")

Plain functions that raise `AssertionError`; no test framework is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from redraft.denoiser.guide import Guide, Verdict
from redraft.recipes.checking import Checker
from redraft.recipes.excerpt import excerpts
from redraft.recipes.lookup import find
from redraft.recipes.recipe import Recipe

__all__ = ["assert_satisfies", "failure"]

Judge = Recipe | Guide | Sequence[Guide] | str | Path


def assert_satisfies(
    text: str, recipe: Judge, *, encouraged: bool = False, parameters: dict[str, object] | None = None
) -> tuple[Verdict, ...]:
    """Assert that a text keeps to every guaranteed guide; gives all verdicts.

    `recipe` is a `Recipe`, the name of a shipped one, a file, a guide or a list of guides. `encouraged`: soft
    guides must be satisfied too. `parameters` are values for the recipe's `[parameters]`. Raises
    `AssertionError` that shows which guide failed, and where in the text.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    if not isinstance(text, str):
        raise TypeError(f"a text is a str, not {type(text).__name__}: decode it first")
    own = _recipe(recipe).with_parameters(parameters)
    verdicts = tuple(Checker(own)(text))
    judged = [v for v in verdicts if encouraged or v.strength == "guaranteed"]
    broken = [v for v in judged if v.status != "satisfied"]
    if broken:
        raise AssertionError(failure(text, broken, own.title))
    return verdicts


def failure(text: str, broken: Sequence[Verdict], title: str = "") -> str:
    """What is wrong with a text: a line a verdict, and the places it points at with carets beneath."""
    count = "a guide" if len(broken) == 1 else f"{len(broken)} guides"
    shown = repr(text) if len(text) <= 100 else f"{text[:97]!r}..."
    lines = [f"the text breaks {count}{f' of {title!r}' if title else ''}: {shown}"]
    for verdict in broken:
        note = f": {verdict.note}" if verdict.note else ""
        score = "" if verdict.score is None else f" (score {verdict.score:.2f})"
        said = "" if verdict.status == "violated" else f" [{verdict.status}]"
        lines.append(f"  {verdict.guide}{said}{note}{score}")
        lines += [f"    {line}" for line in excerpts(text, verdict.spans)]
    return "\n".join(lines)


def _recipe(recipe: Judge) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, (str, Path)):
        return find(str(recipe))
    guides = (recipe,) if isinstance(recipe, Guide) else tuple(recipe)
    return Recipe(guides=guides)
