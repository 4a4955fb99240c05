"""Judge texts that are already there by the guides of a recipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redraft.denoiser.guide import Bound, Guide, HardGuide, Verdict
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.excerpt import opening
from redraft.recipes.recipe import Recipe
from redraft.recipes.report import evidence, mark, verdict_dict
from redraft.recipes.texts import Cut, Text, texts


class Checker:
    """The guides of a recipe as judges; a denoiser is loaded only where a hard guide needs one."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.guides = recipe.guides
        self._bound: dict[Guide, Bound] = {}

    def __call__(self, text: str) -> list[Verdict]:
        """Every guide's verdict, in the recipe's order."""
        return [self._judge(guide, text) for guide in self.guides]

    def _judge(self, guide: Guide, text: str) -> Verdict:
        verdict = guide.check(text)
        if verdict.status != "unknown" or not isinstance(guide, HardGuide):
            return verdict
        if guide not in self._bound:
            self._bound[guide] = self._bind(guide)
        return self._bound[guide].check(text)

    def _bind(self, guide: Guide) -> Bound:
        from redraft.denoiser import Scene, load

        denoiser = load(self.recipe.model)
        return guide.bind(
            Scene(denoiser.vocabulary, denoiser.device, 1, denoiser.max_length, 1, self.recipe.prompt)
        )


@dataclass(frozen=True)
class Judged:
    """A text with its verdicts."""

    text: Text
    verdicts: tuple[Verdict, ...]

    @property
    def holds(self) -> bool:
        """Whether every hard guide is satisfied."""
        return holds(self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the file is left out where it is standard input."""
        file = {} if self.text.file == "-" else {"file": self.text.file}
        verdicts = [verdict_dict(verdict) for verdict in self.verdicts]
        table = {"line": self.text.line, "text": self.text.text, "holds": self.holds, "verdicts": verdicts}
        return file | table


def holds(verdicts: Sequence[Verdict]) -> bool:
    """Whether every hard guide is satisfied."""
    return all(verdict.status == "satisfied" for verdict in verdicts if verdict.strength == "guaranteed")


def check_texts(
    recipe: Recipe,
    files: Sequence[str],
    cut: Cut,
    *,
    name: str = "",
    as_json: bool = False,
    junit_file: str | None = None,
    json_file: str | None = None,
) -> int:
    """Print the verdicts on each text, and write the files asked for; 0 if all hold, else 1."""
    for option, file in (("--junit", junit_file), ("--json-file", json_file)):
        if file is not None and (
            not file or Path(file).is_dir() or not Path(file).absolute().parent.is_dir()
        ):
            raise InvalidRecipeError(f"{option} is {file!r}: name a file in a folder that is there")
    checker = Checker(recipe)
    keep = junit_file is not None or json_file is not None
    kept: list[Judged] = []
    count = held = 0
    for text in texts(files, cut):
        judged = Judged(text, tuple(checker(text.text)))
        count, held = count + 1, held + judged.holds
        kept += [judged] if keep else []
        if as_json:
            print(json.dumps(judged.to_dict()), flush=True)
        else:
            _print(judged, named=len(files) > 1)
    if not count:
        where = "standard input" if list(files) == ["-"] else " and ".join(files)
        raise InvalidRecipeError(f"{where} has no text: {_what(cut)}")
    if junit_file is not None:
        from redraft.recipes.junit import junit

        _write(junit_file, junit(kept, recipe.title or name or "redraft check"))
    if json_file is not None:
        table = {"recipe": recipe.title or name, "texts": count, "held": held}
        whole = table | {"results": [judged.to_dict() for judged in kept]}
        _write(json_file, json.dumps(whole, indent=2, ensure_ascii=False).encode() + b"\n")
    print(f"{held} of {count} texts hold to every hard guide", file=sys.stderr)
    return 0 if held == count else 1


def _print(judged: Judged, *, named: bool) -> None:
    text = judged.text
    print(f"{text.file + ':' if named else ''}{text.line}: {opening(text.text, width=100)}")
    for verdict in judged.verdicts:
        about = f"{verdict.strength:<10}  {verdict.guide}  {evidence(verdict, text.text)}"
        print(f"  {mark(verdict)} {about}".rstrip())
    sys.stdout.flush()


def _what(cut: Cut) -> str:
    if cut.field is not None:
        return "give one JSON object a line"
    return "give one text a line" if cut.separator is None else "give texts with separators between them"


def _write(file: str, content: bytes) -> None:
    try:
        Path(file).write_bytes(content)
    except OSError as error:
        raise InvalidRecipeError(f"{file} cannot be written: {error.strerror or error}") from error
