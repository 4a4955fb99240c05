"""Which texts come when: an endless, seeded, stateless stream of rows grouped into batches by length.

Pool k is a function of (seed, k, corpus) alone, so the position in the data is two integers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from redraft.denoiser.training.corpus import REAL, Passage
from redraft.denoiser.training.tokenizer import TextCodec

CANVAS = 128
_POOL = 1024  # rows drawn and sorted by length together


@dataclass(frozen=True)
class Mixture:
    """Shares of the rows: real text, longer rows made of two passages, tags dropped; what each hand counts.

    roomy: the share of the batches whose canvas has any amount of room after the text. hands: (number, weight), the
    weight of the passages of this hand and those after it, up to the next number; the first hands count 1.
    """

    real: float = 0.15
    roomy: float = 0.25
    joined: float = 0.08
    drop_tag: float = 0.15
    drop_tag_real: float = 0.05
    hands: tuple[tuple[int, float], ...] = ((10, 2.0),)

    def weight(self, hand: int) -> float:
        """What a passage of this hand counts."""
        return max(((number, w) for number, w in self.hands if number <= hand), default=(0, 1.0))[1]


@dataclass(frozen=True)
class Row:
    """`[genre][tone] text <eos>` as ids; `text` is cut to the canvas, and then has no EOS."""

    genre: int
    tone: int
    text: tuple[int, ...]
    real: bool

    def __len__(self) -> int:
        return len(self.text)


@dataclass(frozen=True)
class Position:
    """Where in the data a run is: the next batch is number `batch` of pool `pool`."""

    pool: int = 0
    batch: int = 0


class RowStream:
    """Batches of rows. Each source is walked in seeded permutations, its texts seen equally often."""

    def __init__(
        self, passages: Sequence[Passage], codec: TextCodec, mixture: Mixture, *, tokens: int, seed: int
    ) -> None:
        self.codec, self.mixture, self.tokens, self.seed = codec, mixture, tokens, seed
        self.passages = list(passages)
        self.ids = codec.encode_all([p.text for p in self.passages])
        self.sources: dict[str, list[int]] = defaultdict(list)
        self.kin: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, passage in enumerate(self.passages):
            self.sources[passage.source].append(index)
            self.kin[passage.genre, passage.tone].append(index)
        self.newline = codec.encode("\n")
        self.shares = self._shares()
        self._permutation = lru_cache(maxsize=256)(self._permute)

    def batches(self, start: Position) -> Iterator[tuple[Position, list[Row], int]]:
        """Yield (position after this batch, rows, canvas width) for ever."""
        pool, skip = start.pool, start.batch
        while True:
            plan = self._plan(pool)
            for index in range(skip, len(plan)):
                rows, width = plan[index]
                last = index + 1 == len(plan)
                yield (Position(pool + 1, 0) if last else Position(pool, index + 1)), rows, width
            pool, skip = pool + 1, 0

    def _plan(self, pool: int) -> list[tuple[list[Row], int]]:
        rng = np.random.default_rng((self.seed, 1, pool))
        rows = [self._row(index, rng) for index in self._indices(pool)]
        order = np.argsort([len(row) + rng.random() for row in rows], kind="stable")
        plan: list[tuple[list[Row], int]] = []
        at = 0
        while at < len(order):
            count, width = self._fit([len(rows[i]) for i in order[at:]], rng)
            plan.append(([rows[i] for i in order[at : at + count]], width))
            at += count
        return [plan[i] for i in rng.permutation(len(plan))]

    def _fit(self, lengths: Sequence[int], rng: np.random.Generator) -> tuple[int, int]:
        """(rows, canvas width) of the next batch: longest row + EOS + slack, much of it where it is roomy."""
        large = rng.random() < self.mixture.roomy
        share = rng.random()
        best = (1, min(CANVAS, lengths[0] + 1))
        for count in range(1, len(lengths) + 1):
            needed = min(CANVAS, lengths[count - 1] + 1)
            slack = share * (CANVAS - needed) if large else min(CANVAS - needed, 8 * share * share)
            width = needed + int(slack)
            if count > 1 and count * (width + 2) > self.tokens:
                break
            best = (count, width)
        return best

    def _indices(self, pool: int) -> Iterator[int]:
        """Each source gives its share of the pool, fractions carried exactly from pool to pool."""
        for number, (source, share) in enumerate(self.shares.items()):
            members = self.sources[source]
            for draw in range(math.floor(pool * _POOL * share), math.floor((pool + 1) * _POOL * share)):
                epoch, place = divmod(draw, len(members))
                yield members[self._permutation(number, len(members), epoch)[place]]

    def _permute(self, source: int, size: int, epoch: int) -> np.ndarray:
        return np.random.default_rng((self.seed, 2, source, epoch)).permutation(size)

    def _row(self, index: int, rng: np.random.Generator) -> Row:
        passage, mix = self.passages[index], self.mixture
        real = passage.genre in REAL
        text = self.ids[index]
        if not real and rng.random() < mix.joined:
            other = self.kin[passage.genre, passage.tone]
            text = [*text, *self.newline, *self.ids[other[int(rng.integers(len(other)))]]]
        drop = mix.drop_tag_real if real else mix.drop_tag
        genre = "none" if rng.random() < drop else passage.genre
        tone = "none" if rng.random() < drop else passage.tone
        return Row(self.codec.genres[genre], self.codec.tones[tone], tuple(text[:CANVAS]), real)

    def _shares(self) -> dict[str, float]:
        """Genres by the square root of their size; in a genre, files by size times the weight of the hand."""
        mix = self.mixture
        weight: dict[str, float] = {}
        genre_of = {s: self.passages[m[0]].genre for s, m in self.sources.items()}
        for source, members in self.sources.items():
            weight[source] = len(members) * mix.weight(self.passages[members[0]].hand)
        totals: dict[str, float] = defaultdict(float)
        sizes: dict[str, int] = defaultdict(int)
        for source, genre in genre_of.items():
            totals[genre] += weight[source]
            sizes[genre] += len(self.sources[source])
        share = {s: weight[s] / totals[g] * math.sqrt(sizes[g]) for s, g in genre_of.items()}
        mass = {r: sum(v for s, v in share.items() if (genre_of[s] in REAL) == r) for r in (True, False)}
        part = {True: mix.real, False: 1 - mix.real}
        if not mass[True] or not mass[False]:
            part = {True: 1.0, False: 1.0}
        scale = {real: part[real] / mass[real] for real in mass if mass[real]}
        return {s: v * scale[genre_of[s] in REAL] for s, v in sorted(share.items())}
