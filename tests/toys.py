"""Small denoisers with known laws, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from redraft.denoiser import Absorbing, Canvas, Denoiser, Noise, Prompt, Uniform, Vocabulary
from redraft.denoiser.testing.toys import greedy

WORDS = [
    "the",
    "a",
    "an",
    "old",
    "dark",
    "storm",
    "lighthouse",
    "keeper",
    "dog",
    "cat",
    "sea",
    "ship",
    "ships",
    "was",
    "is",
    "ran",
    "sat",
    "home",
    "and",
    "very",
    "good",
    "bad",
    "happy",
    "sad",
    "red",
    "house",
    "night",
    "in",
    "on",
    "by",
    "with",
    "it",
    "he",
    "she",
    "they",
    "saw",
    "light",
]


def small_vocabulary(*, eos: bool = True, fragments: bool = True, whole_first: bool = False) -> Vocabulary:
    """All 256 bytes, common words with and without a leading space, pieces, one emoji; greedy longest match."""
    singles = (
        [bytes([b]) for b in range(256)] if fragments else [bytes([b]) for b in range(32, 127)] + [b"\n"]
    )
    pieces = [b"st", b"orm", b"ing", b" l", b"ight", b"'s", b". ", b", ", b'."', "😀".encode(), "é".encode()]
    words = [lead + form.encode() for w in WORDS for lead in (b"", b" ") for form in (w, w.capitalize())]
    table: list[bytes | None] = [None, None, None, None, *dict.fromkeys([*singles, *pieces, *words])]
    special = {"mask_id": 0, "eos_id": 1 if eos else None, "pad_id": 2 if eos else None}
    return Vocabulary(table, greedy(table), **special, whole_first=whole_first)


class Chaos(Denoiser):
    """Logits that are a fixed, rough function of the row's canvas: sharp, skewed and wrong, never uniform."""

    name = "chaos"

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        sharpness: float = 3.0,
        length: int = 24,
        seed: int = 0,
        noise: Noise | None = None,
        block: int | None = None,
    ) -> None:
        assert vocabulary.mask_id is not None
        self.vocabulary = vocabulary
        self.noise = noise or Absorbing(vocabulary.mask_id)
        self.block = block
        self.device = torch.device("cpu")
        self.length, self.max_length = length, 96
        self.calls = 0
        generator = torch.Generator().manual_seed(seed)
        size, width = len(vocabulary), 16
        self._in = torch.randn(size, width, generator=generator)
        self._out = torch.randn(width, size, generator=generator) * sharpness
        self._place = torch.randn(self.max_length, width, generator=generator)
        written = {vocabulary.eos_id, vocabulary.pad_id}
        never = [k for k, raw in enumerate(vocabulary.token_bytes) if raw is None and k not in written]
        self._never = torch.tensor(never)

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        self.calls += 1
        rows = []
        for tokens in canvas.tokens:  # row by row: the same numbers whatever the batch
            hidden = self._in[tokens]
            around = hidden + hidden.roll(1, 0) - hidden.roll(-1, 0) + self._place[: len(tokens)]
            rows.append(torch.tanh(around) @ self._out)
        return torch.stack(rows).index_fill(-1, self._never, -torch.inf)


def uniform(vocabulary: Vocabulary) -> Uniform:
    """Noise over all ids, specials included."""
    return Uniform(len(vocabulary))


class Exact(Denoiser):
    """The exact conditional marginals of a joint over all texts of `length` tokens of a tiny vocabulary.

    With one commit a step (steps = length) ancestral sampling reproduces the joint exactly.
    """

    name = "exact"

    def __init__(self, joint: Mapping[Sequence[int], float] | Tensor, symbols: str) -> None:
        self.vocabulary = Vocabulary(
            [*(s.encode() for s in symbols), None],
            lambda text: [symbols.index(c) for c in text],
            mask_id=len(symbols),
        )
        self.noise = Absorbing(len(symbols))
        self.device = torch.device("cpu")
        self.joint = torch.as_tensor(joint, dtype=torch.float64)
        self.length = self.max_length = self.joint.ndim
        self._words = torch.tensor(list(itertools.product(range(len(symbols)), repeat=self.length)))

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        size = len(self.vocabulary) - 1
        agrees = canvas.open[:, None, :] | (canvas.tokens[:, None, :] == self._words[None])
        weight = agrees.all(-1) * self.joint.flatten()  # [B, words]
        hot = torch.nn.functional.one_hot(self._words, size).double()
        marginal = torch.einsum("bw,wlv->blv", weight, hot) / weight.sum(-1)[:, None, None]
        log_p = marginal.clamp_min(1e-300).log().float()
        return torch.cat([log_p, torch.full_like(log_p[..., :1], -torch.inf)], dim=-1)
