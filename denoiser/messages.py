"""Forward and backward sums over an automaton, with and without logarithms.

beta_L = 1[accept];  beta_i(q) = sum_c P_i(c) beta_{i+1}(delta[q, c])
alpha_0 = 1[start];  alpha_{i+1}(q') = sum_{q, c: delta[q, c] = q'} alpha_i(q) P_i(c)

States come first and rows last ([Q, B]), so that a gather of states moves whole lines of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser.language import Edges, Language

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
    length, _, rows = mass.shape
    if length * rows * len(edges.target) <= _AT_ONCE:
        pairs = list(mass.index_select(1, edges.class_of))
    else:
        pairs = [mass[i] for i in range(length)]
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
    value = mass[0].new_empty(length + 1, language.states, rows)
    scale = mass[0].new_ones(length + 1, rows)
    moved = mass[0].new_empty(len(edges.target), rows)
    value[length] = language.accept[:, None].to(value.dtype)
    for i in range(length - 1, -1, -1):
        torch.index_select(value[i + 1], 0, edges.target, out=moved)
        moved.mul_(_of_pairs(mass[i], edges))
        torch.addmm(value[i], edges.out, moved, beta=0.0, out=value[i])
        torch.amax(value[i], 0, out=scale[i])
        value[i].div_(scale[i].clamp_min_(_TINY))
    return Messages(value, scale.log().flip(0).cumsum(0).flip(0), language.potential, False)


def _forward(language: Language, mass: list[Tensor], rows: int) -> Messages:
    edges, length = language.edges, len(mass)
    value = mass[0].new_zeros(length + 1, language.states, rows)
    scale = mass[0].new_ones(length + 1, rows)
    moved = mass[0].new_empty(len(edges.target), rows)
    value[0].scatter_(0, language.start[None, :], 1.0)
    for i in range(length):
        torch.addmm(moved, edges.back, value[i], beta=0.0, out=moved)
        moved.mul_(_of_pairs(mass[i], edges))
        torch.addmm(value[i + 1], edges.into, moved, beta=0.0, out=value[i + 1])
        torch.amax(value[i + 1], 0, out=scale[i + 1])
        value[i + 1].div_(scale[i + 1].clamp_min_(_TINY))
    logs = scale.log()
    logs[0] = language.potential[language.start]
    return Messages(value, logs.cumsum(0), -language.potential, False)


def _of_pairs(mass: Tensor, edges: Edges) -> Tensor:
    return mass if len(mass) == len(edges.class_of) else mass.index_select(0, edges.class_of)


def best_ahead(language: Language, value: Tensor) -> Tensor:
    """Best log-probability of finishing from each state [L + 1, Q, B]: max for sum, from class values [L, C, B]."""
    length, width, rows = value.shape
    ahead = value.new_empty(length + 1, language.states, rows)
    ahead[length] = torch.where(language.accept, 0.0, -torch.inf).to(value.dtype)[:, None]
    moves, flat = value.new_empty(width, language.states, rows), language.delta.T.flatten()
    for i in range(length - 1, -1, -1):
        torch.index_select(ahead[i + 1], 0, flat, out=moves.view(-1, rows))
        torch.amax(moves.add_(value[i][:, None, :]), 0, out=ahead[i])
    return ahead


def log_backward(language: Language, log_mass: Tensor) -> Messages:
    """beta by log-sum-exp from class log-masses [L, C, B]: slower, exact over any range."""
    length, _, rows = log_mass.shape
    value = log_mass.new_empty(length + 1, rows, language.states)
    value[length] = torch.where(language.accept, 0.0, -torch.inf).to(log_mass.dtype)
    for i in range(length - 1, -1, -1):
        value[i] = (value[i + 1][:, language.delta] + log_mass[i].T[:, None, :]).logsumexp(2)
    return Messages(
        value.transpose(1, 2).contiguous(),
        value.new_zeros(length + 1, rows),
        value.new_zeros(language.states),
        True,
    )


def log_forward(language: Language, log_mass: Tensor) -> Messages:
    """alpha by log-sum-exp from class log-masses [L, C, B]: slower, exact over any range."""
    length, _, rows = log_mass.shape
    value = log_mass.new_full((length + 1, rows, language.states), -torch.inf)
    value[0].scatter_(1, language.start[:, None], 0.0)
    spread = language.delta.reshape(1, -1).expand(rows, -1)
    for i in range(length):
        moves = (value[i][:, :, None] + log_mass[i].T[:, None, :]).flatten(1)
        top = torch.full_like(value[i], -torch.inf).scatter_reduce_(1, spread, moves, "amax")
        shift = torch.where(top > -torch.inf, top, 0.0)
        total = torch.zeros_like(top).scatter_add_(1, spread, (moves - shift.gather(1, spread)).exp())
        value[i + 1] = total.log() + shift
    return Messages(
        value.transpose(1, 2).contiguous(),
        value.new_zeros(length + 1, rows),
        value.new_zeros(language.states),
        True,
    )
