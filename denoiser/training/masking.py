"""The masked-diffusion objective: which positions of a batch are hidden, and how much each counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertForMaskedLM

from redraft.denoiser.training.rows import Row
from redraft.denoiser.training.tokenizer import TextCodec

Head = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]
TAGS = 2  # genre and tone stand before the canvas


@dataclass(frozen=True)
class Masking:
    """Shares of rows masked in spans, from the right, and with a prompt kept; the weight of padding in the loss.

    leaning: the share of rows that look as a run from left to right leaves them: all seen, then a ragged edge of up
    to `edge` tokens, then all hidden, of which the first `reach` are scored; spans fall on the other rows.
    streams: the share of batches whose every token is predicted from what such a run has before it (`stream_batch`);
    anchored: the share of all these rows in which some tokens stand before the run begins.
    """

    spans: float = 0.15
    span_length: float = 5.0
    leaning: float = 0.5
    streams: float = 0.8
    anchored: float = 0.4
    edge: float = 16.0
    reach: int = 16
    prompts: float = 0.30
    pad_weight: float = 0.1
    pad_kept: float = 0.25  # of the hidden padding, this share is scored, at pad_weight / pad_kept each


@dataclass(frozen=True)
class Batch:
    """`inputs` [B, N] with holes; the flat positions to score, their targets and weights, each [M].

    seen [B, N, N] bool: which position attends to which (None: all to all); positions [1, N]: their places in the
    text (None: their order).
    """

    inputs: Tensor
    places: Tensor
    targets: Tensor
    weights: Tensor
    seen: Tensor | None = None
    positions: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device."""
        values = (getattr(self, field.name) for field in fields(self))
        return Batch(*(None if value is None else value.to(device) for value in values))  # type: ignore[arg-type]


def lay_out(rows: Sequence[Row], width: int, codec: TextCodec) -> np.ndarray:
    """[B, 2 + width] ids: tags, text, EOS, padding."""
    out = np.full((len(rows), TAGS + width), codec.pad, dtype=np.int64)
    for line, row in zip(out, rows, strict=True):
        text = (*row.text, codec.eos)[:width]
        line[0], line[1] = row.genre, row.tone
        line[TAGS : TAGS + len(text)] = text
    return out


def mask_batch(
    rows: Sequence[Row], width: int, codec: TextCodec, rule: Masking, rng: np.random.Generator
) -> Batch:
    """Hide each canvas position with the row's rate t ~ U(0, 1), t stratified over the batch."""
    full = lay_out(rows, width, codec)
    count = len(rows)
    rate = (rng.permutation(count) + rng.random(count)) / count
    noise = rng.random((count, width))
    in_spans = rng.random(count) < rule.spans
    noise[in_spans] = _by_spans(rng, int(in_spans.sum()), width, rule.span_length)
    leaning = rng.random(count) < rule.leaning
    leant = from_the_right(rng, int(leaning.sum()), width, rule.edge)
    leant[anchored(rng, len(leant), width, rule.anchored)] = 2.0  # above any rate: never hidden
    noise[leaning] = leant
    lengths = np.array([min(len(row), width) for row in rows])
    prompt = np.where(rng.random(count) < rule.prompts, (rng.random(count) * lengths).astype(int), 0)
    noise[np.arange(width) < prompt[:, None]] = 2.0
    hidden = noise < rate[:, None]
    lowest = noise.argmin(axis=1)
    hidden[np.arange(count), lowest] = True  # at least one hole a row
    targets = full[:, TAGS:]
    near = ~leaning[:, None] | (hidden.cumsum(axis=1) <= rule.reach)
    kept, weights = padding_scored(targets, codec, rule, rng)
    scored = hidden & near & kept
    if not scored.any():
        scored = hidden & near
    inputs = full.copy()
    inputs[:, TAGS:][hidden] = codec.mask
    flat = np.pad(scored, ((0, 0), (TAGS, 0))).reshape(-1)
    return Batch(
        torch.from_numpy(inputs),
        torch.from_numpy(np.flatnonzero(flat)),
        torch.from_numpy(targets[scored]),
        torch.from_numpy(weights[scored]),
    )


def padding_scored(
    targets: np.ndarray, codec: TextCodec, rule: Masking, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the targets [B, W] may be scored (padding by lot), and float32 [B, W] how much each counts."""
    padding = targets == codec.pad
    kept = ~padding | (rng.random(targets.shape) < rule.pad_kept)
    return kept, np.where(padding, rule.pad_weight / rule.pad_kept, 1.0).astype(np.float32)


def logits_at(model: BertForMaskedLM, inputs: Tensor, places: Tensor) -> Tensor:
    """Logits [M, V] of the flat positions only, on the model's device, wherever the inputs are.

    The vocabulary projection is half the cost otherwise.
    """
    hidden = model.bert(input_ids=inputs.to(model.device), attention_mask=None).last_hidden_state
    logits: Tensor = model.cls(hidden.flatten(0, 1)[places.to(model.device)])
    return logits


def loss_of(model: BertForMaskedLM, batch: Batch, head: Head | None = None) -> Tensor:
    """Weighted mean cross-entropy of the scored positions."""
    head = head or head_loss
    return head(model.cls, hidden_at(model, batch), batch.targets, batch.weights)


def hidden_at(model: BertForMaskedLM, batch: Batch) -> Tensor:
    """The body's hidden states [M, D] at the scored positions."""
    unseen = None
    if batch.seen is not None:  # added to the attention scores
        unseen = torch.where(batch.seen, 0.0, -1e9)[:, None]
    read = model.bert(input_ids=batch.inputs, attention_mask=unseen, position_ids=batch.positions)
    hidden: Tensor = read.last_hidden_state.flatten(0, 1)[batch.places]
    return hidden


def head_loss(cls: nn.Module, hidden: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """The vocabulary projection and the loss; apart, so that it can be compiled."""
    losses = F.cross_entropy(cls(hidden).float(), targets, reduction="none")
    return (losses * weights).sum() / weights.sum()


def _by_spans(rng: np.random.Generator, count: int, width: int, length: float) -> np.ndarray:
    """[count, width] noise that is constant over spans of the mean length, so that whole spans are hidden."""
    starts = rng.random((count, width)) < 1 / length
    span = np.cumsum(starts, axis=1, dtype=np.int64)
    values = rng.random((count, width + 1))
    jitter = rng.random((count, width)) * 1e-6
    return np.take_along_axis(values, span, axis=1) + jitter


def from_the_right(rng: np.random.Generator, count: int, width: int, edge: float) -> np.ndarray:
    """[count, width] noise in (0, 1] that falls from left to right, ragged by a row's own U(0, edge) tokens."""
    ragged = edge * rng.random((count, 1))
    return 1 - (np.arange(width) + ragged * rng.random((count, width))) / (width + ragged)


def anchored(rng: np.random.Generator, count: int, width: int, share: float) -> np.ndarray:
    """[count, width] bool: tokens that stand before a run begins, as the words that a guide asks for do.

    In a share of the rows each place is one by the row's own chance, U(0, 1/4); in the others none is.
    """
    chance = 0.25 * rng.random((count, 1)) * (rng.random((count, 1)) < share)
    return rng.random((count, width)) < chance
