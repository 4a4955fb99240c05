"""Adapters of other distributions: the entry points of the group `redraft.denoisers`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

from redraft.denoiser.base import Denoiser
from redraft.denoiser.errors import UnsupportedModelError
from redraft.denoiser.plugins import Plugin, Plugins, collect

GROUP = "redraft.denoisers"


@runtime_checkable
class Adapter(Protocol):
    """What an entry point of `redraft.denoisers` names: an object (a module will do) with two functions."""

    def supports(self, config: Mapping[str, Any]) -> bool:
        """Whether it serves the model of this config.json; a look at the table, no code or weights loaded."""
        ...

    def from_pretrained(self, name: str, **options: Any) -> Denoiser:
        """The denoiser of a folder or name; `options` are those of `load`: device, dtype, trust_remote_code, ..."""
        ...


@lru_cache(maxsize=1)
def adapters() -> Plugins[Adapter]:
    """The adapters installed here, found once; what does not load is among the failures."""
    return collect("adapter", entry_points(group=GROUP), _wrong)


def adapter_for(name: str, config: Mapping[str, Any]) -> Plugin[Adapter] | None:
    """The one adapter that serves a config, None where none does; asked before Redraft's own.

    Raises `UnsupportedModelError` where two say they do, or where one fails at the question.
    """
    serving = []
    for plugin in adapters().entries.values():
        try:
            if plugin.value.supports(config):
                serving.append(plugin)
        except Exception as error:
            raise UnsupportedModelError(
                f'adapter "{plugin.name}" of {plugin.origin} fails at the config of {name!r}: '
                f"{type(error).__name__}: {error}; mend or uninstall it"
            ) from error
    if len(serving) > 1:
        both = " and ".join(f'"{plugin.name}" of {plugin.origin}' for plugin in serving)
        raise UnsupportedModelError(f"{name!r} is claimed by the adapters {both}: uninstall one of them")
    return serving[0] if serving else None


def failed_adapters() -> str:
    """A clause for error messages: the adapters that do not load, with their errors; empty where all do."""
    failures = adapters().failures
    return f" ({'; '.join(map(str, failures))})" if failures else ""


def _wrong(value: object, name: str) -> str:
    missing = [x for x in ("supports", "from_pretrained") if not callable(getattr(value, x, None))]
    return f"lacks {' and '.join(missing)}: see docs/plugins.md" if missing else ""
