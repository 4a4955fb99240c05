"""Whether there is a way at all: a graph's links without weights."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from redraft.denoiser.edges import Edges


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
