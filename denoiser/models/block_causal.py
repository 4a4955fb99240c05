"""Block-causal masked diffusion models (LLaDA2.x, SDAR): blocks left to right, with an exact prefix cache."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError, UnsupportedModelError
from redraft.denoiser.models.layout import lead, never_written, positions
from redraft.denoiser.noise import Absorbing
from redraft.denoiser.step import Prompt
from redraft.denoiser.vocabulary import Vocabulary


@dataclass
class _Prefix:
    """Keys and values of the prompt and the finished blocks of one run: `done` positions of the whole sequence."""

    prompt: Prompt
    cache: Any
    done: int


class BlockCausal(Denoiser):
    """Prompt and canvas in one sequence; a position sees its own block and those before it; aligned logits.

    The model is called as `model(input_ids=[B, N], attention_mask, position_ids=[B, N], past_key_values,
    use_cache).logits` (`cache` where its forward has that name). `mask` "additive" passes [B, 1, N, M] of 0 and
    the dtype's minimum (LLaDA2.x), "boolean" [B, N, M] (SDAR). `store_kv`: the model's forward takes that flag
    and keeps nothing where it is False (SDAR); other caches are cut back after each step. Blocks count from the
    canvas's first position, those of the prompt backwards from there, so that padding on the left shifts none. Finished blocks see nothing behind
    them and never change, so their keys and values are kept, which changes no result (`cached=False` computes
    everything anew).
    """

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary,
        *,
        name: str,
        block: int,
        before: Sequence[int] = (),
        mask: Literal["additive", "boolean"] = "additive",
        store_kv: bool = False,
        cached: bool = True,
        max_positions: int = 4096,
    ) -> None:
        if vocabulary.mask_id is None:
            raise UnsupportedModelError(f"{name} has no mask token: a block-causal diffusion model needs one")
        if block < 1:
            raise InvalidGuideError(
                f"the block of {name} is {block}: use the block length it was trained with"
            )
        self.name, self.vocabulary, self.model = name, vocabulary, model.eval()
        self.noise = Absorbing(vocabulary.mask_id)
        self.device = next(model.parameters()).device
        self.block = block
        self._before = torch.tensor(list(before), dtype=torch.int64, device=self.device)
        native = "cache" in inspect.signature(model.forward).parameters  # the name in newer `transformers`
        self._cache_name = "cache" if native else "past_key_values"
        self._boolean, self._store_kv, self._cached = mask == "boolean", store_kv, cached
        self.max_length = max_positions - len(before)
        self._never = never_written(vocabulary, self.device)
        self._prefixes: dict[int, _Prefix] | None = None

    def longest(self, prompt: Prompt) -> int:
        return self.max_length - prompt.tokens.shape[1]

    def begin(self) -> BlockCausal:
        run = copy.copy(self)
        run._prefixes = {} if self._cached else None
        return run

    @torch.inference_mode()
    def take(self, rows: Tensor) -> BlockCausal:
        for prefix in (self._prefixes or {}).values():
            prefix.cache.batch_select_indices(rows)
        return self

    @torch.inference_mode()
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        assert self.block is not None
        length = canvas.tokens.shape[1]
        start = max(0, length - 1) // self.block * self.block
        head, shown = lead(self._before, prompt)
        tokens = torch.cat([head, canvas.tokens], dim=1)
        seen = torch.cat([shown, torch.ones_like(canvas.open)], dim=1)
        begin, end = head.shape[1] + start, head.shape[1] + length
        number = (torch.arange(end, device=self.device) - head.shape[1]).div(
            self.block, rounding_mode="floor"
        )
        allowed = number[:, None] >= number
        # padding sees itself, so that no row is empty
        own = torch.eye(len(number), dtype=torch.bool, device=self.device)
        allowed = (allowed & seen[:, None, :]) | own
        place = positions(seen)

        def forward(first: int, last: int, prefix: _Prefix | None, keep: bool) -> Tensor:
            """Logits of positions [first, last) that see the cached ones before `first`, or nothing."""
            more: dict[str, Any] = {"use_cache": prefix is not None}
            if prefix is not None:
                more[self._cache_name] = prefix.cache
                if self._store_kv:
                    more["store_kv"] = keep
            logits: Tensor = self.model(
                input_ids=tokens[:, first:last],
                attention_mask=self._mask(allowed[:, first:last, :last]),
                position_ids=place[:, first:last],
                **more,
            ).logits
            if prefix is not None and not keep and not self._store_kv:
                prefix.cache.crop(first - last)
            return logits

        if self._prefixes is None:
            logits = forward(0, end, None, keep=False)[:, begin:]
        else:
            prefix = self._prefixes.get(id(prompt)) or _Prefix(prompt, _new_cache(), 0)
            self._prefixes[id(prompt)] = prefix
            if prefix.done < begin:
                forward(prefix.done, begin, prefix, keep=True)
                prefix.done = begin
            logits = forward(begin, end, prefix, keep=False)
        logits = logits[..., : len(self.vocabulary)].float().index_fill(-1, self._never, -torch.inf)
        return torch.nn.functional.pad(logits, (0, 0, start, 0))

    def _mask(self, allowed: Tensor) -> Tensor:
        if self._boolean:
            return allowed
        dtype = getattr(self.model, "dtype", torch.float32)
        least = torch.finfo(dtype).min
        return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill(~allowed, least)[
            :, None
        ]


def _new_cache() -> Any:
    from transformers.cache_utils import DynamicCache

    return DynamicCache()
