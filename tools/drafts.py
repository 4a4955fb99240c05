"""Write many drafts fast: `python tools/drafts.py MODEL --count 10000 --out FILE`.

What a run from left to right writes, a token a step, with every position's keys and values kept: a committed token does
not see what came after it, as in the training's first stream (`denoiser/training/streams.py`). For text that no guide
steers; `tools/critic.py` judges what it writes.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertForMaskedLM

from redraft.denoiser.training.corpus import TONES
from redraft.denoiser.training.masking import TAGS
from redraft.denoiser.training.tokenizer import TextCodec

GENRES = ("story", "tale", "review", "customer", "casual", "formal", "plain", "scene")
REPEATS = 3.0  # nats for a token or a run of three that is said again, as `Drafts` has them
COMMON = 1 / 250
ROWS = 256
FEWER = 0.75  # of the rows go on: those that are done are let go


@dataclass
class Written:
    """Rows being written: tokens [B, W], log p [B] nats, done [B], keys and values [layers, B, heads, 2 + W, d]."""

    tokens: Tensor
    log_p: Tensor
    done: Tensor
    keys: Tensor
    values: Tensor

    def rows(self, chosen: Tensor) -> Written:
        keys, values = self.keys[:, chosen], self.values[:, chosen]
        return Written(self.tokens[chosen], self.log_p[chosen], self.done[chosen], keys, values)


class Sampler:
    """A release, one token a step at a temperature; what is read once is not computed again."""

    def __init__(self, folder: Path, temperature: float, length: int) -> None:
        self.codec = TextCodec.load(folder / "tokenizer.json")
        model = BertForMaskedLM.from_pretrained(folder, dtype=torch.float32)
        self.model = model.eval().requires_grad_(False)
        self.layers = self.model.bert.encoder.layer
        self.heads = int(self.model.config.num_attention_heads)
        self.temperature, self.length = temperature, length
        never = {*self.codec.special} - {self.codec.eos}
        self.never = torch.tensor(sorted(never))
        for part in self.model.modules():
            if isinstance(part, nn.Linear):
                part.to(torch.bfloat16)

    def begin(self, tags: Tensor) -> Written:
        """Rows [B] whose tags [B, 2] have been read."""
        rows, width = len(tags), TAGS + self.length
        shape = (len(self.layers), rows, self.heads, width, self.model.config.hidden_size // self.heads)
        written = Written(
            torch.full((rows, self.length), self.codec.pad),
            torch.zeros(rows),
            torch.zeros(rows, dtype=torch.bool),
            torch.zeros(shape),
            torch.zeros(shape),
        )
        self._read(written, tags, torch.arange(TAGS), torch.ones(TAGS, TAGS, dtype=torch.bool))
        return written

    def step(self, written: Written, at: int, rng: torch.Generator) -> None:
        """Draw token `at` of every row that is not done, and read the one before it."""
        hole = torch.full((len(written.tokens), 1), self.codec.mask)
        place = TAGS + at
        if at:
            new = torch.cat([written.tokens[:, at - 1 : at], hole], dim=1)
            seen = torch.ones(2, place + 1, dtype=torch.bool)
            seen[0, -1] = False
            hidden = self._read(written, new, torch.tensor([place - 1, place]), seen)
        else:
            hidden = self._read(
                written, hole, torch.tensor([place]), torch.ones(1, place + 1, dtype=torch.bool)
            )
        logits = self.model.cls(hidden[:, -1]).float().index_fill_(-1, self.never, -torch.inf)
        said = (logits / self.temperature).log_softmax(-1)
        mass = said.exp().cumsum(-1)
        lot = torch.rand(len(mass), 1, generator=rng) * mass[:, -1:]
        drawn = torch.searchsorted(mass, lot, right=True).clamp_max(mass.shape[1] - 1)
        going = ~written.done
        written.log_p += torch.where(going, said.gather(1, drawn)[:, 0], 0.0)
        written.tokens[:, at] = torch.where(going, drawn[:, 0], self.codec.pad)
        written.done |= drawn[:, 0] == self.codec.eos

    def _read(self, written: Written, tokens: Tensor, places: Tensor, seen: Tensor) -> Tensor:
        """Hidden states [B, n, D] of tokens at consecutive places; their keys and values are kept."""
        rows, count = tokens.shape
        first, last = int(places[0]), int(places[-1]) + 1
        hidden = self.model.bert.embeddings(input_ids=tokens, position_ids=places[None])
        for k, layer in enumerate(self.layers):
            own = layer.attention.self
            query, key, value = (
                part(hidden).view(rows, count, self.heads, -1).transpose(1, 2)
                for part in (own.query, own.key, own.value)
            )
            written.keys[k, :, :, first:last] = key
            written.values[k, :, :, first:last] = value
            read = F.scaled_dot_product_attention(
                query, written.keys[k, :, :, :last], written.values[k, :, :, :last], attn_mask=seen
            )
            hidden = layer.attention.output(read.transpose(1, 2).flatten(2), hidden)
            hidden = layer.output(layer.intermediate(hidden), hidden)
        return hidden


@torch.inference_mode()
@torch.autocast("cpu", torch.bfloat16)
def draw(
    sampler: Sampler, tags: Tensor, drafts: int, opening: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(tokens [B, drafts, W], log p [B, drafts] nats) of texts with tags [B, 2]; the first tokens are in common."""
    written = sampler.begin(tags)
    opening = opening if drafts > 1 else 0
    for at in range(opening):
        sampler.step(written, at, rng)
    number = torch.arange(len(tags) * drafts)
    written = written.rows(number // drafts)
    tokens = torch.full((len(number), sampler.length), sampler.codec.pad)
    log_p = torch.zeros(len(number))
    for at in range(opening, sampler.length):
        sampler.step(written, at, rng)
        going = (~written.done).nonzero()[:, 0]
        if len(going) <= FEWER * len(number) or at + 1 == sampler.length:
            tokens[number], log_p[number] = written.tokens, written.log_p
            number, written = number[going], written.rows(going)
        if not len(number):
            break
    return tokens.view(len(tags), drafts, -1), log_p.view(len(tags), drafts)


def again(ids: Sequence[int], rare: frozenset[int]) -> int:
    """How many rare tokens and runs of three stand further left already."""
    runs = list(zip(ids, ids[1:], ids[2:], strict=False))
    lone = [k for k in ids if k in rare]
    return len(runs) - len(set(runs)) + len(lone) - len(set(lone))


def rarely(texts: Sequence[Sequence[int]], sampler: Sampler) -> frozenset[int]:
    """Tokens with a letter that are fewer than one in 250 of some texts'."""
    often = Counter(k for ids in texts for k in ids)
    total = sum(often.values())
    decode = sampler.codec.tokenizer.id_to_token
    return frozenset(
        k for k, n in often.items() if n < COMMON * total and any(c.isalpha() for c in decode(k))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--genres", nargs="+", default=GENRES, choices=GENRES, help="in turn; one may come twice"
    )
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--length", type=int, default=40, help="tokens at most")
    parser.add_argument("--drafts", type=int, default=1, help="the best of so many, as `Drafts` takes it")
    parser.add_argument("--opening", type=int, default=4, help="tokens that those have in common")
    parser.add_argument("--toned", type=float, default=0.5, help="share that is told a tone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    rng = torch.Generator().manual_seed(options.seed)
    sampler = Sampler(options.model, options.temperature, options.length)
    codec, tones = sampler.codec, [tone for tone in TONES if tone != "none"]
    made: list[tuple[str, str, list[list[int]], list[float]]] = []
    for first in range(0, options.count, ROWS):
        numbers = range(first, min(first + ROWS, options.count))
        toned = torch.rand(len(numbers), generator=rng) < options.toned
        tone = torch.randint(len(tones), (len(numbers),), generator=rng)
        told = [tones[k] if given else "none" for k, given in zip(tone.tolist(), toned.tolist(), strict=True)]
        genre = [options.genres[n % len(options.genres)] for n in numbers]
        tags = torch.tensor([[codec.genres[g], codec.tones[t]] for g, t in zip(genre, told, strict=True)])
        tokens, log_p = draw(sampler, tags, options.drafts, options.opening, rng)
        for g, t, rows, scores in zip(genre, told, tokens.tolist(), log_p.tolist(), strict=True):
            made.append((g, t, [_cut(row, codec) for row in rows], scores))
    rare = rarely([ids for _, _, rows, _ in made for ids in rows], sampler)
    found = []
    for genre_, tone_, rows, scores in made:
        value = [score - REPEATS * again(ids, rare) for ids, score in zip(rows, scores, strict=True)]
        best = max(range(len(rows)), key=value.__getitem__)
        found.append({"genre": genre_, "tone": tone_, "text": codec.decode(rows[best]), "score": value[best]})
    options.out.write_text(json.dumps(found, indent=0), encoding="utf-8")


def _cut(row: Sequence[int], codec: TextCodec) -> list[int]:
    return list(row[: row.index(codec.eos)]) if codec.eos in row else [k for k in row if k != codec.pad]


if __name__ == "__main__":
    main()
