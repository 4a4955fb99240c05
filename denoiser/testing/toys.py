"""A small vocabulary and a denoiser that is sharp, skewed and wrong: where guides are put to the proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.noise import Absorbing
from redraft.denoiser.step import Prompt
from redraft.denoiser.vocabulary import Vocabulary

WORDS = (
    "the", "a", "an", "old", "dark", "storm", "lighthouse", "keeper", "dog", "cat", "sea", "ship", "was", "is", "ran",
    "sat", "home", "and", "very", "good", "bad", "happy", "sad", "red", "house", "night", "in", "on", "by", "with",
    "it", "he", "she", "they", "saw", "light",
)  # fmt: skip
PIECES = ("st", "orm", "ing", " l", "ight", "'s", ". ", ", ", '."', "é", "😀", "\r\n")


def greedy(table: Sequence[bytes | None]) -> Callable[[str], list[int]]:
    """The encoder that cuts a text into a table's tokens, the longest first; 0 where there is none."""
    index = {raw: token for token, raw in enumerate(table) if raw}
    longest = max(map(len, index))

    def encode(text: str) -> list[int]:
        raw, at, ids = text.encode(), 0, []
        while at < len(raw):
            size = next((n for n in range(longest, 0, -1) if raw[at : at + n] in index), 1)
            ids.append(index.get(raw[at : at + size], 0))
            at += size
        return ids

    return encode


def toy_vocabulary(alphabet: bytes = bytes(range(256)), words: Sequence[str] = WORDS) -> Vocabulary:
    """Single bytes, `words` with and without a space before them and a capital, a few pieces; with EOS.

    Texts are cut greedily, longest token first. Of the special tokens 0 is the mask, 1 EOS, 2 padding.
    """
    singles = [bytes([byte]) for byte in alphabet]
    spelled = [lead + form for w in words for lead in ("", " ") for form in (w, w.capitalize())]
    longer = [piece.encode() for piece in (*PIECES, *spelled) if set(piece.encode()) <= set(alphabet)]
    table: list[bytes | None] = [None, None, None, *dict.fromkeys([*singles, *longer])]
    return Vocabulary(table, greedy(table), mask_id=0, eos_id=1, pad_id=2)


class ToyDenoiser(Denoiser):
    """Logits that are a fixed rough function of a row's tokens and their neighbours; the same for every batch.

    `sharpness` is about the logits' standard deviation over tokens, in nats. `conditions` are tags that it takes,
    by kind; a tag shifts the logits at every place. `calls` counts forward passes.
    """

    name = "toy"

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        *,
        length: int = 24,
        sharpness: float = 3.0,
        seed: int = 0,
        conditions: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.vocabulary = vocabulary or toy_vocabulary()
        own = self.vocabulary
        if own.mask_id is None:
            raise ValueError("a toy denoiser masks: give its vocabulary a mask_id")
        self.noise = Absorbing(own.mask_id)
        self.device = torch.device("cpu")
        self.length, self.max_length = length, 256
        self.calls = 0
        generator = torch.Generator().manual_seed(seed)
        width = 16
        self._in = torch.randn(len(own), width, generator=generator)
        self._out = torch.randn(width, len(own), generator=generator) * sharpness / 4
        self._place = torch.randn(self.max_length, width, generator=generator)
        self.conditions = dict(conditions or {})
        tags = [(kind, value) for kind, values in self.conditions.items() for value in values]
        self._tags = {tag: torch.randn(width, generator=generator) for tag in tags}
        written = {own.eos_id, own.pad_id if own.eos_id is not None else None}
        self._never = torch.tensor([k for k, b in enumerate(own.token_bytes) if not b and k not in written])

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        self.calls += 1
        rows = []
        tags = sum((self._tags[tag] for tag in prompt.condition.items()), start=torch.zeros(()))
        for tokens in canvas.tokens:  # row by row: the same numbers whatever the batch
            hidden = self._in[tokens]
            around = hidden + hidden.roll(1, 0) - hidden.roll(-1, 0) + self._place[: len(tokens)] + tags
            rows.append(torch.tanh(around) @ self._out)
        return torch.stack(rows).index_fill(-1, self._never, -torch.inf)
