"""Held-out figures at fixed masks, and free samples to look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import BertForMaskedLM

from redraft.denoiser.training.corpus import REAL, Passage
from redraft.denoiser.training.masking import TAGS, lay_out, logits_at
from redraft.denoiser.training.precision import fast_bf16
from redraft.denoiser.training.rows import CANVAS, Row
from redraft.denoiser.training.tokenizer import TextCodec

RATES = (0.15, 0.5, 0.9)


@dataclass(frozen=True)
class Figure:
    """Cross-entropy in nats per hidden token (text and EOS) and how often the first guess is right."""

    cross_entropy: float
    top1: float
    tokens: int

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


Figures = dict[str, dict[str, Figure]]  # source kind -> share masked -> figure


def held_out_subset(held: Sequence[Passage], *, limit: int = 300) -> list[Passage]:
    """At most `limit` texts, two thirds of them passages, in the order of their hashes."""
    groups: dict[bool, list[Passage]] = {True: [], False: []}
    for passage in sorted(held, key=lambda p: p.key):
        groups[passage.genre in REAL].append(passage)
    own = groups[False][: limit * 2 // 3 if groups[True] else limit]
    return own + groups[True][: limit - len(own)]


@torch.inference_mode()
def evaluate(model: BertForMaskedLM, passages: Sequence[Passage], codec: TextCodec) -> Figures:
    """CE per token and top-1 at each rate, by kind: `passages`, or the genre of real text."""
    model.train(False)
    sums: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(3))
    ids = codec.encode_all([p.text for p in passages])
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for at in range(0, len(order), 32):
        part = order[at : at + 32]
        rows = [_row(passages[i], ids[i], codec) for i in part]
        width = min(CANVAS, max(map(len, rows)) + 1)
        full = torch.from_numpy(lay_out(rows, width, codec))
        lengths = torch.tensor([min(len(row) + 1, width) for row in rows])
        inside = torch.arange(width) < lengths[:, None]
        for number, rate in enumerate(RATES):
            rng = np.random.default_rng((11, number, at))
            hidden = torch.from_numpy(rng.random(inside.shape) < rate) & inside
            row_of, _ = hidden.nonzero(as_tuple=True)
            losses, right = _score(model, full, hidden, codec)
            for i, index in enumerate(part):
                genre = passages[index].genre
                kind = genre if genre in REAL else "passages"
                mine = row_of == i
                sums[kind, f"{rate:.2f}"] += [
                    float(x) for x in (losses[mine].sum(), right[mine].sum(), mine.sum())
                ]
    model.train()
    figures: Figures = defaultdict(dict)
    for (kind, rate_name), (loss, right_count, count) in sorted(sums.items()):
        seen = max(1.0, count)
        figures[kind][rate_name] = Figure(round(loss / seen, 4), round(right_count / seen, 4), int(count))
    return dict(figures)


def _row(passage: Passage, ids: Sequence[int], codec: TextCodec) -> Row:
    return Row(codec.genres[passage.genre], codec.tones[passage.tone], tuple(ids), passage.genre in REAL)


def _score(model: BertForMaskedLM, full: Tensor, hidden: Tensor, codec: TextCodec) -> tuple[Tensor, Tensor]:
    """(losses [M], first guess right [M]) of the hidden positions."""
    inputs = full.clone()
    inputs[:, TAGS:][hidden] = codec.mask
    places = F.pad(hidden, (TAGS, 0)).flatten().nonzero().squeeze(1)
    if not len(places):
        return torch.zeros(0), torch.zeros(0)
    device = model.device
    with torch.autocast(device.type, torch.bfloat16, enabled=fast_bf16(device)):
        logits = logits_at(model, inputs, places).float()
    targets = full[:, TAGS:][hidden].to(device)
    losses = F.cross_entropy(logits, targets, reduction="none")
    return losses.cpu(), (logits.argmax(-1) == targets).cpu()


@torch.inference_mode()
def samples(
    model: BertForMaskedLM,
    codec: TextCodec,
    tags: Sequence[tuple[str, str]],
    *,
    width: int = 48,
    steps: int = 24,
    temperature: float = 0.8,
    seed: int = 0,
) -> list[str]:
    """Plain ancestral unmasking: at each step a random 1/(steps left) of the holes is filled by sampling."""
    model.train(False)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.full((len(tags), TAGS + width), codec.mask)
    tokens[:, 0] = torch.tensor([codec.genres[genre] for genre, _ in tags])
    tokens[:, 1] = torch.tensor([codec.tones[tone] for _, tone in tags])
    barred = torch.tensor(sorted(codec.special - {codec.eos, codec.pad}))
    for step in range(steps):
        open_ = (tokens == codec.mask).flatten()
        places = open_.nonzero().squeeze(1)
        logits = logits_at(model, tokens, places).float().cpu() / temperature
        logits[:, barred] = -torch.inf
        draft = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
        count = -(-len(places) // (steps - step))
        chosen = torch.randperm(len(places), generator=generator)[:count]
        tokens.view(-1)[places[chosen]] = draft[chosen]
        if count == len(places):
            break
    model.train()
    return [codec.decode(row[TAGS:].tolist()) for row in tokens]
