"""A byte-level BPE whose special tokens can never come out of a user's text."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from redraft.denoiser.training.corpus import GENRES, REAL, TONES, Passage

PAD, EOS, MASK = "<pad>", "<eos>", "<mask>"
SPECIALS = (
    PAD,
    EOS,
    MASK,
    *(f"<genre:{genre}>" for genre in GENRES),
    *(f"<tone:{tone}>" for tone in TONES),
)
VOCABULARY = 12_000


@dataclass(frozen=True)
class TextCodec:
    """A tokenizer with its special ids; `encode` treats every character as text."""

    tokenizer: Tokenizer
    pad: int
    eos: int
    mask: int
    genres: dict[str, int]
    tones: dict[str, int]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> TextCodec:
        tokenizer.encode_special_tokens = True  # a literal "<mask>" is text
        vocabulary = tokenizer.get_vocab()
        ids = {name: vocabulary[name] for name in SPECIALS if name in vocabulary}
        if missing := [name for name in SPECIALS if name not in ids]:
            raise ValueError(f"tokenizer lacks {missing}; train it with redraft.denoiser.training.tokenizer")
        return cls(
            tokenizer,
            ids[PAD],
            ids[EOS],
            ids[MASK],
            {genre: ids[f"<genre:{genre}>"] for genre in GENRES},
            {tone: ids[f"<tone:{tone}>"] for tone in TONES},
        )

    @classmethod
    def load(cls, file: Path) -> TextCodec:
        return cls.of(Tokenizer.from_file(str(file)))

    @property
    def size(self) -> int:
        return int(self.tokenizer.get_vocab_size())

    @property
    def special(self) -> frozenset[int]:
        return frozenset({self.pad, self.eos, self.mask, *self.genres.values(), *self.tones.values()})

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(e.ids) for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        """Text up to the first EOS, special tokens left out."""
        text: list[int] = []
        for index in ids:
            if index == self.eos:
                break
            if index not in self.special:
                text.append(index)
        return str(self.tokenizer.decode(text, skip_special_tokens=False))

    def save(self, file: Path) -> None:
        self.tokenizer.save(str(file))


def train_tokenizer(passages: Sequence[Passage], *, size: int = VOCABULARY, seed: int = 0) -> TextCodec:
    """BPE of `size` entries, all 256 bytes among them; real text is a quarter of the passages' words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=[AddedToken(name, special=True, normalized=False) for name in SPECIALS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_weighted(passages, seed), trainer)
    return TextCodec.of(tokenizer)


def _weighted(passages: Sequence[Passage], seed: int) -> Iterator[str]:
    own = [p.text for p in passages if p.genre not in REAL]
    real = [p.text for p in passages if p.genre in REAL]
    yield from own
    room = sum(len(t.split()) for t in own) // 4 if own else sum(len(t.split()) for t in real)
    random.Random(seed).shuffle(real)
    for text in real:
        if room <= 0:
            return
        room -= len(text.split())
        yield text
