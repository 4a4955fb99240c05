"""Any JSON value, to a bounded depth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.json.graph import Graph
from redraft.guidance.json.layout import WHITESPACE, Layout, Whitespace
from redraft.guidance.json.members import write_any
from redraft.guidance.json.schema import check_depth, room
from redraft.guidance.json.text import lexemes, parse


@dataclass(frozen=True)
class Json(HardGuide):
    """The text is one JSON value in which at most `max_depth` arrays and objects stand within each other.

    Strings and numbers are free; names in an object may repeat, as JSON allows. `whitespace` as `JsonSchema`
    has it: what is written keeps to it, the check takes any. States double with the depth: 3 needs 622.
    """

    name: ClassVar[str] = "json"
    max_depth: int = 3
    whitespace: Whitespace = "compact"

    def __post_init__(self) -> None:
        check_depth(self.max_depth)
        if self.whitespace not in WHITESPACE:
            raise InvalidGuideError(f"whitespace is {self.whitespace!r}: use {', '.join(WHITESPACE)}")

    def language(self, scene: Scene) -> Automaton:
        language = _texts(self.max_depth, self.whitespace)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def outer(self, scene: Scene) -> Automaton:
        return lift(lexemes(), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def room(self) -> int | None:
        return room(_texts(self.max_depth, self.whitespace))

    def check(self, text: str) -> Verdict:
        try:
            depth = _depth(parse(text, unique=False))
        except ValueError as wrong:
            return self.verdict(False, note=f"not JSON: {wrong}")
        except RecursionError:
            return self.verdict(False, note=f"nested deeper than {self.max_depth}")
        return self.verdict(depth <= self.max_depth, note=f"depth {depth}")

    def __str__(self) -> str:
        return f"Json({self.max_depth})"


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)


@lru_cache(maxsize=16)
def _texts(max_depth: int, whitespace: Whitespace) -> Automaton:
    graph = Graph()
    start, end = graph.node(), graph.node()
    write_any(Layout(graph, whitespace), start, max_depth, 0, end, full=True, many=True)
    return graph.automaton(start, end)
