"""The nearest name that was perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean "words"?`, or the list of what is known where nothing is near."""
    import difflib

    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return f"use one of {', '.join(known)}" if known else "leave it out"
