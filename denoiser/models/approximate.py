"""Approximate block caching (Fast-dLLM's dual cache, Wu et al. 2025) for the embedded encoder: opt-in, not exact."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError, UnsupportedModelError
from redraft.denoiser.models.embedded import Embedded
from redraft.denoiser.models.encoder import Encoder
from redraft.denoiser.models.layout import positions
from redraft.denoiser.step import Prompt


@dataclass(frozen=True)
class _Memory:
    """Each row's last full pass over prompt and canvas, N = P + L positions.

    tokens [B, L]: the canvas it read; first [B]: where its block began; age [B]: calls since then; logits [B, L, V];
    pairs [B, layers, N, 2 * width]: keys and values, side by side.
    """

    tokens: Tensor
    first: Tensor
    age: Tensor
    logits: Tensor
    pairs: Tensor

    def take(self, rows: Tensor) -> _Memory:
        return _Memory(*(part[rows] for part in self._parts()))

    def put(self, rows: Tensor, new: _Memory) -> _Memory:
        pairs = zip(self._parts(), new._parts(), strict=True)
        return _Memory(*(old.index_copy(0, rows, part) for old, part in pairs))

    def _parts(self) -> tuple[Tensor, ...]:
        return self.tokens, self.first, self.age, self.logits, self.pairs


class Approximate(Embedded):
    """The embedded denoiser with a block cache: logits near the exact ones, fewer positions computed.

    A full pass stores every layer's keys and values. Until the next one only a row's current block (`block_length`
    positions, those of the first open one) is computed, against what is stored; logits elsewhere are the stored ones.
    A row has a full pass at every `refresh`-th call (1: always), when its block changes, and when a token outside
    its block does, so no key belongs to a token that is gone. Rows keep their own count; nothing depends on a
    neighbour. Each call reads the device once. Outside a run, and for another prompt than the run's, it is exact.
    `settings` get the block length. Raises `UnsupportedModelError` for another denoiser or a compiled network and
    `InvalidGuideError` for numbers below 1.
    """

    def __init__(self, exact: Denoiser, *, block_length: int = 32, refresh: int = 4) -> None:
        if not isinstance(exact, Embedded) or not isinstance(exact.model, Encoder):
            raise UnsupportedModelError(
                f"{exact!r} has no approximate cache: use it as it is (only the embedded kind has one)"
            )
        if getattr(exact.model, "_compiled_call_impl", None) is not None:
            raise UnsupportedModelError(
                f"{exact.name} is compiled, and the cache would go past that: leave compile out"
            )
        for name, value in (("block_length", block_length), ("refresh", refresh)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidGuideError(f"{name} is {value!r}: use a whole number from 1")
        self.__dict__.update(exact.__dict__)
        self.settings = exact.settings.override(block_length=block_length)
        self.block_length, self.refresh = block_length, refresh
        self._running = False
        self._prompt: Prompt | None = None
        self._memory: _Memory | None = None

    def begin(self) -> Approximate:
        run = copy.copy(self)
        run._running, run._prompt, run._memory = True, None, None
        return run

    @torch.inference_mode()
    def take(self, rows: Tensor) -> Approximate:
        run = copy.copy(self)
        run._memory = None if self._memory is None else self._memory.take(rows)
        return run

    @torch.inference_mode()
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        if not self._running or (self._prompt is not None and self._prompt is not prompt):
            return super().__call__(canvas, prompt)
        every = torch.arange(len(canvas.tokens), device=self.device)
        width = min(self.block_length, canvas.tokens.shape[1])
        first = self._first(canvas, width)
        if self._memory is None:
            self._prompt, self._memory = prompt, self._full(canvas, prompt, first, every)
            return self._memory.logits
        at = first[:, None] + torch.arange(width, device=self.device)
        memory = replace(self._memory, age=self._memory.age + 1)
        outside = torch.ones_like(canvas.open).scatter(1, at, False)
        changed = (first != memory.first) | ((canvas.tokens != memory.tokens) & outside).any(-1)
        due = ((memory.age >= self.refresh) | changed).tolist()
        stale, kept = (
            every.new_tensor([k for k, own in enumerate(due) if own is flag]) for flag in (True, False)
        )
        if len(stale):
            new = self._full(canvas, prompt, first[stale], stale)
            memory = memory.put(stale, new) if len(kept) else new
        self._memory = memory
        if not len(kept):
            return memory.logits
        near = self._near(canvas, prompt, at[kept], memory.pairs, kept)
        return memory.logits.index_put((kept[:, None], at[kept]), near)

    def _first(self, canvas: Canvas, width: int) -> Tensor:
        """[B]: where each row's current block begins; the last block is as long as the others, from further left."""
        length = canvas.open.shape[1]
        place = torch.arange(length, device=self.device)
        current = torch.where(canvas.open, place, length - 1).amin(-1)
        return (current // self.block_length * self.block_length).clamp_max(length - width)

    def _full(self, canvas: Canvas, prompt: Prompt, first: Tensor, rows: Tensor) -> _Memory:
        tokens, place, seen = self._sequence(canvas, prompt, rows)
        every = torch.arange(tokens.shape[1], device=self.device)[None]
        hidden, pairs = _through(self.model, tokens, place, _looks(seen, every))
        logits = self.finish(self.model.logits(hidden[:, prompt.tokens.shape[1] :]))
        return _Memory(canvas.tokens[rows], first, torch.zeros_like(rows), logits, pairs)

    def _near(self, canvas: Canvas, prompt: Prompt, at: Tensor, pairs: Tensor, rows: Tensor) -> Tensor:
        """Logits [b, W, V] of the positions `at` [b, W] of the canvas in the rows [b]."""
        tokens, place, seen = self._sequence(canvas, prompt, rows)
        at = at + prompt.tokens.shape[1]
        kept = pairs if len(rows) == len(pairs) else pairs[rows]
        hidden, _ = _through(
            self.model, tokens.gather(1, at), place.gather(1, at), _looks(seen, at), kept, at
        )
        return self.finish(self.model.logits(hidden))

    def _sequence(self, canvas: Canvas, prompt: Prompt, rows: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Tokens and places [b, N] of prompt and canvas, and what each sees [b, N, N]; None where all is."""
        whole = torch.cat([prompt.mask, torch.ones_like(canvas.open)], dim=1)[rows]
        tokens = torch.cat([prompt.tokens, canvas.tokens], dim=1)[rows]
        seen = self.seen(canvas, prompt)
        return tokens, positions(whole), None if seen is None else seen[rows]


def _looks(seen: Tensor | None, at: Tensor) -> Tensor | None:
    """bool [b, 1, n, N]: where the positions `at` [b or 1, n] look: at what is seen, and at themselves."""
    if seen is None:
        return None
    place = torch.arange(seen.shape[-1], device=seen.device)
    rows = seen.gather(1, at.expand(len(seen), -1)[..., None].expand(-1, -1, len(place)))
    return (rows | (at[..., None] == place))[:, None]


def _through(
    encoder: Encoder,
    tokens: Tensor,
    place: Tensor,
    seen: Tensor | None,
    kept: Tensor | None = None,
    at: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Last hidden states [B, n, width] of tokens [B, n], and the keys and values of all positions.

    `kept` [B, layers, N, 2 * width] are those of a full pass, in which the positions `at` [B, n] get their own;
    None: the tokens see each other alone. `seen` [B, 1, n, N] bool: where each of them looks.
    """
    hidden = encoder.norm(encoder.tokens(tokens) + encoder.positions(place))
    width, stored = hidden.shape[-1], []
    for number, module in enumerate(encoder.body.layers):
        layer = cast(nn.TransformerEncoderLayer, module)
        attention = layer.self_attn
        joined = functional.linear(hidden, attention.in_proj_weight, attention.in_proj_bias)
        query, pair = joined[..., :width], joined[..., width:]
        if kept is not None and at is not None:
            pair = kept[:, number].scatter(1, at[..., None].expand_as(pair), pair)
        stored.append(pair)
        q, k, v = (
            part.reshape(*part.shape[:2], attention.num_heads, -1).transpose(1, 2)
            for part in (query, *pair.chunk(2, -1))
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2)
        hidden = layer.norm1(hidden + attention.out_proj(mixed))
        hidden = layer.norm2(hidden + layer.linear2(functional.gelu(layer.linear1(hidden))))
    return hidden, torch.stack(stored, 1) if kept is None else kept
