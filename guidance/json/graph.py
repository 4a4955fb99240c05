"""A byte language put together from texts and automata, made deterministic once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.automaton import STATE_BUDGET, Automaton
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.refinement import distance

_NONE = -1
Array = NDArray[np.int32]


class Graph:
    """A nondeterministic automaton over bytes: nodes joined by texts, by whole automata, or by nothing.

    Joining is cheap and `automaton` determinises everything together. JSON is nearly deterministic, so that
    most subsets hold one node; those are followed as arrays, the few others one by one.
    """

    def __init__(self) -> None:
        self._skips: list[list[int]] = []
        self._edges: list[tuple[int, int, int]] = []
        self._pieces: list[tuple[Automaton, int]] = []

    def node(self) -> int:
        """A new node."""
        self._skips.append([])
        return len(self._skips) - 1

    def skip(self, start: int, end: int) -> None:
        """Nothing may stand between two nodes."""
        self._skips[start].append(end)

    def text(self, start: int, raw: bytes, end: int) -> None:
        """`raw` may stand between two nodes."""
        here = start
        for k, byte in enumerate(raw):
            source = self.node()
            self.skip(here, source)
            here = end if k == len(raw) - 1 else self.node()
            self._edges.append((source, byte, here))
        if not raw:
            self.skip(start, end)

    def piece(self, start: int, language: Automaton, end: int) -> None:
        """Any word of `language` may stand between two nodes."""
        offset = len(self._skips)
        if offset + language.states > 8 * STATE_BUDGET:
            raise StateBudgetError(
                f"the schema needs more than {8 * STATE_BUDGET:,} parts: allow less depth, shorter strings "
                "or shorter arrays",
                sizes=(offset, language.states),
            )
        self._skips.extend([] for _ in range(language.states))
        self._pieces.append((language, offset))
        self.skip(start, offset + language.start)
        for state in np.flatnonzero(language.accept).tolist():
            self.skip(offset + state, end)

    def automaton(self, start: int, end: int) -> Automaton:
        """The words between two nodes, as the canonical minimal automaton; raises StateBudgetError."""
        classes, moves = self._table()
        return _determinise(classes, moves, _Closures(self._skips, moves, end), start)

    def _table(self) -> tuple[Array, Array]:
        """Byte classes [256] and moves [N, C], -1 where a node has none."""
        distinct = {id(language): language for language, _ in self._pieces}
        label = np.zeros(256, dtype=np.int64)
        for language in distinct.values():
            label = np.unique(label * 256 + language.classes, return_inverse=True)[1].reshape(-1)
        used = sorted({byte for _, byte, _ in self._edges})
        own = np.zeros(256, dtype=np.int64)
        own[used] = np.arange(1, len(used) + 1)
        _, first, classes = np.unique(label * 257 + own, return_index=True, return_inverse=True)
        classes = classes.reshape(-1)
        moves = np.full((len(self._skips), len(first)), _NONE, dtype=np.int32)
        tables = {key: _live(part)[:, part.classes[first]] for key, part in distinct.items()}
        for language, offset in self._pieces:
            rows = tables[id(language)]
            moves[offset : offset + len(rows)] = np.where(rows >= 0, rows + offset, _NONE)
        for source, byte, target in self._edges:
            moves[source, classes[byte]] = target
        return classes.astype(np.int32), moves


def _live(part: Automaton) -> Array:
    """Transitions [Q, C], -1 where they lead to a dead end."""
    alive = distance(part.delta, part.accept) >= 0
    return np.where(alive[part.delta], part.delta, _NONE)


class _Closures:
    """Sets of nodes that a text may be at, numbered; nodes that only skip are left out of them."""

    def __init__(self, skips: list[list[int]], moves: Array, end: int) -> None:
        self._skips, self._end = skips, end
        self._solid: NDArray[np.bool_] = np.any(moves >= 0, axis=1)
        self._sets: dict[tuple[int, ...], int] = {(): 0}
        self.members: list[tuple[int, ...]] = [()]
        self.of_node = np.full(len(moves), _NONE, dtype=np.int32)

    def accepting(self) -> NDArray[np.bool_]:
        return np.array([self._end in nodes for nodes in self.members])

    def of(self, nodes: Iterable[int]) -> int:
        """Number of the set of everything that `nodes` reach by skips."""
        found, todo = set(nodes), list(nodes)
        while todo:
            for target in self._skips[todo.pop()]:
                if target not in found:
                    found.add(target)
                    todo.append(target)
        kept = tuple(sorted(n for n in found if self._solid[n] or n == self._end))
        number = self._sets.setdefault(kept, len(self._sets))
        if number == len(self.members):
            self.members.append(kept)
        return number

    def follow(self, targets: Array) -> Array:
        """The set that each target node stands for; -1 stands for the empty set."""
        for node in np.unique(targets[targets >= 0]).tolist():
            if self.of_node[node] < 0:
                self.of_node[node] = self.of((node,))
        return np.where(targets >= 0, self.of_node[targets], 0)


def _determinise(classes: Array, moves: Array, sets: _Closures, start: int) -> Automaton:
    first, done = sets.of((start,)), 0
    rows: list[Array] = []
    while done < len(sets.members):
        if len(sets.members) > STATE_BUDGET:
            raise StateBudgetError(
                f"the schema needs more than {STATE_BUDGET:,} states: allow less depth, shorter strings or "
                "shorter arrays",
                sizes=(len(sets.members),),
            )
        layer = sets.members[done:]
        done += len(layer)
        block = np.zeros((len(layer), moves.shape[1]), dtype=np.int32)
        single = [k for k, nodes in enumerate(layer) if len(nodes) == 1]
        block[single] = sets.follow(moves[[layer[k][0] for k in single]])
        for k, nodes in enumerate(layer):
            if len(nodes) > 1:
                block[k] = _row(moves[list(nodes)], sets)
        rows.append(block)
    return Automaton(classes, np.concatenate(rows), first, sets.accepting()).minimise()


def _row(moves: Array, sets: _Closures) -> Array:
    """Where a set of several nodes leads: mostly one of them moves on a byte class."""
    count = (moves >= 0).sum(0)
    row = sets.follow(np.where(count == 1, moves.max(0), _NONE))
    for column in np.flatnonzero(count > 1).tolist():
        targets = moves[:, column]
        row[column] = sets.of(targets[targets >= 0].tolist())
    return row
