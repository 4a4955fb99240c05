"""What can be wrong with a recipe, and the nearest name that was perhaps meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from redraft.denoiser.errors import InvalidGuideError, RedraftError


class InvalidRecipeError(InvalidGuideError):
    """A recipe that cannot be read, or a value in it that cannot be meant."""


class PluginError(RedraftError):
    """A guide of another distribution that cannot be used, named with where it comes from."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean "words"?`, or the list of what is known where nothing is near."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return f"use one of {', '.join(known)}" if known else "leave it out"
