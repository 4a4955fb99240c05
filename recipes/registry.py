"""Which guides there are: the entry points of the group `redraft.guides`, by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from redraft.denoiser import plugins
from redraft.denoiser.guide import Guide
from redraft.denoiser.plugins import Failure, Plugin
from redraft.recipes.errors import InvalidRecipeError, PluginError
from redraft.recipes.nearest import did_you_mean

GROUP = "redraft.guides"
OWN = "redraft"
SOURCE = "redraft (source tree)"


@dataclass(frozen=True)
class Entry:
    """A guide that recipes can name; `origin` is the distribution and version it comes from."""

    name: str
    guide: type[Guide]
    origin: str


@dataclass(frozen=True)
class Registry:
    """Guides by name, and the names that failed; a failure is an error only for who asks for that name."""

    entries: Mapping[str, Entry]
    failures: tuple[Failure, ...] = ()

    def get(self, name: str) -> Entry:
        """The guide of a name; raises `PluginError` where it failed, `InvalidRecipeError` for none."""
        for failure in self.failures:
            if failure.name == name:
                raise PluginError(str(failure))
        if name not in self.entries:
            raise InvalidRecipeError(f'unknown guide "{name}": {did_you_mean(name, self.entries)}')
        return self.entries[name]

    def name_of(self, guide: Guide) -> str:
        """The name that recipes call a guide by; raises `InvalidRecipeError` for a class that has none."""
        name = getattr(type(guide), "name", "")
        if not guide.portable:
            raise InvalidRecipeError(
                f"{guide} cannot be put in a recipe: it holds a Python object, which a file cannot; use it from Python"
            )
        entry = self.entries.get(name)
        if entry is None or entry.guide is not type(guide):
            raise InvalidRecipeError(
                f"{guide} cannot be put in a recipe: {type(guide).__qualname__} is not registered as "
                f'"{name}"; add it to the entry points "{GROUP}" of its distribution'
            )
        return name


@lru_cache(maxsize=1)
def discover() -> Registry:
    """The guides installed here, found once; in a source tree Redraft's own are there all the same."""
    return collect(entry_points(group=GROUP))


def collect(points: Iterable[EntryPoint]) -> Registry:
    """A registry of entry points: what does not load, or is claimed twice, becomes a `Failure`."""
    points = tuple(points)
    shipped = any(point.dist is not None and point.dist.name == OWN for point in points)
    found = plugins.collect("guide", points, _wrong, () if shipped else _own())
    entries = {name: Entry(name, plugin.value, plugin.origin) for name, plugin in found.entries.items()}
    return Registry(entries, found.failures)


def _wrong(guide: object, name: str) -> str:
    """What keeps an object from being the guide `name`; empty where nothing does."""
    if not (isinstance(guide, type) and issubclass(guide, Guide)):
        return f"is {guide!r}, not a subclass of redraft.denoiser.Guide"
    if inspect.isabstract(guide):
        return f"lacks {', '.join(sorted(guide.__abstractmethods__))}: write them"
    if not is_dataclass(guide):
        return "is not a dataclass: decorate it with @dataclass(frozen=True)"
    if getattr(guide, "name", None) != name:
        return f'calls itself "{getattr(guide, "name", None)}": set name = "{name}"'
    return ""


def _own() -> list[Plugin[type[Guide]]]:
    import redraft.guidance as guidance

    classes = [value for name in guidance.__all__ if isinstance(value := getattr(guidance, name), type)]
    return [
        Plugin(cls.name, cls, SOURCE)
        for cls in classes
        if issubclass(cls, Guide) and cls.portable and not _wrong(cls, cls.name)
    ]
