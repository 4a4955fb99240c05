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
#: Rows whose float32 sums are made at a time, so that they stay in cache.
_CHUNK = 16
#: Below this a float32 sum of exponentials may have lost digits and is made again in logarithms.
_SMALL = 1e-25


@dataclass(frozen=True, eq=False)
class Segments:
    """The vocabulary cut into classes, and classes into segments, for sums and draws in two strides.

    `of_token` [V] names each token's segment; `members` [S, W] its tokens in ascending order, padded with
    -1; `first` [C + 1] the segments of each class, which are consecutive; `main` the largest class, whose
    segments are runs of SEGMENT neighbouring ids; `rest` the tokens outside it.
    """

    of_token: Tensor
    members: Tensor
    first: Tensor
    main: int
    rest: Tensor

    @staticmethod
    def of(classes: Tensor, size: Tensor) -> Segments:
        """From each token's class [V] and the number of tokens in each class [C]."""
        device, tokens = classes.device, torch.arange(len(classes), device=classes.device)
        main = int(size.argmax())
        pieces = (size + SEGMENT - 1) // SEGMENT
        pieces[main] = (len(classes) + SEGMENT - 1) // SEGMENT
        first = torch.cat([pieces.new_zeros(1), pieces.cumsum(0)])
        rank = torch.empty_like(classes)
        order = torch.argsort(classes, stable=True)
        rank[order] = tokens - (size.cumsum(0) - size)[classes[order]]
        # Dealing tokens out in turn, not in runs: neighbouring additions then go to different sums.
        piece = torch.where(classes == main, tokens // SEGMENT, rank % pieces[classes])
        of_token = first[classes] + piece
        by_segment = torch.argsort(of_token, stable=True)
        count = torch.bincount(of_token, minlength=int(first[-1]))
        slot = torch.empty_like(classes)
        slot[by_segment] = tokens - (count.cumsum(0) - count)[of_token[by_segment]]
        members = torch.full((len(count), int(slot.max()) + 1), -1, device=device)
        members[of_token, slot] = tokens
        return Segments(of_token, members, first, main, (classes != main).nonzero().squeeze(1))

    @cached_property
    def by_class(self) -> Tensor:
        """Segments of each class [C, most], padded with -1."""
        count = self.first.diff()
        slots = torch.arange(int(count.max()), device=count.device)
        return torch.where(slots < count[:, None], self.first[:-1, None] + slots, -1)

    @cached_property
    def class_of(self) -> Tensor:
        """Class of each segment [S]."""
        return torch.repeat_interleave(
            torch.arange(len(self.first) - 1, device=self.first.device), self.first.diff()
        )

    @cached_property
    def small(self) -> Tensor:
        """One token of each class that has one token only, and -1 for the others [C]."""
        single = torch.bincount(self.class_of[self.of_token], minlength=len(self.first) - 1) == 1
        lowest = self.members[self.first[:-1]].amax(-1)
        return torch.where(single, torch.where(lowest >= 0, lowest, self.members.amax()), -1)


@dataclass(frozen=True, eq=False)
class Masses:
    """Class log-probabilities `log` [R, C] float64, and each segment's share of its class `share` [R, S]."""

    log: Tensor
    share: Tensor


def masses(segments: Segments, log_p: Tensor) -> Masses:
    """Sums of exp(log_p) [R, V] by class and segment; on a CPU float32 sums are made directly where safe."""
    if log_p.is_cuda or log_p.dtype != torch.float32:
        return _careful(segments, log_p)
    sums = _direct(segments, log_p)
    total = _by_class(segments, sums)
    log = total.log()
    row, column = (~(total >= _SMALL) | (total > 2)).nonzero(as_tuple=True)
    share = sums
    if len(row):
        _repair(segments, log_p, row, column, log, share)
    return Masses(log, share)


def _direct(segments: Segments, log_p: Tensor) -> Tensor:
    """Segment sums [R, S] float32: runs of ids for the main class, dealt-out additions for the rest."""
    rows, size = log_p.shape
    sums = log_p.new_zeros(rows, len(segments.members))
    width = -(-size // SEGMENT) * SEGMENT
    buffer = log_p.new_zeros(min(rows, _CHUNK), width)
    keep = torch.nn.functional.pad(segments.of_token.new_ones(size), (0, width - size)).to(log_p.dtype)
    keep[segments.rest] = 0.0
    labels = segments.of_token[segments.rest]
    main = slice(int(segments.first[segments.main]), int(segments.first[segments.main + 1]))
    for i in range(0, rows, _CHUNK):
        held = buffer[: min(_CHUNK, rows - i)]
        part = sums[i : i + _CHUNK]
        torch.exp(log_p[i : i + _CHUNK], out=held[:, :size])
        part.index_add_(1, labels, held.index_select(1, segments.rest))
        part[:, main] = held.mul_(keep).view(len(held), -1, SEGMENT).sum(-1)
    return sums


def _by_class(segments: Segments, sums: Tensor) -> Tensor:
    return sums.new_zeros(len(sums), len(segments.first) - 1, dtype=torch.float64).index_add_(
        1, segments.class_of, sums.double()
    )


def _repair(
    segments: Segments, log_p: Tensor, row: Tensor, column: Tensor, log: Tensor, share: Tensor
) -> None:
    """Make the sums of class `column` in `row` again in float64 logarithms."""
    count = segments.first.diff().clamp_min(1)
    # By powers of two, not by what this batch needs: the order of a sum must not depend on other rows.
    width = 2 ** (count.double().log2().ceil().long())
    for size in torch.unique(width[column]).tolist():
        here = (width[column] == size).nonzero().squeeze(1)
        for some in torch.split(here, max(1, 2**21 // (size * segments.members.shape[1]))):
            r, c = row[some], column[some]
            pieces = torch.nn.functional.pad(segments.by_class, (0, size), value=-1)[c, :size]
            inside = pieces >= 0
            tokens = segments.members[pieces.clamp_min(0)].masked_fill(~inside[..., None], -1)
            picked = clean(log_p[r[:, None, None], tokens.clamp_min(0)]).masked_fill(tokens < 0, -torch.inf)
            logs = picked.logsumexp(-1)
            whole = logs.logsumexp(-1)
            log[r, c] = whole
            shares = (logs - whole[:, None]).exp().to(share.dtype)
            share[r[:, None].expand_as(pieces)[inside], pieces[inside]] = shares[inside]


def _careful(segments: Segments, log_p: Tensor) -> Masses:
    chunk = max(1, 2**22 // segments.members.numel()) if not log_p.is_cuda else max(1, len(log_p))
    parts = [padded_logsumexp(clean(part), segments.members) for part in torch.split(log_p, chunk)]
    logs = torch.cat(parts)
    whole = padded_logsumexp(logs, segments.by_class)
    return Masses(whole, (logs - whole[:, segments.class_of]).exp())


def clean(log_p: Tensor) -> Tensor:
    """Finite float64 log-probabilities, at least FLOOR."""
    return torch.nan_to_num(log_p.double(), nan=FLOOR, neginf=FLOOR, posinf=0.0).clamp_min(FLOOR)


def padded_logsumexp(values: Tensor, index: Tensor) -> Tensor:
    """log sum exp over values[:, index[j]] for each j, index [J, W] padded with -1: [R, J]."""
    return values[:, index.clamp_min(0)].masked_fill(index < 0, -torch.inf).logsumexp(-1)


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


def draw_tokens(segments: Segments, log_p: Tensor, share: Tensor, chosen: Tensor, uniform: Tensor) -> Tensor:
    """A token of each row's `chosen` class [R], drawn by p [R, V] within the class: int64 [R]."""
    choices = segments.by_class[chosen]
    weights = share.gather(1, choices.clamp_min(0)).double().masked_fill(choices < 0, 0.0)
    slot, rest = draw_from(weights, uniform)
    tokens = segments.members[choices.gather(1, slot[:, None]).squeeze(1)]
    inside = clean(log_p.gather(1, tokens.clamp_min(0))).masked_fill(tokens < 0, -torch.inf)
    slot, _ = draw_from(relative(inside), rest)
    return tokens.gather(1, slot[:, None]).squeeze(1)


def best_tokens(segments: Segments, log_p: Tensor) -> tuple[Tensor, Tensor]:
    """Highest log-probability in each class and the lowest token id that has it: [R, C] float64, int64."""
    size, classes = log_p.shape[1], len(segments.first) - 1
    label = segments.class_of[segments.of_token[segments.rest]]
    outside = torch.nn.functional.pad(log_p.new_zeros(size), (0, -size % SEGMENT), value=-torch.inf)
    outside[segments.rest] = -torch.inf
    values, tokens = [], []
    for part in torch.split(log_p, _CHUNK if not log_p.is_cuda else max(1, len(log_p))):
        safe = torch.nan_to_num(part, nan=FLOOR, neginf=FLOOR, posinf=0.0).clamp_(FLOOR, 0.0)
        rest, where = safe[:, segments.rest], label.expand(len(part), -1)
        top = safe.new_full((len(part), classes), -torch.inf).scatter_reduce_(1, where, rest, "amax")
        id = torch.where(rest == top.gather(1, where), segments.rest, size)
        lowest = id.new_full((len(part), classes), size).scatter_reduce_(1, where, id, "amin")
        runs = (torch.nn.functional.pad(safe, (0, -size % SEGMENT)) + outside).view(len(part), -1, SEGMENT)
        # argmax gives the first of equals: the run, then the token in it.
        run = runs.amax(2).argmax(1)
        inside = runs[torch.arange(len(part), device=run.device), run]
        slot = inside.argmax(1)
        top[:, segments.main] = inside.amax(1)
        lowest[:, segments.main] = run * SEGMENT + slot
        values.append(top.double())
        tokens.append(lowest)
    return torch.cat(values), torch.cat(tokens)
