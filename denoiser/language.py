"""A token automaton on a device, with one start state per row."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.edges import Edges, potentials
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.graph import Graph, Lists, graph_of, join
from redraft.denoiser.masses import Segments
from redraft.denoiser.refinement import distance

Array = np.ndarray[Any, Any]

#: States x classes up to which the factors of all moves are kept as a table.
_SMALL = 2**20


@dataclass(frozen=True, eq=False)
class Language:
    """Automata as tensors: q_{i+1} = delta[q_i, classes[v_i]], accepted if accept[q_L].

    `delta` [Q, C] int64, `classes` [V] int64, `accept` [Q] bool, `start` [B] int64 (one state per row, so
    that rows may follow different automata of one disjoint union). Build it with `Language.of`.
    """

    delta: Tensor
    classes: Tensor
    accept: Tensor
    start: Tensor

    @classmethod
    def of(
        cls, automatons: Sequence[Automaton], row: Sequence[int], device: torch.device | str = "cpu"
    ) -> Language:
        """Row b follows `automatons[row[b]]`, all over one vocabulary.

        Raises ValueError for no automaton, differing vocabularies or a row that names none.
        """
        if not automatons or any(not 0 <= r < len(automatons) for r in row):
            raise ValueError(f"rows {list(row)} name automata outside the {len(automatons)} given")
        if len({a.symbols for a in automatons}) > 1:
            raise ValueError(f"vocabularies differ: {[a.symbols for a in automatons]} tokens")
        joint = automatons[0].classes.astype(np.int64)
        for a in automatons[1:]:
            joint = np.unique(joint * a.delta.shape[1] + a.classes, return_inverse=True)[1].reshape(-1)
        _, first = np.unique(joint, return_index=True)
        offset = np.cumsum([0, *(a.states for a in automatons)])
        delta = np.concatenate(
            [a.delta[:, a.classes[first]] + o for a, o in zip(automatons, offset, strict=False)]
        )
        start = [int(offset[r]) + automatons[r].start for r in row]
        return cls(
            torch.tensor(delta, dtype=torch.int64, device=device),
            torch.tensor(joint, dtype=torch.int64, device=device),
            torch.tensor(np.concatenate([a.accept for a in automatons]), device=device),
            torch.tensor(start, dtype=torch.int64, device=device),
        )

    @property
    def states(self) -> int:
        """Q."""
        return len(self.delta)

    @property
    def width(self) -> int:
        """C, the number of token classes."""
        return self.delta.shape[1]

    def begin(self, start: Tensor) -> Language:
        """The same automata from other start states [B]."""
        moved = copy(self)
        object.__setattr__(moved, "start", start)
        small = ("_columns", "_tilt_columns") if self._is_small else ()
        for name in ("size", "segments", "edges", "live", "_tilt_table", *small):
            moved.__dict__[name] = getattr(self, name)
        return moved

    def moves(self, state: Tensor) -> Tensor:
        """The state after each class from the states [b]: [b, C]."""
        return self.delta.index_select(0, state)

    def automaton(self) -> Automaton:
        """The automaton that the first row follows, as one table."""
        every = torch.arange(self.states, device=self.start.device)
        parts = (self.classes, self.moves(every), self.accept)
        classes, delta, accept = (part.cpu().numpy() for part in parts)
        return Automaton(classes, delta, int(self.start[0]), accept)

    def columns(self, classes: Tensor) -> Tensor:
        """The state after one class from every state, for classes of any shape: [..., Q]."""
        return self._columns[classes]

    def tilts(self, state: Tensor, move: Tensor) -> Tensor:
        """exp(h(move) - h(state)) [b, C], the factor that `potential` h puts on the moves from states [b]."""
        if self._tilt_table is not None:
            return self._tilt_table.index_select(0, state)
        return _tilt(self.potential[move], self.potential[state][:, None])

    def column_tilts(self, classes: Tensor, move: Tensor) -> Tensor:
        """The same factor on the moves `columns(classes)`: [..., Q]."""
        if self._tilt_table is not None:
            return self._tilt_columns[classes]
        return _tilt(self.potential[move], self.potential)

    @property
    def _is_small(self) -> bool:
        return self.states * self.width <= _SMALL

    @cached_property
    def _tilt_table(self) -> Tensor | None:
        """`tilts` of all states [Q, C], where that is not too large to keep."""
        if not self._is_small:
            return None
        every = torch.arange(self.states, device=self.accept.device)
        return _tilt(self.potential[self.moves(every)], self.potential[:, None])

    @cached_property
    def _tilt_columns(self) -> Tensor:
        assert self._tilt_table is not None
        return self._tilt_table.T.contiguous()

    @cached_property
    def _columns(self) -> Tensor:
        return self.delta.T.contiguous()

    @cached_property
    def size(self) -> Tensor:
        """Number of tokens in each class [C]."""
        return torch.bincount(self.classes, minlength=self.width)

    @cached_property
    def segments(self) -> Segments:
        """The vocabulary's cut into classes and segments."""
        return Segments.of(self.classes, self.size)

    @property
    def potential(self) -> Tensor:
        """Rough log-probability [Q] float64 of finishing from each state, for even tokens; 0 in dead ends.

        h(q) = max over targets of log(tokens that lead there / V) + h(target). Sums are made of alpha(q) exp(h(q)) and
        beta(q) exp(-h(q)), which vary far less than alpha and beta where a language forces many tokens.
        """
        return self.edges.height

    @cached_property
    def graph(self) -> Graph:
        """The automata as a sparse graph."""
        delta, accept = self.delta.cpu().numpy(), self.accept.cpu().numpy()
        return graph_of(delta, accept, distance(delta.astype(np.int32), accept) >= 0)

    @cached_property
    def live(self) -> Tensor:
        """1 at states from which a word can be finished, 0 in dead ends: [Q] float64."""
        some = torch.zeros(self.states, dtype=torch.float64, device=self.accept.device)
        some[self.accept] = 1.0
        some[torch.from_numpy(np.unique(self.graph.out()[0])).to(some.device)] = 1.0
        return some

    @cached_property
    def edges(self) -> Edges:
        """The graph on the language's device."""
        return Edges(self.graph, self.accept.device, potentials(self.graph, self.size.cpu().numpy()))


