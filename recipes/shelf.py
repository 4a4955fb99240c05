"""The recipes that ship with Redraft, found by name; light enough to list without loading anything else."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "library"


@dataclass(frozen=True)
class Shipped:
    """A shipped recipe: its file, and what it says of itself."""

    name: str
    title: str
    description: str
    path: Path

    @property
    def text(self) -> str:
        """The TOML, as written."""
        return self.path.read_text(encoding="utf-8")


def shipped() -> dict[str, Shipped]:
    """Every shipped recipe by name, in order of name."""
    found = {}
    for path in sorted(FOLDER.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        title, description = str(table.get("title", "")), str(table.get("description", ""))
        found[path.stem] = Shipped(path.stem, title, description, path)
    return found
