"""How to refine: everything about a run that is not what is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar, cast

from redraft.denoiser.checked import Checked
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.particles import Particles
from redraft.denoiser.revision import REVISIONS, Revision
from redraft.denoiser.selection import SELECTIONS, Random, Selection
from redraft.denoiser.stopping import STOPS, Stop

Policy = TypeVar("Policy")


@dataclass(frozen=True)
class Settings(Checked):
    """Steps, order and sampling of a run; a denoiser brings its own defaults.

    steps >= 1: most forward passes a text may take, over all blocks; temperature >= 0 (0: greedy, the most
    probable joint draft); top_k >= 1 and top_p, min_p in (0, 1]: truncation of each position's distribution, None: off.
    block_length >= 1: commit in blocks of so many tokens, left to right, None: anywhere; stop: when to accept the
    whole draft before the steps are over, None: never; particles: so many drafts of each text race each other,
    None: one.
    """

    steps: int = 24
    selection: Selection = field(default_factory=Random)
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    revision: Revision | None = None
    particles: Particles | None = None
    block_length: int | None = None
    stop: Stop | None = None

    def __post_init__(self) -> None:
        _whole("steps", self.steps, 1)
        if not (self.temperature == 0 or 0.01 <= self.temperature <= 100):
            raise InvalidGuideError(
                f"temperature is {self.temperature}: use 0 (greedy) or a number from 0.01 to 100"
            )
        for name in ("top_k", "block_length"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        for name in ("top_p", "min_p"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise InvalidGuideError(f"{name} is {share}: use a share above 0, at most 1, or None for off")
        if not isinstance(self.selection, Selection):
            raise InvalidGuideError(f"selection is {self.selection!r}: use a Selection such as Random()")
        if self.revision is not None and not isinstance(self.revision, Revision):
            raise InvalidGuideError(
                f"revision is {self.revision!r}: use a Revision such as Uncertain(), or None"
            )
        if self.stop is not None and not isinstance(self.stop, Stop):
            raise InvalidGuideError(f"stop is {self.stop!r}: use a Stop such as Patience(), or None")
        if self.particles is not None and not isinstance(self.particles, Particles):
            raise InvalidGuideError(f"particles is {self.particles!r}: use Particles(8), or None")
        if self.particles is not None and self.particles.count > 1 and self.temperature == 0:
            raise InvalidGuideError(
                "at temperature 0 all particles are the same: use a temperature from 0.01, or one draft "
                '(particles=None, --drafts 1, particles = "off" in a recipe)'
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """Settings from plain values, as a model's folder or a recipe holds them.

        A policy is its name ("random") or a table {"name": "confidence", "noise": 0.5}.
        """
        values = dict(values)
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown:
            raise InvalidGuideError(
                f"unknown setting {sorted(unknown)[0]!r}: use one of {', '.join(cls.__dataclass_fields__)}"
            )
        if "selection" in values:
            values["selection"] = _policy("selection", values["selection"], SELECTIONS)
        if values.get("revision") is not None:
            values["revision"] = _policy("revision", values["revision"], REVISIONS)
        if isinstance(values.get("particles"), Mapping):
            try:
                values["particles"] = Particles(**values["particles"])
            except TypeError as error:
                raise InvalidGuideError(f"particles: {error}") from error
        if values.get("stop") is not None:
            values["stop"] = _policy("stop", values["stop"], STOPS)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that `from_dict` turns back into equal settings; what is None is left out."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("selection", "revision", "stop"):
            if plain[name] is not None:
                plain[name] = {"name": plain[name].name} | _said(plain[name])
        if self.particles is not None:
            plain["particles"] = _said(self.particles)
        return {name: value for name, value in plain.items() if value is not None}

    def override(self, **changes: Any) -> Settings:
        """These settings with the changes that are not None."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})


def _said(value: Any) -> dict[str, Any]:
    """A policy's fields, without those that are None."""
    return {name: field for name, field in asdict(value).items() if field is not None}


def _whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1_000_000:
        raise InvalidGuideError(f"{name} is {value!r}: use a whole number from {least} to 1,000,000")


def _policy(what: str, value: Any, known: Mapping[str, type[Policy]]) -> Policy:
    table = {"name": value} if isinstance(value, str) else value
    if not isinstance(table, Mapping):
        return cast(Policy, value)  # already a policy; the constructor checks its type
    table = dict(table)
    name = table.pop("name", None)
    if name not in known:
        raise InvalidGuideError(f"{what} is {name!r}: use one of {', '.join(sorted(known))}")
    try:
        return known[name](**table)
    except TypeError as error:
        raise InvalidGuideError(f"{what} {name}: {error}") from error
