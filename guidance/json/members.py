"""Arrays and objects of values, and values of any kind, on a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redraft.denoiser.automaton import Automaton
from redraft.guidance.json.layout import Fill, Layout
from redraft.guidance.json.text import quoted, scalars


@dataclass(frozen=True)
class Member:
    """A property: its name, whether it must be there, its value."""

    name: str
    required: bool
    value: Fill


def write_object(
    layout: Layout, start: int, members: Sequence[Member], least: int, most: int | None, depth: int, end: int
) -> None:
    """Objects of these properties in this order, `least` to `most` of them, the optional ones there or not."""
    graph = layout.graph
    cap = max(least, 1 if most is None else most + 1)  # counts from here on are alike
    still = [any(m.required for m in members[k:]) for k in range(len(members) + 1)]
    if not still[0] and least == 0:
        layout.empty(start, "{}", end)
    if not members or most == 0:
        return
    nodes: dict[tuple[int, int, bool], int] = {}
    todo: list[tuple[int, int, bool]] = []

    def node(k: int, count: int, begun: bool) -> int:
        """Where the name of property k, or of a later one, may begin; or (`begun`) a value is complete and
        properties from k on may follow."""
        if (k, count, begun) not in nodes:
            nodes[k, count, begun] = graph.node()
            todo.append((k, count, begun))
        return nodes[k, count, begun]

    graph.skip(layout.open(start, "{", depth), node(0, 0, False))
    while todo:
        k, count, begun = todo.pop()
        here = nodes[k, count, begun]
        if begun:
            if count >= least and not still[k]:
                layout.close(here, "}", depth, end)
            if k < len(members):
                graph.skip(layout.comma(here, depth), node(k, count, False))
            continue
        member, reached = members[k], min(count + 1, cap)
        if most is None or reached <= most:
            raw = quoted(member.name)
            value = layout.name(here, lambda a, b, raw=raw: graph.text(a, raw, b))  # type: ignore[misc]
            member.value(value, node(k + 1, reached, True))
        if not member.required and k + 1 < len(members):
            graph.skip(here, node(k + 1, count, False))


def write_array(
    layout: Layout,
    start: int,
    item: Callable[[int], Fill],
    distinct: int,
    least: int,
    most: int | None,
    depth: int,
    end: int,
) -> None:
    """Arrays of `least` to `most` items; items from number `distinct` on are alike."""
    graph = layout.graph
    if least == 0:
        layout.empty(start, "[]", end)
    if most == 0:
        return
    turns = max(least, distinct + 1) if most is None else most
    here = layout.open(start, "[", depth)
    for k in range(turns):
        after = graph.node()
        item(min(k, distinct))(here, after)
        if k + 1 >= least:
            layout.close(after, "]", depth, end)
        following = layout.comma(after, depth) if k + 1 < turns or most is None else -1
        if k + 1 == turns and most is None:
            graph.skip(following, here)
        here = following


def write_any(
    layout: Layout, start: int, left: int, depth: int, end: int, *, full: bool = False, many: bool = False
) -> None:
    """Any value that nests at most `left` deep; `full`: every spelling. Unless `many`, an object has at most
    one property, since no finite automaton sees that the names of several differ."""
    texts = scalars(full)
    for language in texts:
        layout.graph.piece(start, language, end)
    if left == 0:
        return

    def value(a: int, b: int) -> None:
        write_any(layout, a, left - 1, depth + 1, b, full=full, many=many)

    write_array(layout, start, lambda _: value, 0, 0, None, depth, end)
    write_free_object(layout, start, texts[0], value, 0, None if many else 1, depth, end)


def write_free_object(
    layout: Layout,
    start: int,
    name: Automaton,
    value: Fill,
    least: int,
    most: int | None,
    depth: int,
    end: int,
) -> None:
    """Objects of `least` to `most` (1, or None: any number of) properties whose names are in `name`."""
    if least == 0:
        layout.empty(start, "{}", end)
    if most == 0:
        return
    first, after = layout.open(start, "{", depth), layout.graph.node()
    value(layout.name(first, lambda a, b: layout.graph.piece(a, name, b)), after)
    layout.close(after, "}", depth, end)
    if most is None:
        layout.graph.skip(layout.comma(after, depth), first)
