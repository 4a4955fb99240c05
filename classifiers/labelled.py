"""Texts and their labels from a file: tabs, JSON lines or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redraft.classifiers.base import InvalidClassifierError

JSON = (".jsonl", ".ndjson", ".json")


def read_labelled(path: str | Path) -> tuple[list[str], list[str]]:
    """(texts, labels) of a file: `label<TAB>text` lines, JSON lines or CSV with the keys "label" and "text".

    The kind is told by the name's end (.jsonl, .ndjson, .json, .csv), else it is tabs. Empty lines are passed over,
    a byte order mark and CRLF are no part of a text. A label in JSON may be a number, true or false. Raises
    `InvalidClassifierError` with the line of what is no label and text.
    """
    path = Path(path)
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidClassifierError(
            f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8"
        ) from error
    kind = path.suffix.lower()
    read = _csv if kind == ".csv" else _json if kind in JSON else _tabs
    texts, labels = [], []
    for number, label, text in read(content, path):
        if not label.strip() or not text.strip():
            raise InvalidClassifierError(
                f"{path} line {number}: a label and a text are needed: {_form(path)}"
            )
        try:
            (label + text).encode()
        except UnicodeEncodeError as error:
            raise InvalidClassifierError(
                f"{path} line {number} has half a surrogate pair, which is no text: drop it"
            ) from error
        texts.append(text.strip())
        labels.append(label.strip())
    if not texts:
        raise InvalidClassifierError(f"{path} has no texts: {_form(path)}")
    return texts, labels


def _form(path: Path) -> str:
    if path.suffix.lower() == ".csv":
        return "give a header with the columns label and text"
    if path.suffix.lower() in JSON:
        return 'write {"label": ..., "text": ...}, one a line'
    return "write label<TAB>text, one a line"


def _lines(content: str) -> Iterator[tuple[int, str]]:
    """Lines as files have them; a separator such as U+2028 is text."""
    for number, line in enumerate(io.StringIO(content, newline=None), 1):
        if line.strip():
            yield number, line


def _tabs(content: str, path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in _lines(content):
        label, _, text = line.partition("\t")
        yield number, label, text


def _json(content: str, path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in _lines(content):
        try:
            table = json.loads(line)
            label, text = table["label"], table["text"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidClassifierError(f"{path} line {number}: {_form(path)}") from error
        yield number, _plain(label, (str, int, float), number, path), _plain(text, (str,), number, path)


def _plain(value: Any, kinds: tuple[type, ...], number: int, path: Path) -> str:
    """A value as text, "" for null; another type than these was not meant as one."""
    if value is not None and not isinstance(value, kinds):
        raise InvalidClassifierError(
            f"{path} line {number}: {str(value)[:40]!r} is no {'text' if kinds == (str,) else 'label'}: {_form(path)}"
        )
    return "" if value is None else str(value)


def _csv(content: str, path: Path) -> Iterator[tuple[int, str, str]]:
    rows = csv.DictReader(io.StringIO(content, newline=""), strict=True)
    try:
        for row in rows:
            if None in row:  # a comma in a text that has no quotes: the rest of the text
                raise InvalidClassifierError(
                    f"{path} line {rows.line_num} has more cells than the header: put texts with commas in quotes"
                )
            yield rows.line_num, row.get("label") or "", row.get("text") or ""
    except csv.Error as error:
        raise InvalidClassifierError(
            f"{path} line {rows.reader.line_num}: {error}: mend it, or write JSON lines"
        ) from error
