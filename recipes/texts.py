"""Where the texts to judge come from: lines, whole files, parts between separators, a field of JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from redraft.recipes.errors import InvalidRecipeError

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Text:
    """A text, the file it stands in ("-": standard input) and the line it begins at, from 1."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Cut:
    """How files are cut into texts: one text a line, unless one of these says otherwise.

    `whole`: a file is a text, but for its last line end. `separator`: lines that hold just this stand between
    texts. `field`: each line is a JSON object, and the text is under this key, or path of keys and numbers
    such as `choices.0.text`.
    """

    whole: bool = False
    separator: str | None = None
    field: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("whole", "separator", "field") if getattr(self, name) not in (False, None)]
        if len(given) > 1:
            raise InvalidRecipeError(f"--{given[0]} and --{given[1]} are both given: use one of them")
        for name in ("separator", "field"):
            if (value := getattr(self, name)) is not None and not value.strip():
                raise InvalidRecipeError(f"--{name} is {value!r}: give something that is not blank")


def texts(files: Sequence[str], cut: Cut) -> Iterator[Text]:
    """Every text of the files, in order; raises `InvalidRecipeError` for what is no text.

    A byte order mark at the beginning of a file is no part of its text. Lines that are blank, and parts that
    are, are passed over; an empty text in a JSON field is a text, and so is a whole file.
    """
    for file in files:
        with _opened(file) as stream:
            yield from _texts(stream, file, cut)


def _texts(stream: BinaryIO, file: str, cut: Cut) -> Iterator[Text]:
    if cut.whole:
        text = _decoded(stream.read().removeprefix(BOM), file, None)
        yield Text(file, 1, _without_end(text))
    elif cut.separator is not None:
        yield from _parts(stream, file, cut.separator)
    else:
        for number, line in _lines(stream, file):
            if line.strip():
                yield Text(file, number, line if cut.field is None else _field(line, cut.field, file, number))


def _lines(stream: BinaryIO, file: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(stream, 1):
        raw = raw.removeprefix(BOM) if number == 1 else raw
        yield number, _without_end(_decoded(raw, file, number))


def _parts(stream: BinaryIO, file: str, separator: str) -> Iterator[Text]:
    begin, part = 1, list[str]()
    for number, line in _lines(stream, file):
        if line.strip() != separator.strip():
            part.append(line)
            continue
        if any(map(str.strip, part)):
            yield Text(file, begin, "\n".join(part))
        begin, part = number + 1, []
    if any(map(str.strip, part)):
        yield Text(file, begin, "\n".join(part))


def _field(line: str, field: str, file: str, number: int) -> str:
    where = f"{named(file)}, line {number}"
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRecipeError(f"{where} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidRecipeError(f"{where} is no JSON object: --field is for lines that are")
    steps = [field] if field in value else field.split(".")
    for step in steps:
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (LookupError, TypeError, ValueError) as error:
            known = f": it has {', '.join(list(value)[:8])}" if isinstance(value, dict) else ""
            raise InvalidRecipeError(f'{where} has no "{step}"{known}; name another --field') from error
    if not isinstance(value, str):
        raise InvalidRecipeError(f"{where}: {field} is {repr(value)[:60]}, no string: name another --field")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidRecipeError(f"{where}: {field} has half a surrogate pair, which is no text") from error
    return value


def _decoded(raw: bytes, file: str, number: int | None) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{named(file)}, line {number}" if number is not None else named(file)
        raise InvalidRecipeError(f"{where} is not UTF-8 text: save it as UTF-8") from error


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def named(file: str) -> str:
    """What a file is called in a message."""
    return "standard input" if file == "-" else file


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(file, "rb")  # noqa: SIM115
    except OSError as error:
        raise InvalidRecipeError(f"{file} cannot be read: {error.strerror or error}") from error
    with stream:
        yield stream
