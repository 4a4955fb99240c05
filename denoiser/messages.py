"""Forward and backward sums over an automaton, with and without logarithms.

beta_L = 1[accept];  beta_i(q) = sum_c P_i(c) beta_{i+1}(delta[q, c])
alpha_0 = 1[start];  alpha_{i+1}(q') = sum_{q, c: delta[q, c] = q'} alpha_i(q) P_i(c)

States come first and rows last ([Q, B]), so that a gather of states moves whole lines of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.edges import Edges
from redraft.denoiser.language import Language

#: Class probabilities below this (nats) are left to the logarithmic sums.
_LEAST_MASS = -200.0
#: Most nats that scale(alpha_i) + scale(beta_i) may exceed log Z by; what underflows then weighs under 1e-30.
_CONTRAST = 600.0
_TINY = 1e-300
#: Pairs x rows x positions up to which their class masses are gathered at once.
_AT_ONCE = 1_000_000


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


def plain(language: Language, log_mass: Tensor) -> tuple[Messages, Messages]:
    """alpha and beta by scaled sums of class log-masses [L, C, B]; see `is_sound`."""
    edges = language.edges
    mass = log_mass.exp()
    length, width, rows = mass.shape
    by_set = edges.set_masses(mass.transpose(0, 1).reshape(width, length * rows))
    by_set = by_set.view(-1, length, rows).transpose(0, 1)
    at_once = length * rows * edges.pairs <= _AT_ONCE
    pairs = list(by_set.index_select(1, edges.set_of) if at_once else by_set)
    return _forward(language, pairs, rows), _backward(language, pairs, rows)


def has_plain_masses(log_mass: Tensor) -> Tensor:
    """Rows [B] in which every possible class is likely enough for `plain`."""
    return log_mass.masked_fill(log_mass == -torch.inf, 0.0).amin((0, 1)) > _LEAST_MASS


def is_sound(alpha: Messages, beta: Messages, log_z: Tensor) -> Tensor:
    """Rows [B] whose plain sums have lost nothing that counts.

    A path is lost to underflow only where its weight is 300 decimal orders below alpha's or beta's largest
    at one position; how far these lie above Z bounds what all such paths could weigh together.
    """
    return (alpha.scale + beta.scale - log_z < _CONTRAST).all(0)


def _backward(language: Language, mass: list[Tensor], rows: int) -> Messages:
    edges, length = language.edges, len(mass)
    value = language.potential.new_empty(length + 1, language.states, rows)
    scale = value.new_ones(length + 1, rows)
    moved = value.new_empty(edges.pairs + len(edges.graph.inside), rows)
    own, hubs = moved[: edges.pairs], moved[edges.pairs :]
    value[length] = language.accept[:, None].to(value.dtype)
    for i in range(length - 1, -1, -1):
        torch.index_select(value[i + 1], 0, edges.target, out=own)
        own.mul_(_of_pairs(mass[i], edges))
        if len(hubs):
            torch.addmm(hubs, edges.hub, own, beta=0.0, out=hubs)
        torch.addmm(value[i], edges.out, moved, beta=0.0, out=value[i])
        torch.amax(value[i], 0, out=scale[i])
        value[i].div_(scale[i].clamp_min_(_TINY))
    return Messages(value, scale.log().flip(0).cumsum(0).flip(0), language.potential, False)


def _forward(language: Language, mass: list[Tensor], rows: int) -> Messages:
    edges, length = language.edges, len(mass)
    value = language.potential.new_zeros(length + 1, language.states, rows)
    scale = value.new_ones(length + 1, rows)
    moved = value.new_empty(edges.pairs + len(edges.graph.inside), rows)
    own, hubs = moved[: edges.pairs], moved[edges.pairs :]
    value[0].scatter_(0, language.start[None, :], 1.0)
    for i in range(length):
        torch.addmm(moved, edges.back, value[i], beta=0.0, out=moved)
        if len(hubs):
            torch.addmm(own, edges.user, hubs, out=own)
        own.mul_(_of_pairs(mass[i], edges))
        torch.addmm(value[i + 1], edges.into, own, beta=0.0, out=value[i + 1])
        torch.amax(value[i + 1], 0, out=scale[i + 1])
        value[i + 1].div_(scale[i + 1].clamp_min_(_TINY))
    logs = scale.log()
    logs[0] = language.potential[language.start]
    return Messages(value, logs.cumsum(0), -language.potential, False)


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
    return torch.segment_reduce(
        values.index_select(0, items), "max", lengths=lengths, axis=0, unsafe=True, initial=-torch.inf
    )


def _log_sum(values: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
    """log sum exp of values[items] in each run of `lengths` [N]: [N, B]; -inf for an empty one."""
    top = _greatest(values, items, lengths)
    if not len(items):
        return top
    shift = torch.where(top > -torch.inf, top, 0.0)
    owner = torch.repeat_interleave(lengths, output_size=len(items))
    near = (values.index_select(0, items) - shift.index_select(0, owner)).exp()
    total = torch.segment_reduce(near, "sum", lengths=lengths, axis=0, unsafe=True, initial=0.0)
    return total.log() + shift
