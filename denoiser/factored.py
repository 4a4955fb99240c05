"""Two automata followed side by side, where the table of both at once would be too large."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.graph import Graph, Lists, graph_of
from redraft.denoiser.joining import join
from redraft.denoiser.language import Language

Array = np.ndarray[Any, Any]


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
