"""The n most probable words of a language: best-first search with the exact best completion as its bound."""

from __future__ import annotations

import heapq

import torch
from torch import Tensor

from redraft.denoiser.language import Language

#: Log-probabilities (nats) are compared as multiples of this, so that rounding does not order equals.
GRAIN = 1e-9


def nbest(
    language: Language, log_p: Tensor, tokens: Tensor, open: Tensor, ahead: Tensor, row: int, n: int
) -> tuple[Tensor, Tensor]:
    """Up to `n` words [n, L] of one row and their log p [n], best first, equals by token ids; -1, -inf where fewer.

    `log_p` [L, V] finite, 0 where not `open` [L]; `ahead` [L + 1, Q] best log p of finishing from each state. A prefix
    is worth at most its own log p plus `ahead`; since that bound is met, only prefixes of the words that are returned
    (and their equals) are ever extended: O(n L V).
    """
    length = len(tokens)
    start = int(language.start[row])
    words = tokens.new_full((n, length), -1)
    values = torch.full((n,), -torch.inf, dtype=torch.float64, device=tokens.device)
    # (bound in grains, prefix, state, log p of the prefix); equal bounds go by the prefix, so by token ids.
    best = float(ahead[0, start])
    waiting: list[tuple[int, tuple[int, ...], int, float]] = (
        [(-round(best / GRAIN), (), start, 0.0)] if best > -torch.inf else []
    )
    found = 0
    while waiting and found < n:
        _, prefix, state, value = heapq.heappop(waiting)
        i = len(prefix)
        if i == length:
            words[found], values[found] = torch.tensor(prefix, device=tokens.device), value
            found += 1
            continue
        move = language.moves(torch.tensor([state], device=tokens.device))[0]
        if bool(open[i]):
            bound = log_p[i] + ahead[i + 1][move][language.classes]
            tokens_here = _first(bound, n - found)
        else:
            tokens_here = [int(tokens[i])]
        for token in tokens_here:
            after = int(move[language.classes[token]])
            so_far = value + (float(log_p[i, token]) if bool(open[i]) else 0.0)
            whole = so_far + float(ahead[i + 1, after])
            if whole > -torch.inf:
                heapq.heappush(waiting, (-round(whole / GRAIN), (*prefix, token), after, so_far))
    return words, values


def _first(bound: Tensor, n: int) -> list[int]:
    """The tokens with the `n` greatest bounds, and all that equal the last of them to within a grain."""
    bar = bound.topk(min(n, len(bound))).values[-1]
    return (bound >= bar - GRAIN).nonzero().squeeze(1).tolist() if bar > -torch.inf else (
        (bound > -torch.inf).nonzero().squeeze(1).tolist()
    )  # fmt: skip
