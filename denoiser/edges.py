"""A graph's links as sparse matrices on a device: the sums of one position are a few products."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redraft.denoiser.graph import Graph, Lists, by_tree

Array = np.ndarray[Any, Any]

#: Rounds after which the rough potentials are good enough.
_ROUNDS = 4_000
#: Sets x classes from which sets are summed by way of a binary tree over the classes.
_TREE = 200_000


@dataclass(frozen=True, eq=False)
class Edges:
    """A `Graph` on a device, with `potential` h [Q] (see `Language.potential`).

    `set_of`, `target` [U]; `pick` [J, C + N] sums the classes of a set (and the N `nodes` [N, C] of a tree over
    them); `out` [Q, U + H] and `hub` [H, U] hold a move's factor exp(h(target) - h(q)), in two parts where it goes
    through a hub; `back`, `user` are their transposes; `into` [Q, U] has a one where pair u leads to q. CSR, float64.
    """

    graph: Graph
    device: torch.device
    potential: Array

    @cached_property
    def height(self) -> Tensor:
        """`potential` on the device."""
        return torch.from_numpy(self.potential).to(self.device)

    @cached_property
    def presence(self) -> Presence:
        """The same links without factors, in float32."""
        return Presence(self)

    @cached_property
    def set_of(self) -> Tensor:
        return self._tensor(self.graph.set_of)

    @cached_property
    def target(self) -> Tensor:
        return self._tensor(self.graph.target)

    @cached_property
    def pairs(self) -> int:
        """U."""
        return len(self.graph.target)

    @property
    def links(self) -> int:
        """Terms of one position's sums."""
        g = self.graph
        return len(g.direct.items) + len(g.hubs.items) + len(g.inside.items)

    @cached_property
    def _hub_height(self) -> Array:
        """The greatest potential behind each hub [H]."""
        return _most(self.graph.inside, self.potential[self.graph.target])

    @cached_property
    def _links(self) -> tuple[Array, Array, Array]:
        g, h = self.graph, self.potential
        own, use = g.direct.owner, g.hubs.owner
        rows = np.concatenate([own, use])
        columns = np.concatenate([g.direct.items, self.pairs + g.hubs.items])
        factor = np.concatenate(
            [h[g.target[g.direct.items]] - h[own], self._hub_height[g.hubs.items] - h[use]]
        )
        return rows, columns, np.exp(factor)

    @cached_property
    def _inner(self) -> tuple[Array, Array, Array]:
        g = self.graph
        owner, items = g.inside.owner, g.inside.items
        return owner, items, np.exp(self.potential[g.target[items]] - self._hub_height[owner])

    @cached_property
    def out(self) -> Tensor:
        rows, columns, factor = self._links
        return self._sparse(rows, columns, factor, (self.graph.states, self.pairs + len(self.graph.inside)))

    @cached_property
    def back(self) -> Tensor:
        rows, columns, factor = self._links
        return self._sparse(columns, rows, factor, (self.pairs + len(self.graph.inside), self.graph.states))

    @cached_property
    def hub(self) -> Tensor:
        owner, items, factor = self._inner
        return self._sparse(owner, items, factor, (len(self.graph.inside), self.pairs))

    @cached_property
    def user(self) -> Tensor:
        owner, items, factor = self._inner
        return self._sparse(items, owner, factor, (self.pairs, len(self.graph.inside)))

    @cached_property
    def into(self) -> Tensor:
        count = np.arange(self.pairs)
        return self._sparse(self.graph.target, count, np.ones(self.pairs), (self.graph.states, self.pairs))

    @cached_property
    def tree(self) -> tuple[Lists, Lists] | None:
        """Nodes as lists of classes, and sets as lists of classes and (behind them) nodes; None: sets as they are."""
        g = self.graph
        return by_tree(g.members, self.classes) if len(g.members) * self.classes > _TREE else None

    @cached_property
    def classes(self) -> int:
        """C, as far as any set goes."""
        return int(self.graph.members.items.max(initial=-1)) + 1

    @cached_property
    def nodes(self) -> Tensor | None:
        if self.tree is None:
            return None
        lists = self.tree[0]
        return self._sparse(lists.owner, lists.items, np.ones(len(lists.items)), (len(lists), self.classes))

    @cached_property
    def pick(self) -> Tensor:
        lists = self.graph.members if self.tree is None else self.tree[1]
        width = self.classes + (0 if self.tree is None else len(self.tree[0]))
        return self._sparse(lists.owner, lists.items, np.ones(len(lists.items)), (len(lists), width))

    @cached_property
    def upwards(self) -> tuple[Tensor, Tensor | None, Tensor]:
        """From sets to their classes and nodes, from nodes to their classes, from pairs to their sets."""
        lists = self.graph.members if self.tree is None else self.tree[1]
        width = self.classes + (0 if self.tree is None else len(self.tree[0]))
        held = self._sparse(lists.items, lists.owner, np.ones(len(lists.items)), (width, len(lists)))
        below = None
        if self.tree is not None:
            nodes = self.tree[0]
            below = self._sparse(
                nodes.items, nodes.owner, np.ones(len(nodes.items)), (self.classes, len(nodes))
            )
        count = np.arange(self.pairs)
        sharing = self._sparse(self.graph.set_of, count, np.ones(self.pairs), (len(lists), self.pairs))
        return held, below, sharing

    def set_masses(self, mass: Tensor) -> Tensor:
        """Sums over each set [J, N] of class masses [C, N]."""
        mass = mass[: self.classes]
        if self.nodes is not None:
            mass = torch.cat([mass, self.nodes @ mass])
        return torch.as_tensor(self.pick @ mass)

    @cached_property
    def segments(self) -> dict[str, tuple[Tensor, Tensor]]:
        """(items, lengths) of each kind of list, for maxima and sums of logarithms."""
        g = self.graph
        lists = {
            "members": g.members if self.tree is None else self.tree[1],
            "direct": _joined(g.direct, g.hubs, self.pairs),
            "inside": g.inside,
            "users": Lists.of(g.hubs.items, g.hubs.owner, len(g.inside)),
            "sources": _joined(
                Lists.of(g.direct.items, g.direct.owner, self.pairs),
                Lists.of(g.inside.items, g.inside.owner, self.pairs),
                g.states,
            ),
            "arrivals": Lists.of(g.target, np.arange(self.pairs), g.states),
        } | ({"nodes": self.tree[0]} if self.tree is not None else {})
        return {
            name: (self._tensor(lst.items), self._tensor(np.diff(lst.first))) for name, lst in lists.items()
        }

    def _tensor(self, array: Array) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)).to(self.device)

    def _sparse(self, rows: Array, columns: Array, values: Array, shape: tuple[int, int]) -> Tensor:
        order = np.lexsort((columns, rows))
        bounds = np.searchsorted(rows[order], np.arange(shape[0] + 1))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            return torch.sparse_csr_tensor(
                torch.from_numpy(bounds.astype(np.int32)),
                torch.from_numpy(columns[order].astype(np.int32)),
                torch.from_numpy(np.ascontiguousarray(values[order], dtype=np.float64)),
                size=shape,
                check_invariants=False,
                device=self.device,
            )


