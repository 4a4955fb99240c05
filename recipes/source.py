"""The plain table of a recipe's text, before anything in it is understood."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from redraft.recipes.errors import InvalidRecipeError

MOST_BYTES = 1_000_000
_TWICE = re.compile(
    r"(?:Cannot overwrite a value|Cannot declare .* twice|Duplicate inline table key .*) "
    r"\(at (?:line (\d+), column \d+|end of document)\)"
)
_KEY = re.compile(r"\s*(\[\[?[^\]#]+\]?\]|[^=#\[\]{}]+?)\s*(?:=|#|$)")


def table_of(text: str) -> Mapping[str, Any]:
    """The table of a TOML text, or of a JSON object; raises `InvalidRecipeError` with line and column."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise InvalidRecipeError(f"the recipe is longer than {MOST_BYTES:,} bytes: recipes are short")
    text = text.removeprefix("\ufeff")
    try:
        return _of_json(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidRecipeError(_said(str(error), text)) from error
    except RecursionError as error:
        raise InvalidRecipeError("the recipe is nested too deeply: use fewer guides within guides") from error


def read_text(stream: BinaryIO, name: str) -> str:
    """The text of a binary stream called `name`, no more than 1 MB of it."""
    try:
        return stream.read(MOST_BYTES + 1).decode()
    except UnicodeDecodeError as error:
        raise InvalidRecipeError(
            f"{name} is not UTF-8 text (byte {error.start}): save it as UTF-8"
        ) from error


def read_table(path: Path) -> Mapping[str, Any]:
    """The table of a file; every error names it."""
    try:
        with path.open("rb") as stream:
            text = read_text(stream, path.name)
    except OSError as error:
        raise InvalidRecipeError(f"{path.name} cannot be read: {error.strerror or error}") from error
    try:
        return table_of(text)
    except InvalidRecipeError as error:
        raise InvalidRecipeError(f"{path.name}: {error}") from error


def _said(error: str, text: str) -> str:
    """What the reader of TOML found, with the key where one is there twice."""
    twice = _TWICE.search(error)
    if twice is None:
        return f"this is not TOML: {error}"
    lines = text.rstrip().split("\n")
    number = int(twice[1] or len(lines))
    key = _KEY.match(lines[min(number, len(lines)) - 1])
    return f"line {number} has {key[1] if key else 'a key'} a second time: keep one of them" + (
        " (in a list of tables each begins with [[...]])" if key and key[1].startswith("[") else ""
    )


def _of_json(text: str) -> Mapping[str, Any]:
    try:
        table = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRecipeError(f"this is not JSON: {error}") from error
    inner = table.get("recipe")
    return inner if isinstance(inner, dict) and "text" in table else table
