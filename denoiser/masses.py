"""Probability by token class: exact sums over the vocabulary, and draws within a class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

#: Largest number of tokens in one segment of a class.
SEGMENT = 128
#: Least log-probability (nats) that a token counts with, whatever the model says.
FLOOR = -1e4


@dataclass(frozen=True, eq=False)
class Segments:
    """The vocabulary cut into classes, and large classes into segments, for sums and draws in two strides.

    `of_token` [V] names each token's segment; `members` [S, W] its tokens in ascending order, padded with
    -1; `first` [C + 1] the segments of each class (they are consecutive).
    """

    of_token: Tensor
    members: Tensor
    first: Tensor
    class_of: Tensor

    @staticmethod
    def of(classes: Tensor, size: Tensor) -> Segments:
        """From each token's class [V] and the number of tokens in each class [C]."""
        pieces = (size + SEGMENT - 1) // SEGMENT
        first = torch.cat([pieces.new_zeros(1), pieces.cumsum(0)])
        order = torch.argsort(classes, stable=True)
        start = size.cumsum(0) - size
        rank = torch.empty_like(classes)
        rank[order] = torch.arange(len(classes), device=classes.device) - start[classes[order]]
        # Dealing tokens out in turn, not in runs: neighbouring additions then hit different sums.
        of_token = first[classes] + rank % pieces[classes]
        within = torch.div(rank, pieces[classes], rounding_mode="floor")
        members = torch.full((int(first[-1]), int(within.max()) + 1), -1, device=classes.device)
        members[of_token, within] = torch.arange(len(classes), device=classes.device)
        class_of = torch.repeat_interleave(torch.arange(len(size), device=classes.device), pieces)
        return Segments(of_token, members, first, class_of)

    @cached_property
    def by_class(self) -> Tensor:
        """Segments of each class [C, most], padded with -1."""
        count = self.first.diff()
        slots = torch.arange(int(count.max()), device=count.device)
        return torch.where(slots < count[:, None], self.first[:-1, None] + slots, -1)


def clean(log_p: Tensor) -> Tensor:
    """Finite float64 log-probabilities, at least FLOOR."""
    return torch.nan_to_num(log_p.double(), nan=FLOOR, neginf=FLOOR, posinf=0.0).clamp_min(FLOOR)


def padded_logsumexp(values: Tensor, index: Tensor) -> Tensor:
    """log sum exp over values[:, index[j]] for each j, index [J, W] padded with -1: [R, J]."""
    picked = values[:, index.clamp_min(0)].masked_fill(index < 0, -torch.inf)
    return picked.logsumexp(-1)


def segment_log_masses(segments: Segments, log_p: Tensor) -> Tensor:
    """log of each segment's probability: [R, V] -> float64 [R, S]."""
    rows, chunk = len(log_p), max(1, 2**20 // segments.members.numel())
    parts = [padded_logsumexp(clean(log_p[i : i + chunk]), segments.members) for i in range(0, rows, chunk)]
    return torch.cat(parts) if parts else log_p.new_zeros(0, len(segments.members), dtype=torch.float64)


def class_log_masses(segments: Segments, segment_logs: Tensor) -> Tensor:
    """log of each class's probability: [R, S] -> [R, C]."""
    return padded_logsumexp(segment_logs, segments.by_class)


def draw_from(weights: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Index drawn in proportion to `weights` [R, N] >= 0 by inverse CDF; the unused part of `uniform` [R].

    The unused part is again uniform in [0, 1), so that one number serves two strides.
    """
    total = weights.cumsum(-1)
    goal = uniform[:, None] * total[:, -1:]
    # Rounding may put the goal at the very end; an impossible entry must not be chosen then.
    last = total.argmax(-1)
    index = torch.minimum((total <= goal).sum(-1), last)[:, None]
    weight = weights.gather(1, index)
    rest = (goal - total.gather(1, index) + weight) / weight
    return index.squeeze(1), rest.squeeze(1).clamp(0.0, 1.0 - 2.0**-53)


def relative(log_weights: Tensor) -> Tensor:
    """exp(log_weights) scaled to a maximum of 1 along the last axis."""
    return (log_weights - log_weights.amax(-1, keepdim=True)).exp()


def draw_tokens(
    segments: Segments, log_p: Tensor, segment_logs: Tensor, chosen: Tensor, uniform: Tensor
) -> Tensor:
    """A token of each row's `chosen` class [R], drawn by p within the class: int64 [R]."""
    choices = segments.by_class[chosen]
    logs = segment_logs.gather(1, choices.clamp_min(0)).masked_fill(choices < 0, -torch.inf)
    slot, rest = draw_from(relative(logs), uniform)
    tokens = segments.members[choices.gather(1, slot[:, None]).squeeze(1)]
    inside = clean(log_p.gather(1, tokens.clamp_min(0))).masked_fill(tokens < 0, -torch.inf)
    slot, _ = draw_from(relative(inside), rest)
    return tokens.gather(1, slot[:, None]).squeeze(1)


def best_tokens(segments: Segments, log_p: Tensor) -> tuple[Tensor, Tensor]:
    """Highest log-probability in each class and the lowest token id that has it: [R, C] float64, int64."""
    rows, chunk = len(log_p), max(1, 2**20 // segments.members.numel())
    values, tokens = [], []
    for i in range(0, rows, chunk):
        inside = clean(log_p[i : i + chunk])[:, segments.members.clamp_min(0)]
        inside = inside.masked_fill(segments.members < 0, -torch.inf)
        best = inside.amax(-1)
        never = log_p.shape[1]
        token = torch.where(inside == best[..., None], segments.members, never).amin(-1)
        shown = best[:, segments.by_class.clamp_min(0)].masked_fill(segments.by_class < 0, -torch.inf)
        top = shown.amax(-1)
        among = token[:, segments.by_class.clamp_min(0)]
        values.append(top)
        tokens.append(torch.where(shown == top[..., None], among, never).amin(-1))
    return torch.cat(values), torch.cat(tokens)
