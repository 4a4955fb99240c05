"""Forward and backward sums over an automaton, with and without logarithms.

beta_L = 1[accept];  beta_i(q) = sum_c P_i(c) beta_{i+1}(delta[q, c])
alpha_0 = 1[start];  alpha_{i+1}(q') = sum_{q, c: delta[q, c] = q'} alpha_i(q) P_i(c)

States come first and rows last ([Q, B]), so that a gather of states moves whole lines of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.edges import Edges
from redraft.denoiser.language import Language

#: Most nats that alpha's and beta's scales at one position, or across one move, may exceed log Z by; what
#: underflows then weighs under 1e-30.
_CONTRAST = 600.0
_TINY = 1e-300
#: Pairs x rows x positions up to which their class masses are gathered at once.
_AT_ONCE = 1_000_000
#: Links of a graph from which committed positions are followed one by one.
_LARGE = 20_000


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages value * exp(scale + shift), or exp(value + scale + shift) when `logarithmic`.

    `value` [L + 1, Q, B], `scale` [L + 1, B], `shift` [Q], float64.
    """

    value: Tensor
    scale: Tensor
    shift: Tensor
    logarithmic: bool

    def log(self) -> Tensor:
        """log message [L + 1, Q, B]; -inf where it is impossible."""
        value = self.value if self.logarithmic else self.value.log()
        return value + self.scale[:, None, :] + self.shift[:, None]


def plain(language: Language, log_mass: Tensor, held: Tensor | None = None) -> tuple[Messages, Messages]:
    """alpha and beta by scaled sums of class log-masses [L, C, B]; see `is_sound`.

    `held` [L, B] names the class of a committed position, -1 for an open one. Of a large language a committed position
    is one move from each state and no sum.
    """
    edges = language.edges
    mass = log_mass.exp()
    length, width, rows = mass.shape
    by_set = edges.set_masses(mass.transpose(0, 1).reshape(width, length * rows))
    by_set = by_set.view(-1, length, rows).transpose(0, 1)
    at_once = length * rows * edges.pairs <= _AT_ONCE
    pairs = list(by_set.index_select(1, edges.set_of) if at_once else by_set)
    moves: list[_Moves | None] = [None] * length
    if held is not None and edges.links >= _LARGE:
        moves = [_Moves.of(language, row) for row in held]
    return _forward(language, pairs, rows, moves), _backward(language, pairs, rows, moves)


@dataclass(frozen=True, eq=False)
class _Moves:
    """Rows `done` [d] whose position is committed, the state that follows each [Q, d] and the move's factor; `open`."""

    done: Tensor
    open: Tensor
    after: Tensor
    factor: Tensor

    @staticmethod
    def of(language: Language, held: Tensor) -> _Moves | None:
        done = (held >= 0).nonzero().squeeze(1)
        if not len(done):
            return None
        after = language.columns(held[done])
        factor = language.column_tilts(held[done], after)
        return _Moves(done, (held < 0).nonzero().squeeze(1), after.T.contiguous(), factor.T.contiguous())


def is_sound(alpha: Messages, beta: Messages, log_z: Tensor) -> Tensor:
    """Rows [B] whose plain sums have lost nothing that counts.

    A product alpha_i(q) P_i(c) beta_{i+1}(q') is lost to underflow, be it P_i(c) alone, only where it is 300 decimal
    orders below the largest alpha_i times the largest beta_{i+1}; how far these lie above Z bounds what all lost paths
    could weigh together.
    """
    across = torch.maximum(beta.scale[:-1], beta.scale[1:])
    contrast = alpha.scale[:-1] + across - log_z
    return (contrast < _CONTRAST).all(0) & (alpha.scale[-1] + beta.scale[-1] - log_z < _CONTRAST)


def _backward(language: Language, mass: list[Tensor], rows: int, moves: Sequence[_Moves | None]) -> Messages:
    length = len(mass)
    value = language.potential.new_empty(length + 1, language.states, rows)
    scale = value.new_ones(length + 1, rows)
    value[length] = language.accept[:, None].to(value.dtype)
    for i in range(length - 1, -1, -1):
        move, later = moves[i], value[i + 1]
        if move is None:
            _pull(language.edges, later, mass[i], value[i])
        else:
            value[i][:, move.done] = later[:, move.done].gather(0, move.after).mul_(move.factor)
            if len(move.open):
                some = value.new_empty(language.states, len(move.open))
                _pull(language.edges, later[:, move.open], mass[i][:, move.open], some)
                value[i][:, move.open] = some
        torch.amax(value[i], 0, out=scale[i])
        value[i].div_(scale[i].clamp_min_(_TINY))
    return Messages(value, scale.log().flip(0).cumsum(0).flip(0), language.potential, False)


def _pull(edges: Edges, later: Tensor, mass: Tensor, out: Tensor) -> None:
    """beta_i [Q, B] from beta_{i+1} and the masses of sets or pairs."""
    moved = later.new_empty(edges.pairs + len(edges.graph.inside), later.shape[1])
    own, hubs = moved[: edges.pairs], moved[edges.pairs :]
    torch.index_select(later, 0, edges.target, out=own)
    own.mul_(_of_pairs(mass, edges))
    if len(hubs):
        torch.addmm(hubs, edges.hub, own, beta=0.0, out=hubs)
    torch.addmm(out, edges.out, moved, beta=0.0, out=out)


