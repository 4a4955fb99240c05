"""What a regular expression may not contain, found before the compiler sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from redraft.denoiser.errors import InvalidGuideError

_LEADING_FLAGS = re.compile(r"\(\?[a-zA-Z]+\)")

_GROUPS = {
    "(?=": ("lookahead", "combine two guides with `&` instead"),
    "(?!": ("negative lookahead", "exclude with `& ~Pattern(...)` instead"),
    "(?<=": ("lookbehind", "combine two guides with `&` instead"),
    "(?<!": ("negative lookbehind", "exclude with `& ~Pattern(...)` instead"),
    "(?P=": ("a backreference", "write the alternatives out with `|`"),
    "(?>": ("an atomic group", "use a plain group `(?:...)`"),
    "(?(": ("a conditional group", "write the alternatives out with `|`"),
    "(?#": ("a comment group", "use `(?x)` and `#`"),
}
_BOUNDARY = ("a word boundary", "use Keywords for whole words, or write the neighbours out")


def check_pattern(pattern: str) -> tuple[str, str]:
    """Split into leading flags such as "(?i)" and the body without outer anchors; refuse what is not regular.

    Raises InvalidGuideError naming the construct, its position in `pattern` (from 0) and what to use instead.
    """
    found = _LEADING_FLAGS.match(pattern)
    flags = found.group() if found else ""
    first = len(flags)
    for anchor in ("^", "\\A"):
        if pattern.startswith(anchor, first):
            first += len(anchor)
            break
    depth = 0
    for place, piece in _pieces(pattern, first, "x" in flags):
        if piece == "(":
            depth += 1
            for opening, (name, remedy) in _GROUPS.items():
                if pattern.startswith(opening, place):
                    raise _unsupported(pattern, place, name, remedy)
        elif piece == ")":
            depth -= 1
            if depth < 0:
                raise InvalidGuideError(
                    f"regex {pattern!r}: unbalanced parenthesis at position {place}; escape it: \\)"
                )
        elif piece in ("^", "\\A"):
            remedy = "remove it: the whole text is always matched"
            raise _unsupported(pattern, place, "an anchor inside the pattern", remedy)
        elif piece in ("\\b", "\\B", "\\<", "\\>"):
            raise _unsupported(pattern, place, *_BOUNDARY)
        elif piece == "\\k" or (len(piece) == 2 and piece[0] == "\\" and piece[1] in "123456789"):
            raise _unsupported(pattern, place, *_GROUPS["(?P="])
        elif piece == "possessive":
            raise _unsupported(pattern, place, "a possessive quantifier", "drop the extra `+`")
    return flags, pattern[first:]


def _unsupported(pattern: str, place: int, name: str, remedy: str) -> InvalidGuideError:
    return InvalidGuideError(f"regex {pattern!r}: {name} at position {place} is not supported; {remedy}")


def _pieces(pattern: str, place: int, verbose: bool) -> Iterator[tuple[int, str]]:
    """Position and text of each escape, parenthesis, anchor and possessive quantifier outside classes."""
    quantified = False
    while place < len(pattern):
        char = pattern[place]
        before, quantified = quantified, False
        if char == "\\":
            yield place, pattern[place : place + 2]
            named = pattern[place + 1 : place + 2] in tuple("pPxuU") and pattern.startswith("{", place + 2)
            end = pattern.find("}", place) if named else -1
            place = end + 1 if end > 0 else place + 2
            continue
        if char == "[":
            place = _class_end(pattern, place)
            continue
        if verbose and char == "#":
            place = pattern.find("\n", place)
            if place < 0:
                return
            continue
        if char in "()^":
            yield place, char
        if char == "+" and before:
            yield place, "possessive"
        if char in "*+?}":
            quantified = not (char == "?" and before) and not pattern.startswith("(?", place - 1)
        place += 1


def _class_end(pattern: str, place: int) -> int:
    """Just past the character class that opens at `place` (classes may nest)."""
    depth = 0
    while place < len(pattern):
        char = pattern[place]
        if char == "\\":
            place += 1
        elif char == "[":
            depth += 1
            place += pattern.startswith("^", place + 1)
            place += pattern.startswith("]", place + 1)
        elif char == "]":
            depth -= 1
            if not depth:
                return place + 1
        place += 1
    return place
