"""`redraft guides` and `redraft doctor`."""

from __future__ import annotations

import sys


def guides() -> int:
    """Every guide: its parameters, its strength class, where it comes from."""
    from redraft.recipes.describe import described
    from redraft.recipes.registry import discover

    registry = discover()
    for entry in registry.entries.values():
        print("\n".join(described(entry)), end="\n\n")
    for failure in registry.failures:
        print(f"redraft: {failure}", file=sys.stderr)
    return 0


def doctor() -> int:
    """Versions, extras, devices, the embedded weights, the cache, the plugins; exit 1 if something is missing."""
    from redraft.recipes.doctor import examine

    findings = examine()
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{'ok ' if finding.fine else 'BAD'}  {finding.what:<{width}}  {finding.found}")
    return 0 if all(finding.fine for finding in findings) else 1
