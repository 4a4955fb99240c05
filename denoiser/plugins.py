"""Entry points of other distributions: found by name, what fails is told by name, a clash is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Plugin(Generic[T]):
    """A named thing and the distribution (with version) that it comes from."""

    name: str
    value: T
    origin: str


@dataclass(frozen=True)
class Failure:
    """A name that cannot be used, with the reason; `kind` is what it should have been ("guide")."""

    name: str
    origin: str
    error: str
    kind: str = "guide"

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}" of {self.origin}: {self.error}'


@dataclass(frozen=True)
class Plugins(Generic[T]):
    """Plugins by name, and the names that failed; a failure is an error only for who asks for that name."""

    entries: Mapping[str, Plugin[T]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()


def collect(
    kind: str,
    points: Iterable[EntryPoint],
    wrong: Callable[[object, str], str],
    own: Iterable[Plugin[T]] = (),
) -> Plugins[T]:
    """Load entry points; `wrong(value, name)` says what keeps a value from being one, "" where nothing does.

    `own` are claimed before all others. A point that does not load, is wrong, or claims a name that is
    taken becomes a `Failure`: no name is ever decided by the order of installation.
    """
    claims: dict[str, list[Plugin[T] | Failure]] = {}
    for found in (*own, *(_load(kind, point, wrong) for point in points)):
        claims.setdefault(found.name, []).append(found)
    entries: dict[str, Plugin[T]] = {}
    failures = []
    for name, (first, *others) in sorted(claims.items()):
        if others:
            origins = " and ".join(claim.origin for claim in (first, *others))
            failures.append(
                Failure(name, origins, "the name is claimed twice: uninstall or rename one of them", kind)
            )
        elif isinstance(first, Failure):
            failures.append(first)
        else:
            entries[name] = first
    return Plugins(entries, tuple(failures))


def _load(kind: str, point: EntryPoint, wrong: Callable[[object, str], str]) -> Plugin[T] | Failure:
    origin = (
        f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unnamed distribution"
    )
    try:
        value = point.load()
    except Exception as error:  # a plugin may fail in any way; it is reported by name, never swallowed
        return Failure(
            point.name, origin, f"{point.value} does not load: {type(error).__name__}: {error}", kind
        )
    said = wrong(value, point.name)
    if said:
        return Failure(point.name, origin, f"{point.value} {said}", kind)
    return Plugin(point.name, value, origin)
