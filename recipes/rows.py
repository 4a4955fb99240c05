"""The rows of a table for `redraft write --table`: CSV, or JSON lines."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.nearest import did_you_mean
from redraft.recipes.parameters import Parameter, Value

OWN = ("seed", "prompt")  # columns that every table may have beside the parameters
LAST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Row:
    """One row: its number from 1, its cells as they stand, and a key that is the same wherever it stands.

    Equal rows have different keys: the key counts how many equal rows came before.
    """

    number: int
    cells: Mapping[str, Any]
    key: str


def read_rows(file: str, parameters: Mapping[str, Parameter]) -> list[Row]:
    """Every row of a table; raises `InvalidRecipeError` for a file, line or column that cannot be meant.

    A name that ends in .jsonl, .ndjson or .json is JSON lines, one in .tsv tab-separated, any other CSV.
    """
    try:
        text = Path(file).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InvalidRecipeError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidRecipeError(
            f"{file} is not UTF-8 text (byte {error.start}): save it as UTF-8"
        ) from error
    suffix = Path(file).suffix.lower()
    lines = _json if suffix in (".jsonl", ".ndjson", ".json") else _separated
    seen: Counter[str] = Counter()
    rows = []
    for number, cells in enumerate(lines(text, file, parameters), 1):
        plain = json.dumps(cells, sort_keys=True, ensure_ascii=True)
        rows.append(Row(number, cells, digest([plain, seen[plain]])))
        seen[plain] += 1
    if not rows:
        raise InvalidRecipeError(f"{file} has no row: give a header and one row a text")
    return rows


def digest(value: object) -> str:
    """16 hexadecimal digits of plain values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def settled(row: Row, parameters: Mapping[str, Parameter]) -> tuple[dict[str, Value], dict[str, Any]]:
    """A row's values for the parameters, and its own changes (`seed`, `prompt`); raises `InvalidRecipeError`.

    A cell that is empty (in JSON: null) leaves the recipe's own value, but for a prompt or a parameter of
    strings in JSON, where "" is a value.
    """
    values: dict[str, Value] = {}
    own: dict[str, Any] = {}
    for name, cell in row.cells.items():
        if cell is None:
            continue
        if name in parameters:
            parameter = parameters[name]
            values[name] = parameter.parse(cell.text) if isinstance(cell, _Cell) else parameter.accept(cell)
        elif name == "seed":
            own[name] = _seed(cell)
        else:
            own[name] = _prompt(cell)
    return values, own


class _Cell(str):
    """The text of a cell of a separated file, whose type the parameter decides."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return str(self)


def _separated(text: str, file: str, parameters: Mapping[str, Parameter]) -> Iterator[dict[str, Any]]:
    mark = "\t" if file.lower().endswith(".tsv") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    header: list[str] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [cell.strip() for cell in cells]
                _check_header(header, file, parameters)
                continue
            if len(cells) != len(header):
                raise InvalidRecipeError(
                    f"{file}, line {reader.line_num} has {len(cells)} cells and the header {len(header)}: "
                    "put cells with the separator in them in quotes"
                )
            yield {
                name: _Cell(cell) if cell.strip() else None for name, cell in zip(header, cells, strict=True)
            }
    except csv.Error as error:
        raise InvalidRecipeError(f"{file}, line {reader.line_num}: {error}") from error


def _check_header(header: list[str], file: str, parameters: Mapping[str, Parameter]) -> None:
    known = [*parameters, *OWN]
    for k, name in enumerate(header):
        if name in header[:k]:
            raise InvalidRecipeError(f'{file}: the column "{name}" is there twice: keep one')
        if name not in known:
            hint = " (columns are separated by commas)" if ";" in name and len(header) == 1 else ""
            raise InvalidRecipeError(
                f'{file}: column "{name}" is no parameter of the recipe{hint}: {did_you_mean(name, known)}'
            )


def _json(text: str, file: str, parameters: Mapping[str, Parameter]) -> Iterator[dict[str, Any]]:
    known = [*parameters, *OWN]
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            table = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise InvalidRecipeError(f"{file}, line {number} is not JSON: {error}") from error
        if not isinstance(table, dict):
            raise InvalidRecipeError(f"{file}, line {number} is {line[:40]!r}: give one JSON object a line")
        for name in table:
            if name not in known:
                raise InvalidRecipeError(
                    f'{file}, line {number}: "{name}" is no parameter of the recipe: {did_you_mean(name, known)}'
                )
        yield table


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _seed(cell: Any) -> int:
    try:
        seed = int(cell) if isinstance(cell, _Cell) else cell
    except ValueError:
        seed = None
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LAST_SEED:
        raise InvalidRecipeError(f"seed is {cell!r}: use a whole number from 0 to {LAST_SEED}")
    return seed


def _prompt(cell: Any) -> str:
    if not isinstance(cell, str):
        raise InvalidRecipeError(f"prompt is {cell!r}: use a string")
    return str(cell)
