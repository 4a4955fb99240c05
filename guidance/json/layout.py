"""White space between JSON's marks, and values written with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from redraft.denoiser.regex import compile_regex
from redraft.guidance.json.graph import Graph
from redraft.guidance.json.numbers import spelled
from redraft.guidance.json.text import quoted

#: compact and spaced are `json.dumps` with and without separators=(",", ":"), pretty is indent=2; free allows
#: nothing, a space, or a line break and up to 8 spaces anywhere.
Whitespace = Literal["compact", "spaced", "pretty", "free"]
WHITESPACE: tuple[Whitespace, ...] = ("compact", "spaced", "pretty", "free")
_FREE = r" ?|\n {0,8}"

#: Adds what may stand between two nodes.
Fill = Callable[[int, int], None]


class Layout:
    """JSON on a graph, in one style of white space; `depth` is how many arrays and objects are open."""

    def __init__(self, graph: Graph, whitespace: Whitespace) -> None:
        self.graph, self.whitespace = graph, whitespace

    def open(self, start: int, mark: str, depth: int) -> int:
        """The node behind `{` or `[` and the space that follows, before a first member."""
        return self._after(start, mark, "\n" + "  " * (depth + 1) if self.whitespace == "pretty" else "")

    def comma(self, start: int, depth: int) -> int:
        """The node behind a comma and its space, before the next member."""
        space = {"spaced": " ", "pretty": "\n" + "  " * (depth + 1)}.get(self.whitespace, "")
        return self._after(self._before(start), ",", space)

    def close(self, start: int, mark: str, depth: int, end: int) -> None:
        """`}` or `]` behind a last member."""
        space = "\n" + "  " * depth if self.whitespace == "pretty" else ""
        self.graph.text(self._before(start), (space + mark).encode(), end)

    def empty(self, start: int, marks: str, end: int) -> None:
        """`{}` or `[]`."""
        here = self._after(start, marks[0], "")
        self.graph.text(here, marks[1].encode(), end)

    def name(self, start: int, fill: Fill) -> int:
        """The node behind a property's name (which `fill` adds), the colon and its space."""
        here = self.graph.node()
        fill(start, here)
        return self._after(self._before(here), ":", "" if self.whitespace == "compact" else " ")

    def value(self, start: int, value: Any, depth: int, end: int) -> None:
        """Exactly this value."""
        if isinstance(value, dict):
            members = [
                lambda a, b, k=k, v=v: self.value(self._named(a, k), v, depth + 1, b)
                for k, v in value.items()
            ]
            self._members(start, "{}", members, depth, end)
        elif isinstance(value, list):
            items = [lambda a, b, v=v: self.value(a, v, depth + 1, b) for v in value]
            self._members(start, "[]", items, depth, end)
        else:
            self.graph.text(start, scalar(value), end)

    def _named(self, start: int, name: str) -> int:
        return self.name(start, lambda a, b: self.graph.text(a, quoted(name), b))

    def _members(self, start: int, marks: str, members: Sequence[Fill], depth: int, end: int) -> None:
        if not members:
            return self.empty(start, marks, end)
        here = self.open(start, marks[0], depth)
        for k, fill in enumerate(members):
            after = self.graph.node()
            fill(here, after)
            here = self.comma(after, depth) if k + 1 < len(members) else after
        return self.close(here, marks[1], depth, end)

    def _after(self, start: int, mark: str, space: str) -> int:
        here = self.graph.node()
        free = self.whitespace == "free"
        self.graph.text(start, (mark if free else mark + space).encode(), here)
        return self._before(here)

    def _before(self, start: int) -> int:
        if self.whitespace != "free":
            return start
        here = self.graph.node()
        self.graph.piece(start, compile_regex(_FREE), here)
        return here


def scalar(value: Any) -> bytes:
    """A string, number, boolean or null in its one spelling."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return {None: b"null", True: b"true", False: b"false"}[value]
    return spelled(value).encode()