@dataclass(frozen=True, eq=False)
class Factored(Language):
    """Two automata at once, without the table of their joint states by joint classes.

    `delta` is on the meta device: it has a shape and no numbers. `pair` [2, Q] names the states of either automaton,
    `of_class` [2, C] the classes, `number` [Q1 * Q2] the joint state; what has none is the last state, a dead end.
    """

    one: Tensor
    two: Tensor
    pair: Tensor
    of_class: Tensor
    number: Tensor
    links: Graph

    @classmethod
    def meet(
        cls,
        one: Automaton,
        two: Automaton,
        length: int,
        device: torch.device | str,
        budget: int,
    ) -> Factored | None:
        """Words of at most `length` symbols that are in both; None where there is none.

        Raises StateBudgetError past `budget` states.
        """
        one, two = one.minimise(), two.minimise()
        width = two.delta.shape[1]
        code = one.classes.astype(np.int64) * width + two.classes
        names, classes = np.unique(code, return_inverse=True)
        column1, column2 = np.divmod(names, width)
        left = graph_of(one.delta[:, column1], one.accept, one.remaining >= 0, column2)
        group = column2[left.members.items[left.members.first[:-1]]]
        joined = join(
            left, group, one.start, two.delta, two.accept, two.remaining >= 0, two.start, length, budget
        )
        if joined is None:
            raise StateBudgetError(
                f"{one.states} & {two.states} states need more than {budget} combined states; "
                "use fewer or smaller constraints",
                sizes=(one.states, two.states),
            )
        if not joined.graph.accept.any():
            return None
        dead = joined.graph.states
        number = np.full(one.states * two.states, dead, dtype=np.int64)
        number[joined.left * two.states + joined.right] = np.arange(dead)
        g = joined.graph

        def more(lists: Lists) -> Lists:
            return Lists(np.append(lists.first, lists.first[-1]), lists.items)

        links = replace(g, direct=more(g.direct), hubs=more(g.hubs), accept=np.append(g.accept, False))

        def tensor(array: Array) -> Tensor:
            return torch.tensor(array.astype(np.int64), device=device)

        return cls(
            torch.empty(dead + 1, len(names), device="meta"),
            tensor(classes.reshape(-1)),
            torch.tensor(links.accept, device=device),
            torch.zeros(1, dtype=torch.int64, device=device),
            tensor(one.delta),
            tensor(two.delta),
            tensor(np.stack([np.append(joined.left, 0), np.append(joined.right, 0)])),
            tensor(np.stack([column1, column2])),
            tensor(number),
            links,
        )

    @property
    def graph(self) -> Graph:
        """The automata as a sparse graph."""
        return self.links

    def moves(self, state: Tensor) -> Tensor:
        left, right = self.pair[:, state]
        after1 = self.one.index_select(0, left).index_select(1, self.of_class[0])
        after2 = self.two.index_select(0, right).index_select(1, self.of_class[1])
        move = self.number[after1 * len(self.two) + after2]
        return torch.where((state == self.states - 1)[:, None], self.states - 1, move)

    @property
    def _is_small(self) -> bool:
        return False

    def columns(self, classes: Tensor) -> Tensor:
        after1 = self._one_columns[self.of_class[0][classes]][..., self.pair[0]]
        after2 = self._two_columns[self.of_class[1][classes]][..., self.pair[1]]
        move = self.number[after1 * len(self.two) + after2]
        move[..., -1] = self.states - 1
        return move

    @cached_property
    def _one_columns(self) -> Tensor:
        return self.one.T.contiguous()

    @cached_property
    def _two_columns(self) -> Tensor:
        return self.two.T.contiguous()


