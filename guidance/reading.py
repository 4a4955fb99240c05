"""Languages written character by character: the bytes of UTF-8 are seen to here."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from redraft.denoiser import Automaton
from redraft.denoiser.automaton import byte_classes
from redraft.guidance.space import SPACES

State = TypeVar("State", bound=Hashable)

#: Where `str.splitlines` breaks a text ("\\r\\n" is a break behind a line and one behind a blank line).
BREAKS = frozenset("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
#: White space that breaks no line.
BLANKS = frozenset(space.decode() for space in SPACES) - BREAKS
#: Passed over in search of a first letter: quotes, brackets, dashes and other marks.
MARKS = frozenset(
    "\"'([{<)]}>*_-.,;:!?~#`/\\|&+=^%$@\u2010\u2011\u2012\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u00ab\u00bb\u00a1\u00bf"
)


def over_characters(
    start: State,
    step: Callable[[State, str], State | None],
    accepting: Callable[[State], bool],
    named: Mapping[str, Iterable[str]],
) -> Automaton:
    """The texts (UTF-8 bytes) that `step(state, label)` leads from `start` to an accepting state.

    `named` says which characters have which label, disjointly; every other character is labelled "". Where
    a character breaks off nothing is accepted. None is a dead end.
    """
    label = {char.encode(): name for name, chars in named.items() for char in chars}
    parts = {raw[:cut] for raw in label for cut in range(1, len(raw))}

    def read(state: tuple[State, bytes], byte: int) -> tuple[State, bytes] | None:
        inner, part = state
        inside = 0x80 <= byte < 0xC0
        if part and not inside:
            return None
        raw = part + bytes([byte])
        if raw in parts:
            return inner, raw
        if inside and raw not in label and not part:
            return state  # the rest of a character that was read by its first bytes
        after = step(inner, label.get(raw, ""))
        return None if after is None else (after, b"")

    plain = [{raw[0] for raw, name in label.items() if name == own and len(raw) == 1} for own in named]
    wide = {byte for raw in label if len(raw) > 1 for byte in raw}
    classes = byte_classes(range(0x80, 0xC0), *plain, *({byte} for byte in sorted(wide)))
    return Automaton.build((start, b""), read, lambda s: not s[1] and accepting(s[0]), classes=classes)


def first_letter(unit: str) -> str:
    """The first character of a piece of text behind white space and marks; "" where there is none."""
    return next((char for char in unit if not char.isspace() and char not in MARKS), "")


def text_lines(text: str) -> list[tuple[int, str]]:
    """The lines that are not blank, as `str.splitlines` cuts them, each with its offset."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            found.append((at, line.rstrip("".join(BREAKS))))
        at += len(line)
    return found