def _forward(language: Language, mass: list[Tensor], rows: int, moves: Sequence[_Moves | None]) -> Messages:
    length = len(mass)
    value = language.potential.new_zeros(length + 1, language.states, rows)
    scale = value.new_ones(length + 1, rows)
    value[0].scatter_(0, language.start[None, :], 1.0)
    for i in range(length):
        move, before = moves[i], value[i]
        if move is None:
            _push(language.edges, before, mass[i], value[i + 1])
        else:
            went = before[:, move.done].mul_(move.factor)
            value[i + 1][:, move.done] = torch.zeros_like(went).scatter_add_(0, move.after, went)
            if len(move.open):
                some = value.new_empty(language.states, len(move.open))
                _push(language.edges, before[:, move.open], mass[i][:, move.open], some)
                value[i + 1][:, move.open] = some
            value[i + 1].mul_(language.live[:, None])
        torch.amax(value[i + 1], 0, out=scale[i + 1])
        value[i + 1].div_(scale[i + 1].clamp_min_(_TINY))
    logs = scale.log()
    logs[0] = language.potential[language.start]
    return Messages(value, logs.cumsum(0), -language.potential, False)


def _push(edges: Edges, before: Tensor, mass: Tensor, out: Tensor) -> None:
    """alpha_{i+1} [Q, B] from alpha_i and the masses of sets or pairs."""
    moved = before.new_empty(edges.pairs + len(edges.graph.inside), before.shape[1])
    own, hubs = moved[: edges.pairs], moved[edges.pairs :]
    torch.addmm(moved, edges.back, before, beta=0.0, out=moved)
    if len(hubs):
        torch.addmm(own, edges.user, hubs, out=own)
    own.mul_(_of_pairs(mass, edges))
    torch.addmm(out, edges.into, own, beta=0.0, out=out)


def _of_pairs(mass: Tensor, edges: Edges) -> Tensor:
    return mass if len(mass) == edges.pairs else mass.index_select(0, edges.set_of)


def best_ahead(language: Language, value: Tensor) -> Tensor:
    """Best log-probability of finishing from each state [L + 1, Q, B]: max for sum, from class values [L, C, B]."""
    return _walk_back(language, value, _greatest)


def log_backward(language: Language, log_mass: Tensor) -> Messages:
    """beta by log-sum-exp from class log-masses [L, C, B]: slower, exact over any range."""
    value = _walk_back(language, log_mass, _log_sum)
    return Messages(
        value, value.new_zeros(len(value), value.shape[2]), value.new_zeros(language.states), True
    )


def log_forward(language: Language, log_mass: Tensor) -> Messages:
    """alpha by log-sum-exp from class log-masses [L, C, B]: slower, exact over any range."""
    edges = language.edges
    lists = edges.segments
    length, _, rows = log_mass.shape
    value = log_mass.new_full((length + 1, language.states, rows), -torch.inf)
    value[0].scatter_(0, language.start[None, :], 0.0)
    for i in range(length):
        source = torch.cat([value[i], _log_sum(value[i], *lists["users"])])
        pair = _log_sum(source, *lists["sources"]) + _by_set(edges, log_mass[i], _log_sum)
        value[i + 1] = _log_sum(pair, *lists["arrivals"])
    return Messages(value, value.new_zeros(length + 1, rows), value.new_zeros(language.states), True)


def _walk_back(language: Language, value: Tensor, over: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """[L + 1, Q, B] from class values [L, C, B] in logarithms, joined by `over` (a maximum, a sum of exponentials)."""
    edges = language.edges
    lists = edges.segments
    length, _, rows = value.shape
    ahead = value.new_empty(length + 1, language.states, rows)
    ahead[length] = torch.where(language.accept, 0.0, -torch.inf).to(value.dtype)[:, None]
    for i in range(length - 1, -1, -1):
        pair = ahead[i + 1].index_select(0, edges.target) + _by_set(edges, value[i], over)
        ahead[i] = over(torch.cat([pair, over(pair, *lists["inside"])]), *lists["direct"])
    return ahead


def _by_set(edges: Edges, value: Tensor, over: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """Values of the pairs [U, B] from class values [C, B]."""
    value = value[: edges.classes]
    if "nodes" in edges.segments:
        value = torch.cat([value, over(value, *edges.segments["nodes"])])
    return over(value, *edges.segments["members"]).index_select(0, edges.set_of)


def _greatest(values: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
    """The greatest of values[items] in each run of `lengths` [N]: [N, B]; -inf for an empty one."""
    if not len(items):
        return values.new_full((len(lengths), values.shape[1]), -torch.inf)
    return _most(values.index_select(0, items), lengths)


def _most(chosen: Tensor, lengths: Tensor) -> Tensor:
    return torch.segment_reduce(chosen, "max", lengths=lengths, axis=0, unsafe=True, initial=-torch.inf)


def _log_sum(values: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
    """log sum exp of values[items] in each run of `lengths` [N]: [N, B]; -inf for an empty one."""
    if not len(items):
        return values.new_full((len(lengths), values.shape[1]), -torch.inf)
    chosen = values.index_select(0, items)
    top = _most(chosen, lengths)
    shift = torch.where(top > -torch.inf, top, 0.0)
    owner = torch.repeat_interleave(lengths, output_size=len(items))
    near = chosen.sub_(shift.index_select(0, owner)).exp_()
    total = torch.segment_reduce(near, "sum", lengths=lengths, axis=0, unsafe=True, initial=0.0)
    return total.log_().add_(shift)
