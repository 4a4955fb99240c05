"""JSON texts: strict reading, the one spelling of a value, strings as byte languages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from redraft.denoiser.automaton import STATE_BUDGET, Automaton, byte_classes
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.regex import UTF8, compile_regex, compile_search
from redraft.guidance.json.formats import FORMATS

_QUOTE, _BACKSLASH = 0x22, 0x5C
_SHORT = {ord("b"): 0x08, ord("t"): 0x09, ord("n"): 0x0A, ord("f"): 0x0C, ord("r"): 0x0D}
_SHORT |= {_QUOTE: _QUOTE, _BACKSLASH: _BACKSLASH}
_HEX = b"0123456789abcdef"
_LONGEST_INT = 4000  # Python reads no longer whole number from text by default

#: Any sequence of JSON's words and marks: holds every JSON text, and is regular.
LEXEMES = (
    r"(?:[ \t\n\r{}\[\],:]|\"(?:[^\"\\\x00-\x1f]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))*\""
    r"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)+"
)
#: Any JSON string and any JSON number, escapes and exponents included (no half of a surrogate pair).
_UNIT = "u(?:[0-9a-cefA-CEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F][0-9a-fA-F]"
ANY_STRING = rf"\"(?:[^\"\\\x00-\x1f]|\\(?:[\"\\/bfnrt]|{_UNIT}))*\""
ANY_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9][0-9]?)?"


def parse(text: str, *, unique: bool = True) -> Any:
    """The value of a JSON text, by `json.loads`; raises ValueError also for NaN, Infinity, and, where
    `unique`, for a name that an object has twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(items)
        if unique and len(table) < len(items):
            twice = next(name for k, (name, _) in enumerate(items) if name in dict(items[:k]))
            raise ValueError(f"the name {twice!r} stands twice in one object")
        return table

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    def whole(digits: str) -> int:
        return int(digits) if len(digits) < _LONGEST_INT else int(Decimal(digits))

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_int=whole)


def quoted(text: str) -> bytes:
    """A string as JSON: the short escapes, \\u00xx for other control characters, all else as it is."""
    return json.dumps(text, ensure_ascii=False).encode()


@lru_cache(maxsize=256)
def string(
    least: int = 0,
    most: int | None = None,
    patterns: tuple[str, ...] = (),
    formats: tuple[str, ...] = (),
    controls: bool = False,
) -> Automaton:
    """JSON spellings (as `quoted`) of the strings of `least` to `most` characters that match everything given.

    Control characters that have no short escape are left out unless a pattern asks for them or `controls`.
    """
    held = [compile_search(pattern) for pattern in patterns] + [FORMATS[name]() for name in formats]
    if least or most is not None:
        held.append(lengths(least, most))
    content = reduce(lambda a, b: a & b, held, UTF8)
    return _spelled(content, controls or bool(patterns))


def lengths(least: int, most: int | None) -> Automaton:
    """UTF-8 texts of `least` to `most` characters (None: no upper end); a character is a code point."""
    unit = UTF8.minimise()
    copies = (least if most is None else most) + 1
    if copies * unit.states > STATE_BUDGET:
        raise StateBudgetError(
            f"counting {copies - 1:,} characters needs more than {STATE_BUDGET:,} states: count fewer",
            sizes=(copies * unit.states,),
        )
    offset = np.arange(copies, dtype=np.int32)[:, None, None] * unit.states
    delta = np.tile(unit.delta[None], (copies, 1, 1))
    whole = delta == unit.start
    delta = delta + offset
    delta[:-1][whole[:-1]] += unit.states  # a character is complete: on to the next copy
    if most is not None:
        dead = int(np.flatnonzero(~unit.accept & (unit.delta == np.arange(unit.states)[:, None]).all(1))[0])
        delta[-1] = dead + offset[-1]
    accept = np.zeros((copies, unit.states), dtype=bool)
    accept[least:, unit.start] = True
    return Automaton(
        unit.classes, delta.reshape(-1, delta.shape[2]), unit.start, accept.reshape(-1)
    ).minimise()


def _spelled(content: Automaton, controls: bool) -> Automaton:
    """Quoted and escaped texts of `content`: from each state q the text may go on raw, or through an escape."""
    states = content.states
    single = [{byte} for byte in (*range(0x20), *_SHORT, *_HEX, ord("u"))]
    own = byte_classes(*single)
    _, first, classes = np.unique(
        content.classes.astype(np.int64) * 256 + own, return_index=True, return_inverse=True
    )
    classes = classes.reshape(-1)
    raw, escape, *hexes = (k * states for k in range(7 if controls else 2))
    start, end, dead = (states * (2 + 5 * controls) + k for k in range(3))
    here = np.arange(states)
    delta = np.full((dead + 1, len(first)), dead, dtype=np.int32)
    after = content.delta[:, content.classes]  # [Q, 256]
    delta[raw : raw + states] = after[:, first]
    for byte in (*range(0x20), _QUOTE):
        delta[raw : raw + states, classes[byte]] = dead
    delta[np.flatnonzero(content.accept), classes[_QUOTE]] = end
    delta[raw : raw + states, classes[_BACKSLASH]] = escape + here
    for letter, byte in _SHORT.items():
        delta[escape : escape + states, classes[letter]] = after[:, byte]
    if controls:
        u, zero, zeros, low, high = hexes
        delta[escape : escape + states, classes[ord("u")]] = u + here
        for source, digit, target in (
            (u, "0", zero),
            (zero, "0", zeros),
            (zeros, "0", low),
            (zeros, "1", high),
        ):
            delta[source : source + states, classes[ord(digit)]] = target + here
        for base, source in ((0x00, low), (0x10, high)):
            for low_bits, letter in enumerate(_HEX):
                if base + low_bits not in _SHORT.values():
                    delta[source : source + states, classes[letter]] = after[:, base + low_bits]
    delta[start, classes[_QUOTE]] = raw + content.start
    accept = np.zeros(dead + 1, dtype=bool)
    accept[end] = True
    return Automaton(classes.astype(np.int32), delta, start, accept).minimise()


def lexemes() -> Automaton:
    """The language of LEXEMES."""
    return compile_regex(LEXEMES)


def scalars(full: bool) -> Sequence[Automaton]:
    """The values that hold no other; in their one spelling, or, where `full`, in every spelling."""
    from redraft.guidance.json.numbers import number

    words = compile_regex("true|false|null")
    if full:
        return (compile_regex(ANY_STRING), compile_regex(ANY_NUMBER), words)
    return (string(), number(), words)
