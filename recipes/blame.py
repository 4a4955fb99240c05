"""Whose code failed: a plugin is named, with the place."""

from __future__ import annotations

import traceback

from redraft.recipes.registry import OWN, discover


def blame(error: Exception) -> str:
    """One sentence on an error that nobody raised on purpose, naming the plugin nearest to it."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    entries = [entry for entry in discover().entries.values() if entry.origin.split()[0] != OWN]
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__", ""))
        near = [entry for entry in entries if entry.guide.__module__ == module]
        near = near or [
            entry for entry in entries if entry.guide.__module__.split(".")[0] == module.split(".")[0]
        ]
        if near:
            names = " or ".join(f'"{entry.name}"' for entry in near)
            return f"guide {names} of {near[0].origin} failed: {said} ({module}, line {line})"
    return f"{said} (a fault of Redraft's own: set REDRAFT_TRACEBACK=1 to see where)"
