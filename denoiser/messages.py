"""Forward and backward sums over an automaton, with and without logarithms.

beta_L = 1[accept];  beta_i(q) = sum_c P_i(c) beta_{i+1}(delta[q, c])
alpha_0 = 1[start];  alpha_{i+1}(q') = sum_{q, c: delta[q, c] = q'} alpha_i(q) P_i(c)

States come first and rows last ([Q, B]), so that a gather of states moves whole lines of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from redraft.denoiser.language import Language
from torch import Tensor

#: A product of two numbers above these stays a normal float64, so that zero means "impossible" exactly.
SMALLEST_MESSAGE, SMALLEST_MASS = 1e-200, 1e-100


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages per position: value * exp(scale), or exp(value) * exp(scale) when `logarithmic`.

    `value` [L + 1, Q, B] float64, `scale` [L + 1, B] float64.
    """

    value: Tensor
    scale: Tensor
    logarithmic: bool

    def log(self) -> Tensor:
        """log message [L + 1, Q, B]; -inf exactly where it is impossible."""
        value = self.value if self.logarithmic else self.value.log()
        return value + self.scale[:, None, :]


def mass_range_is_safe(log_mass: Tensor) -> bool:
    """Whether plain sums can be tried: no class is so unlikely that products could underflow."""
    return bool(log_mass.masked_fill(log_mass == -torch.inf, 0.0).amin() > math.log(SMALLEST_MASS))


def is_exact(messages: Messages) -> bool:
    """Whether no product can have underflowed on the way to these plain messages."""
    value = messages.value
    return bool(torch.where(value > 0, value, 1.0).amin() > SMALLEST_MESSAGE)


def backward(language: Language, mass: Tensor) -> Messages:
    """Plain beta from class masses [L, C, B]."""
    edges = language.edges
    length, _, rows = mass.shape
    value = mass.new_empty(length + 1, language.states, rows)
    scale = mass.new_zeros(length + 1, rows)
    value[length] = language.accept[:, None].to(mass.dtype)
    for i in range(length - 1, -1, -1):
        pairs = value[i + 1].index_select(0, edges.target)
        pairs *= mass[i].index_select(0, edges.class_of)
        total = edges.out @ pairs
        scale[i] = total.amax(0)
        torch.div(total, scale[i].clamp_min(torch.finfo(mass.dtype).tiny), out=value[i])
    return Messages(value, _summed(scale), False)


def forward(language: Language, mass: Tensor) -> Messages:
    """Plain alpha from class masses [L, C, B]."""
    edges = language.edges
    length, _, rows = mass.shape
    value = mass.new_empty(length + 1, language.states, rows)
    scale = mass.new_zeros(length + 1, rows)
    value[0] = torch.zeros_like(value[0]).scatter_(0, language.start[None, :], 1.0)
    for i in range(length):
        pairs = edges.back @ value[i]
        pairs *= mass[i].index_select(0, edges.class_of)
        total = edges.into @ pairs
        scale[i + 1] = total.amax(0)
        torch.div(total, scale[i + 1].clamp_min(torch.finfo(mass.dtype).tiny), out=value[i + 1])
    return Messages(value, _summed(scale.flip(0)).flip(0), False)


def _summed(scale: Tensor) -> Tensor:
    """Log scales accumulated from the end that the recursion began at."""
    logs = scale.log()
    logs[-1] = 0.0
    return logs.flip(0).cumsum(0).flip(0)


def log_backward(language: Language, log_mass: Tensor) -> Messages:
    """beta by log-sum-exp from class log-masses [L, C, B]: slower, exact over any range."""
    length, _, rows = log_mass.shape
    value = log_mass.new_empty(length + 1, language.states, rows)
    value[length] = torch.where(language.accept, 0.0, -torch.inf)[:, None].to(log_mass.dtype)
    for i in range(length - 1, -1, -1):
        value[i] = (value[i + 1][language.delta] + log_mass[i]).logsumexp(1)
    return Messages(value, value.new_zeros(length + 1, rows), True)


def log_forward(language: Language, log_mass: Tensor) -> Messages:
    """alpha by log-sum-exp from class log-masses [L, C, B]: slower, exact over any range."""
    length, _, rows = log_mass.shape
    value = log_mass.new_full((length + 1, language.states, rows), -torch.inf)
    value[0].scatter_(0, language.start[None, :], 0.0)
    spread = language.delta.reshape(-1, 1).expand(-1, rows)
    for i in range(length):
        moves = (value[i][:, None, :] + log_mass[i]).reshape(-1, rows)
        top = torch.full_like(value[i], -torch.inf).scatter_reduce_(0, spread, moves, "amax")
        shift = torch.where(top > -torch.inf, top, 0.0)
        total = torch.zeros_like(top).scatter_add_(0, spread, (moves - shift.gather(0, spread)).exp())
        value[i + 1] = total.log() + shift
    return Messages(value, value.new_zeros(length + 1, rows), True)
