"""Texts to put guides to the proof: odd ones, near misses of given ones, and properties over all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: Characters that look like or stand in for common ones, and those that string code forgets.
ALIKE = {
    "a": "а", "e": "е", "o": "ο", "i": "ı", "I": "İ", "s": "ſ", "S": "ß", "k": "\u212a", " ": "\u00a0",
    "-": "\u2010", "'": "\u2019", '"': "\u201d", ".": "\u2024", "!": "\uff01", "1": "\u0661",
}  # fmt: skip
STRANGE = (
    "\u0301",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\u2028",
    "\x85",
    "\x1c",
    "\r\n",
    "\t",
    "\0",
    "_",
    "😀",
    "ﬁ",
    "Ǆ",
)
ODD = (
    "The quick brown fox jumps over a lazy dog: 0123456789.", "PACK MY BOX WITH FIVE DOZEN LIQUOR JUGS!",
    "", " ", "\n", "\r\n", "\0", "a", ".", "...", "ß", "İ", "ŉ", "ﬃ", "e\u0301", "\u0301", "\u200b", "\u202eabc",
    "\ufeff", "\uffff", "\U0010ffff", "\ue000", "👩‍👩‍👧", "١٢٣", "ſtorm", "ΟΔΟΣ", "\u2028", "\x1c", "a" * 999,
    "the " * 99, "<mask>", "[MASK]", "\\", '"', "{", '{"a": 1}', "(", "[[2]]", "___",
)  # fmt: skip


def near_misses(texts: Sequence[str], count: int, seed: int = 0) -> list[str]:
    """`count` texts that are each one or two edits from a given one; the same for the same seed."""
    draw = random.Random(seed)
    return [edited(draw.choice(texts), draw.randrange(2**32)) for _ in range(count)] if texts else []


def edited(text: str, seed: int) -> str:
    """A text with one edit, or two: characters dropped, added, doubled or swapped, case, look-alikes, ends."""
    draw = random.Random(seed)
    for _ in range(draw.choice((1, 1, 2))):
        text = draw.choice(_EDITS)(text, draw)
    return text


def _at(text: str, draw: random.Random) -> int:
    return draw.randrange(len(text)) if text else 0


def _drop(text: str, draw: random.Random) -> str:
    k = _at(text, draw)
    return text[:k] + text[k + 1 :]


def _add(text: str, draw: random.Random) -> str:
    k = draw.randint(0, len(text))
    return (
        text[:k]
        + draw.choice((*STRANGE, " ", ".", "é", chr(draw.randrange(33, 127)), chr(draw.randrange(33, 127))))
        + text[k:]
    )


def _flip(text: str, draw: random.Random) -> str:
    k = _at(text, draw)
    return text[:k] + text[k : k + 1].swapcase() + text[k + 1 :]


def _flip_all(text: str, draw: random.Random) -> str:
    return draw.choice((str.upper, str.lower, str.title, str.swapcase))(text)


def _look_alike(text: str, draw: random.Random) -> str:
    places = [k for k, char in enumerate(text) if char in ALIKE]
    if not places:
        return text
    k = draw.choice(places)
    return text[:k] + ALIKE[text[k]] + text[k + 1 :]


def _swap(text: str, draw: random.Random) -> str:
    k = _at(text[1:], draw)
    return text[:k] + text[k : k + 2][::-1] + text[k + 2 :]


def _cut(text: str, draw: random.Random) -> str:
    k = _at(text, draw)
    return draw.choice((text[:k], text[k:]))


def _around(text: str, draw: random.Random) -> str:
    more = draw.choice((" ", "\n", ".", '"', "x"))
    return draw.choice((text + more, more + text, text + more + text, ""))


_EDITS: tuple[Callable[[str, random.Random], str], ...] = (
    _drop, _add, _flip, _flip_all, _look_alike, _swap, _cut, _around,
)  # fmt: skip


def strategy(seeds: Sequence[str]) -> SearchStrategy[str]:
    """A hypothesis strategy: edits of given texts, and texts of any characters but surrogates."""
    from hypothesis import strategies as st

    known = st.sampled_from([*seeds, *ODD])
    pieces = known | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    return st.builds(edited, known, st.integers(0, 2**32 - 1)) | st.lists(pieces, max_size=4).map("".join)


def for_all(texts: SearchStrategy[str], law: Callable[[str], object], *, examples: int) -> None:
    """Run `law` over texts, the same ones every time; the error that comes out is that of the smallest one."""
    from hypothesis import HealthCheck, Verbosity, given, settings

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(texts)
    def holds(text: str) -> None:
        law(text)

    holds()


def need_hypothesis() -> None:
    """Raise ImportError with the remedy where hypothesis is not installed."""
    try:
        import hypothesis  # noqa: F401
    except ImportError as error:
        raise ImportError("the checks need hypothesis: pip install 'redraft[test]'") from error
