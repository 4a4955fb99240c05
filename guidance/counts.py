"""Ranges such as 15-30 and what a guide needs of them."""

from __future__ import annotations

from redraft.denoiser import InvalidGuideError

CEILING = 10_000  # more than any canvas holds


def check_range(what: str, least: int, most: int | None, floor: int) -> None:
    """Raise `InvalidGuideError` unless floor <= least <= most (None: no upper end), all whole numbers."""
    for value in (least, most):
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int) or not floor <= value <= CEILING
        ):
            raise InvalidGuideError(f"{what} is {value!r}: use a whole number from {floor} to {CEILING:,}")
    if most is not None and least > most:
        raise InvalidGuideError(f"{what} runs from {least} to {most}: put the smaller number first")


def within(count: int, least: int, most: int | None) -> bool:
    """Whether least <= count <= most (None: no upper end)."""
    return least <= count and (most is None or count <= most)


def aim(least: int, most: int | None, more: int) -> float:
    """The count to make room for: a quarter below `most`, or `more` above `least` where there is no upper end.

    A denoiser fills its canvas, give or take a few words. With room for `most` half of the texts would be too long,
    and a text that is squeezed leaves out spaces and stops.
    """
    return least + more if most is None else most - (most - least) / 4


def shown(least: int, most: int | None) -> str:
    """A range as people write it: 15-30, 15+ or 15."""
    return f"{least}+" if most is None else str(least) if least == most else f"{least}-{most}"


def shorten(text: str, most: int = 72) -> str:
    """A text as messages show it: long ones are cut in the middle."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"
