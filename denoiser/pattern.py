"""What a regular expression may not contain, found before the compiler sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
#: What a backslash may stand before among letters and digits (digits are refused as backreferences).
_LETTERS = "aftnvrdDsSwWbBAzpPxuU123456789k"
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
    for place in _escapes(pattern, first) if "x" not in flags else ():
        if pattern[place + 1 : place + 2].isalnum() and pattern[place + 1] not in _LETTERS:
            raise InvalidGuideError(
                f"regex {pattern!r}: unknown escape {pattern[place : place + 2]} at position {place}; "
                "drop the backslash, or double it for a plain one"
            )
    return flags, pattern[first:]


@dataclass(frozen=True)
class Alternative:
    """A top-level alternative of a pattern: its flags and body, and at which ends of the text it is held."""

    flags: str
    body: str
    from_start: bool
    to_end: bool

    def to_python(self) -> str:
        """The alternative for a search with the `regex` package, held at the very ends."""
        close = "\n)" if "x" in self.flags else ")"
        inner = f"{self.flags[:-1]}:{self.body}{close}" if self.flags else f"(?:{self.body}{close}"
        return ("\\A" if self.from_start else "") + inner + ("\\Z" if self.to_end else "")


def alternatives(pattern: str) -> tuple[Alternative, ...]:
    """Cut `pattern` at its top-level bars, for a search: `^a|b$` is (`a` at the start) or (`b` at the end)."""
    found = _LEADING_FLAGS.match(pattern)
    flags = found.group() if found else ""
    cuts, depth, ends = [len(flags) - 1], 0, set()
    for place, piece in _pieces(pattern, len(flags), "x" in flags):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and depth == 0:
            cuts.append(place)
        if piece in ("$", "\\z"):
            ends.add(place + len(piece))
    made = []
    for start, stop in zip(cuts, [*cuts[1:], len(pattern)], strict=True):
        body = pattern[start + 1 : stop]
        opening = next((anchor for anchor in ("^", "\\A") if body.startswith(anchor)), "")
        closing = "" if stop not in ends else "$" if body.endswith("$") else "\\z"
        body = body[len(opening) : len(body) - len(closing)]
        made.append(Alternative(flags, body, bool(opening), bool(closing)))
    return tuple(made)


def _escapes(pattern: str, place: int) -> Iterator[int]:
    """Position of each backslash that escapes something, in and outside classes."""
    while (place := pattern.find("\\", place)) >= 0:
        yield place
        place += 2


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
        if char in "()^|$":
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