def _tilt(after: Tensor, before: Tensor) -> Tensor:
    """exp(after - before). Only moves into dead ends are ever near the limit; they are multiplied by zero, and 0 * inf
    would be no number."""
    return (after - before).clamp_max(100.0).exp()


def reachable(language: Language, committed: Tensor) -> tuple[Tensor, Tensor]:
    """States that a row can be in, and those from which it can still finish: bool [L + 1, B, Q] each.

    `committed` [B, L] int64 holds the token of a settled position and -1 for an open one.
    """
    able = allowed_classes(language, committed).permute(1, 2, 0).to(torch.float32)  # [L, C, B]
    edges = language.edges.presence
    after = _finishing(language, able)
    length = len(able)
    before = torch.zeros_like(after)
    before[0].scatter_(0, language.start[None, :], True)
    for i in range(length):
        before[i + 1] = edges.forward(before[i].to(torch.float32), able[i]) > 0
    return before.transpose(1, 2), after.transpose(1, 2)


def _finishing(language: Language, able: Tensor) -> Tensor:
    """States from which a row can finish: bool [L + 1, Q, B], from the classes that positions may take [L, C, B]."""
    length, _, rows = able.shape
    after = language.accept.new_zeros(length + 1, language.states, rows)
    after[length] = language.accept[:, None]
    for i in range(length - 1, -1, -1):
        after[i] = language.edges.presence.backward(after[i + 1].to(torch.float32), able[i]) > 0
    return after


def allowed_classes(language: Language, committed: Tensor) -> Tensor:
    """Which classes each position may still take: bool [B, L, C]."""
    open_ = committed < 0
    held = language.classes[committed.clamp_min(0)]
    chosen = held[..., None] == torch.arange(language.width, device=held.device)
    return torch.where(open_[..., None], language.size > 0, chosen)


def feasible(language: Language, committed: Tensor) -> Tensor:
    """Whether each row has a completion in the language: bool [B]; `committed` [B, L] has -1 where open."""
    able = allowed_classes(language, committed).permute(1, 2, 0).to(torch.float32)
    finish = _finishing(language, able)[0]
    return finish.gather(0, language.start[None, :]).squeeze(0)


def shortest_canvas(language: Language) -> Tensor:
    """Fewest positions that each row needs when nothing is committed: int64 [B]; -1 where none will do."""
    source, pair = language.graph.out()
    target = language.graph.target[pair]
    steps = np.where(language.graph.accept, 0, -1)
    wave, step = np.flatnonzero(steps == 0), 0
    back = Lists.of(target, source, language.states)
    while len(wave):
        step += 1
        before = np.unique(back.at(wave)[0])
        wave = before[steps[before] < 0]
        steps[wave] = step
    return torch.from_numpy(steps).to(language.start.device)[language.start]