class Presence:
    """Whether there is a way, as sums of ones that are never rounded to nothing: links of weight one, clamped."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges

        def ones(matrix: Tensor | None) -> Tensor | None:
            if matrix is None:
                return None
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
                return torch.sparse_csr_tensor(
                    matrix.crow_indices(),
                    matrix.col_indices(),
                    torch.ones_like(matrix.values(), dtype=torch.float32),
                    size=tuple(matrix.shape),
                    check_invariants=False,
                )

        self._nodes, self._pick = ones(edges.nodes), ones(edges.pick)
        self._out, self._back = ones(edges.out), ones(edges.back)
        self._hub, self._user, self._into = ones(edges.hub), ones(edges.user), ones(edges.into)
        self._held, self._below, self._sharing = (ones(m) for m in edges.upwards)

    def backward(self, after: Tensor, able: Tensor) -> Tensor:
        """Positive where a state [Q, B] can move to one that is positive in `after` [Q, B] by an able class [C, B]."""
        pairs = after.index_select(0, self._edges.target).mul_(self._sets(able))
        return self._out @ torch.cat([pairs, (self._hub @ pairs).clamp_max_(1.0)])  # type: ignore[operator]

    def forward(self, before: Tensor, able: Tensor) -> Tensor:
        """Positive where a state can be come to from one that is positive in `before`."""
        moved = self._back @ before  # type: ignore[operator]
        count = self._edges.pairs
        pairs = (moved[:count] + self._user @ moved[count:]).clamp_max_(1.0).mul_(self._sets(able))  # type: ignore[operator]
        return self._into @ pairs  # type: ignore[operator]

    def classes(self, before: Tensor, after: Tensor, width: int) -> Tensor:
        """Classes that lead from a state of `before` [Q, B] to one of `after` [Q, B], both bool: bool [C, B]."""
        moved = self._back @ before.to(torch.float32)  # type: ignore[operator]
        count = self._edges.pairs
        pairs = (moved[:count] + self._user @ moved[count:]).clamp_max_(1.0)  # type: ignore[operator]
        pairs.mul_(after.to(torch.float32).index_select(0, self._edges.target))
        found = self._held @ (self._sharing @ pairs).clamp_max_(1.0)  # type: ignore[operator]
        size = self._edges.classes
        if self._below is not None:
            found = found[:size] + self._below @ found[size:].clamp_max_(1.0)
        return torch.nn.functional.pad(found > 0, (0, 0, 0, width - size))

    def _sets(self, able: Tensor) -> Tensor:
        able = able[: self._edges.classes]
        if self._nodes is not None:
            able = torch.cat([able, self._nodes @ able])
        return (self._pick @ able).clamp_max_(1.0).index_select(0, self._edges.set_of)  # type: ignore[operator]


def potentials(graph: Graph, size: Array) -> Array:
    """Rough log-probability [Q] of finishing from each state, for even tokens: max over pairs, 0 in dead ends."""
    total = max(int(size.sum()), 1)
    held = np.add.reduceat(np.append(size[graph.members.items], 0), graph.members.first[:-1]) if len(
        graph.members
    ) else np.zeros(0)  # fmt: skip
    with np.errstate(divide="ignore"):
        gain = np.log(held / total)[graph.set_of]
    best = np.where(graph.accept, 0.0, -np.inf)
    for _ in range(_ROUNDS):
        pair = gain + best[graph.target]
        new = np.maximum(best, _most(graph.direct, pair))
        if len(graph.inside):
            new = np.maximum(new, _most(graph.hubs, _most(graph.inside, pair)))
        if np.array_equal(new, best):
            break
        best = new
    return np.where(np.isfinite(best), best, 0.0)


def _most(lists: Lists, values: Array) -> Array:
    """The greatest value in each list; -inf in an empty one."""
    result = np.full(len(lists), -np.inf)
    some = np.flatnonzero(np.diff(lists.first))
    if len(some):
        result[some] = np.maximum.reduceat(values[lists.items], lists.first[some])
    return result


def _joined(one: Lists, two: Lists, offset: int) -> Lists:
    owner = np.concatenate([one.owner, two.owner])
    return Lists.of(owner, np.concatenate([one.items, two.items + offset]), len(one))
