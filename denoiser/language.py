"""A token automaton on a device, with one start state per row."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.masses import Segments
from redraft.denoiser.refinement import distance

Array = np.ndarray[Any, Any]


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
        moved = Language(self.delta, self.classes, self.accept, start)
        for name in ("size", "segments", "potential", "tilt", "edges"):
            moved.__dict__[name] = getattr(self, name)
        return moved

    @cached_property
    def size(self) -> Tensor:
        """Number of tokens in each class [C]."""
        return torch.bincount(self.classes, minlength=self.width)

    @cached_property
    def segments(self) -> Segments:
        """The vocabulary's cut into classes and segments."""
        return Segments.of(self.classes, self.size)

    @cached_property
    def potential(self) -> Tensor:
        """Rough log-probability [Q] float64 of finishing from each state, for even tokens; 0 in dead ends.

        h(q) = max_c log(size_c / V) + h(delta[q, c]). Sums are made of alpha(q) exp(h(q)) and
        beta(q) exp(-h(q)), which vary far less than alpha and beta where a language forces many tokens.
        """
        delta, size = self.delta.cpu().numpy(), self.size.cpu().numpy()
        with np.errstate(divide="ignore"):
            gain = np.log(size / max(size.sum(), 1))
        best = np.where(self.accept.cpu().numpy(), 0.0, -np.inf)
        for _ in range(len(delta)):
            new = np.maximum(best, (best[delta] + gain).max(1, initial=-np.inf))
            if np.array_equal(new, best):
                break
            best = new
        return torch.from_numpy(np.where(np.isfinite(best), best, 0.0)).to(self.delta.device)

    @cached_property
    def tilt(self) -> Tensor:
        """exp(h(delta[q, c]) - h(q)) [Q, C], the factor that `potential` h puts on a move."""
        return (self.potential[self.delta] - self.potential[:, None]).exp()

    @cached_property
    def edges(self) -> Edges:
        """Distinct (class, next state) pairs and the sparse sums over them."""
        return Edges.of(self)


@dataclass(frozen=True, eq=False)
class Edges:
    """Distinct live (class, next state) pairs u, shared by all states that have them.

    `class_of`, `target` [U]; `out` [Q, U] has the move's `Language.tilt` where state q has pair u, `back` is
    its transpose, and `into` [Q, U] has a one where u leads to q (sparse CSR, float64). Pairs into dead ends
    are left out.
    """

    class_of: Tensor
    target: Tensor
    out: Tensor
    back: Tensor
    into: Tensor

    @staticmethod
    def of(language: Language) -> Edges:
        delta = language.delta.cpu().numpy()
        live = distance(delta, language.accept.cpu().numpy()) >= 0
        source, column = np.nonzero(live[delta])
        code = column * np.int64(len(delta)) + delta[source, column]
        pairs, pair = np.unique(code, return_inverse=True)
        class_of, target = np.divmod(pairs, len(delta))
        number = np.arange(len(pairs))
        factor = language.tilt.cpu().numpy()[source, column]
        device = language.delta.device

        def sparse(rows: Array, columns: Array, values: Array, shape: tuple[int, int]) -> Tensor:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
                order = np.lexsort((columns, rows))
                bounds = np.searchsorted(rows[order], np.arange(shape[0] + 1))
                return torch.sparse_csr_tensor(
                    torch.from_numpy(bounds.astype(np.int32)),
                    torch.from_numpy(columns[order].astype(np.int32)),
                    torch.from_numpy(values[order].astype(np.float64)),
                    size=shape,
                    check_invariants=False,
                    device=device,
                )

        states, count = len(delta), len(pairs)
        return Edges(
            torch.from_numpy(class_of).to(device),
            torch.from_numpy(target).to(device),
            sparse(source, pair.reshape(-1), factor, (states, count)),
            sparse(pair.reshape(-1), source, factor, (count, states)),
            sparse(target, number, np.ones(count), (states, count)),
        )


def reachable(language: Language, committed: Tensor) -> tuple[Tensor, Tensor]:
    """States that a row can be in, and those from which it can still finish: bool [L + 1, B, Q] each.

    `committed` [B, L] int64 holds the token of a settled position and -1 for an open one.
    """
    rows, length = committed.shape
    allowed = allowed_classes(language, committed)
    forward = language.accept.new_zeros(length + 1, rows, language.states)
    backward = torch.zeros_like(forward)
    forward[0].scatter_(1, language.start[:, None], True)
    backward[length] = language.accept
    spread = language.delta.reshape(1, -1).expand(rows, -1)
    for i in range(length):
        moves = (forward[i][:, :, None] & allowed[:, i, None, :]).reshape(rows, -1)
        forward[i + 1] = (
            torch.zeros_like(forward[i], dtype=torch.uint8).scatter_reduce_(
                1, spread, moves.to(torch.uint8), "amax"
            )
            > 0
        )
    for i in range(length - 1, -1, -1):
        backward[i] = (backward[i + 1][:, language.delta] & allowed[:, i, None, :]).any(-1)
    return forward, backward


def allowed_classes(language: Language, committed: Tensor) -> Tensor:
    """Which classes each position may still take: bool [B, L, C]."""
    open_ = committed < 0
    held = language.classes[committed.clamp_min(0)]
    chosen = torch.nn.functional.one_hot(held, language.width).bool()
    return torch.where(open_[..., None], language.size > 0, chosen)


def feasible(language: Language, committed: Tensor) -> Tensor:
    """Whether each row has a completion in the language: bool [B]; `committed` [B, L] has -1 where open."""
    allowed = allowed_classes(language, committed)
    finish = language.accept.expand(len(committed), -1)
    for i in range(committed.shape[1] - 1, -1, -1):
        finish = (finish[:, language.delta] & allowed[:, i, None, :]).any(-1)
    return finish.gather(1, language.start[:, None]).squeeze(1)


def shortest_canvas(language: Language) -> Tensor:
    """Fewest positions that each row needs when nothing is committed: int64 [B]; -1 where none will do."""
    steps = distance(language.delta.cpu().numpy(), language.accept.cpu().numpy())
    return torch.from_numpy(steps).to(language.start.device)[language.start]
