"""A token automaton on a device, with one start state per row."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.edges import Edges, potentials
from redraft.denoiser.graph import Graph, Lists, graph_of
from redraft.denoiser.masses import Segments
from redraft.denoiser.presence import Presence
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

    @property
    def presence(self) -> Presence:
        """The graph's links without factors."""
        return self.edges.presence

    @cached_property
    def live(self) -> Tensor:
        """1 at states from which a word can be finished, 0 in dead ends: [Q] float64."""
        g = self.graph
        moving = (np.diff(g.direct.first) > 0) | (np.diff(g.hubs.first) > 0)
        return torch.from_numpy((moving | g.accept).astype(np.float64)).to(self.accept.device)

    @cached_property
    def edges(self) -> Edges:
        """The graph on the language's device."""
        return Edges(self.graph, self.accept.device, potentials(self.graph, self.size.cpu().numpy()))


def _tilt(after: Tensor, before: Tensor) -> Tensor:
    """exp(after - before). Only moves into dead ends are ever near the limit; they are multiplied by zero, and 0 * inf
    would be no number."""
    return (after - before).clamp_max(100.0).exp()


def reachable(language: Language, committed: Tensor) -> tuple[Tensor, Tensor]:
    """States that a row can be in, and those from which it can still finish: bool [L + 1, B, Q] each.

    `committed` [B, L] int64 holds the token of a settled position and -1 for an open one.
    """
    able = allowed_classes(language, committed).permute(1, 2, 0).to(torch.float32)  # [L, C, B]
    edges = language.presence
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
        after[i] = language.presence.backward(after[i + 1].to(torch.float32), able[i]) > 0
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


def filled_canvases(language: Language, most: int) -> list[int]:
    """The numbers of positions from 1 to `most`, descending, that the first row can fill exactly."""
    blank = torch.full((1, most), -1, device=language.start.device)
    able = allowed_classes(language, blank).permute(1, 2, 0).to(torch.float32)
    finish = _finishing(language, able)[:most, language.start[0], 0]
    return [most - k for k in finish.nonzero().squeeze(1).tolist()]
