"""Batches in two streams: every token of a row predicted in one pass, each from what comes before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from redraft.denoiser.training.masking import (
    TAGS,
    Batch,
    Masking,
    anchored,
    from_the_right,
    lay_out,
    padding_scored,
)
from redraft.denoiser.training.rows import Row
from redraft.denoiser.training.tokenizer import TextCodec


def stream_batch(
    rows: Sequence[Row], width: int, codec: TextCodec, rule: Masking, rng: np.random.Generator
) -> Batch:
    """`[genre][tone] canvas` as read, then the canvas once more, all hidden: N = 2 + 2W positions a row.

    Each row has an order, from left to right, ragged by its own U(0, `rule.edge`) tokens, what is `anchored` first.
    Place i of the first stream attends to the tokens of orders up to its own, of the second to the tokens of orders
    below its own, and to itself: what a run that follows the order has committed before it (two streams: XLNet, Yang
    et al. 2019). A run also sees how wide its canvas is, and its tokens see what came after them: that is left to
    other batches.
    """
    full = lay_out(rows, width, codec)
    count, read = len(rows), TAGS + width
    order = 1 - from_the_right(rng, count, width, rule.edge)  # in [0, 1)
    order -= anchored(rng, count, width, rule.anchored)
    known = np.concatenate([np.full((count, TAGS), -2.0), order], axis=1)
    seen = np.zeros((count, read + width, read + width), dtype=bool)
    seen[:, :read, :read] = known[:, None, :] <= known[:, :, None]
    seen[:, read:, :read] = known[:, None, :] < order[:, :, None]
    own = np.arange(read, read + width)
    seen[:, own, own] = True
    targets = full[:, TAGS:]
    kept, weights = padding_scored(targets, codec, rule, rng)
    places = np.concatenate([np.arange(read), np.arange(TAGS, read)])
    return Batch(
        torch.from_numpy(np.concatenate([full, np.full_like(targets, codec.mask)], axis=1)),
        torch.from_numpy(np.flatnonzero(np.pad(kept, ((0, 0), (read, 0))))),
        torch.from_numpy(targets[kept]),
        torch.from_numpy(weights[kept]),
        torch.from_numpy(seen),
        torch.from_numpy(places[None]),
    )
