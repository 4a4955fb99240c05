"""White space in UTF-8, byte by byte, exactly as `str.isspace` has it."""

from __future__ import annotations

_CODES = (*range(0x09, 0x0E), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029)
SPACES = frozenset(chr(code).encode() for code in (*_CODES, 0x202F, 0x205F, 0x3000))
PARTS = frozenset(space[:cut] for space in SPACES for cut in range(1, len(space)))


def step_space(part: bytes, byte: int) -> tuple[bool | None, bytes]:
    """Read one more byte behind a `part` of a possible space: (is it white space, the new part).

    None: not known yet. A byte that settles the part as no space ends it; continuation bytes of other
    characters are never spaces by themselves.
    """
    seen = part + bytes([byte])
    if seen in SPACES:
        return True, b""
    if seen in PARTS:
        return None, seen
    return False, b""
