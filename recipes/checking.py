"""Judge texts that are already there by the guides of a recipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from redraft.denoiser.guide import Bound, Guide, HardGuide, Verdict
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.recipe import Recipe
from redraft.recipes.report import evidence, mark, verdict_dict


class Checker:
    """The guides of a recipe as judges; a denoiser is loaded only where a hard guide needs one."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._bound: dict[Guide, Bound] = {}

    def __call__(self, text: str) -> list[Verdict]:
        """Every guide's verdict, in the recipe's order."""
        return [self._judge(guide, text) for guide in self.recipe.guides]

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


def holds(verdicts: list[Verdict]) -> bool:
    """Whether every hard guide is satisfied."""
    return all(verdict.status == "satisfied" for verdict in verdicts if verdict.strength == "guaranteed")


def check_file(recipe: Recipe, file: str, *, as_json: bool = False) -> int:
    """Print the verdicts on each line of a file that is not blank; 0 if all hold, else 1."""
    checker = Checker(recipe)
    count = held = 0
    with opened(file) as stream:
        for number, text in lines(stream, file):
            verdicts = checker(text)
            count, held = count + 1, held + holds(verdicts)
            if as_json:
                table = {"line": number, "text": text, "holds": holds(verdicts)}
                print(json.dumps(table | {"verdicts": [verdict_dict(v) for v in verdicts]}), flush=True)
            else:
                print(f"{number}: {text if len(text) <= 100 else text[:97] + '...'}")
                for verdict in verdicts:
                    about = f"{verdict.strength:<10}  {verdict.guide}  {evidence(verdict, text)}"
                    print(f"  {mark(verdict)} {about}".rstrip())
                sys.stdout.flush()
    if not count:
        raise InvalidRecipeError(
            f"{'standard input' if file == '-' else file} has no text: give one text a line"
        )
    print(f"{held} of {count} texts hold to every hard guide", file=sys.stderr)
    return 0 if held == count else 1


def lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank with their numbers, without line ends."""
    for number, raw in enumerate(stream, 1):
        try:
            text = raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InvalidRecipeError(f"{name}, line {number} is not UTF-8 text: save it as UTF-8") from error
        if text.strip():
            yield number, text


@contextmanager
def opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(file, "rb")  # noqa: SIM115
    except OSError as error:
        raise InvalidRecipeError(f"{file} cannot be read: {error.strerror or error}") from error
    with stream:
        yield stream
