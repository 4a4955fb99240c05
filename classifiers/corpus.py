"""Labelled passages: files `GENRE-HAND.txt`, a line each: a tone mark (`+`, `-`, `0`), a space, the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from redraft.classifiers.base import InvalidClassifierError

_FILE = re.compile(r"([a-z]+)-(\d+)\.txt")


@dataclass(frozen=True)
class Passage:
    """One text, its genre, its tone (`+`, `-` or `0`) and the hand that wrote it."""

    text: str
    genre: str
    tone: str
    hand: int


def read_corpus(folder: Path) -> list[Passage]:
    """All passages of a folder, by file name and line; `InvalidClassifierError` for a line without mark."""
    passages = []
    for path in sorted(Path(folder).glob("*-*.txt")):
        named = _FILE.fullmatch(path.name)
        if named is None:
            raise InvalidClassifierError(
                f"{path.name} is not named GENRE-HAND.txt: rename it, or take it out"
            )
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not re.match(r"[+\-0] \S", line):
                raise InvalidClassifierError(f"{path.name} line {number}: begin with '+ ', '- ' or '0 '")
            passages.append(Passage(line[2:].strip(), named[1], line[0], int(named[2])))
    if not passages:
        raise InvalidClassifierError(f"{folder} has no file GENRE-HAND.txt: name the folder of the passages")
    return passages
