"""Classifiers of other distributions: the entry points of the group `redraft.classifiers`."""

from __future__ import annotations

import difflib
from functools import lru_cache
from importlib.metadata import entry_points

from redraft.classifiers.base import Classifier, InvalidClassifierError
from redraft.denoiser.plugins import Plugins, collect

GROUP = "redraft.classifiers"
_NEEDED = ("score", "fit", "save", "load")


@lru_cache(maxsize=1)
def classifiers() -> Plugins[type[Classifier]]:
    """The classes of classifiers installed here, found once; what does not load is among the failures."""
    return collect("classifier", entry_points(group=GROUP), _wrong)


def classifier(name: str) -> type[Classifier]:
    """The class of a name, such as `classifier("embedding").load(folder)`.

    Raises `InvalidClassifierError` for an unknown name, and with its error for one that does not load.
    """
    found = classifiers()
    for failure in found.failures:
        if failure.name == name:
            raise InvalidClassifierError(str(failure))
    if name not in found.entries:
        near = difflib.get_close_matches(name, found.entries, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(found.entries) or 'none'}"
        raise InvalidClassifierError(f"no classifier {name!r} is installed: {known}")
    return found.entries[name].value


def _wrong(value: object, name: str) -> str:
    if not isinstance(value, type):
        return f"is {value!r}, not a class"
    missing = [x for x in _NEEDED if not callable(getattr(value, x, None))]
    return f"lacks {', '.join(missing)}: see redraft.classifiers.Classifier" if missing else ""
