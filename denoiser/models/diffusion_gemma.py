"""DiffusionGemma: uniform noise, canvas by canvas, an encoder that caches what is finished, self-conditioning."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import UnsupportedModelError
from redraft.denoiser.models.layout import lead, never_written, positions
from redraft.denoiser.noise import Uniform
from redraft.denoiser.revision import Reconsider
from redraft.denoiser.selection import EntropyBound
from redraft.denoiser.settings import Settings
from redraft.denoiser.step import Prompt, Step
from redraft.denoiser.stopping import Patience
from redraft.denoiser.vocabulary import Vocabulary


@dataclass
class _Encoded:
    """What the encoder has read behind one prompt: its cache, which of its positions count, how much canvas."""

    prompt: Prompt
    cache: Any
    seen: Tensor
    done: int
    masks: Any = None


class DiffusionGemma(Denoiser):
    """`transformers`' `DiffusionGemmaForBlockDiffusion` behind the loop.

    The encoder reads `before`, the prompt and every finished block once; the decoder sees its cache and the block
    at hand. `begin()` gives the denoiser of one run, which keeps the caches of its prompts; `carry` gives the one
    of the next step, which takes the step's guided logits (logits / temperature + bias) for self-conditioning.
    Called outside a run it remembers nothing. Positions count from a row's first token, so that left padding
    changes no result. Defaults are those of the model's own sampler but for its temperature, which falls from
    0.8 to 0.4 there and is their mean here.
    """

    def __init__(self, model: Any, vocabulary: Vocabulary, *, name: str, before: Sequence[int] = ()) -> None:
        text = model.config.get_text_config()
        if len(vocabulary) != text.vocab_size:
            raise UnsupportedModelError(
                f"{name} has {text.vocab_size} tokens and the vocabulary {len(vocabulary)}: "
                "read the vocabulary with size=config.text_config.vocab_size"
            )
        self.name, self.vocabulary = name, vocabulary
        self.model = model.eval()
        self.noise = Uniform(text.vocab_size)
        self.device = next(model.parameters()).device
        self.block = int(model.config.canvas_length)
        self._before = torch.tensor(
            list(before) or [text.bos_token_id or 0], dtype=torch.int64, device=self.device
        )
        self.max_length = int(text.max_position_embeddings) - len(self._before)
        self.length = self.block
        self.settings = Settings(
            steps=48,
            selection=EntropyBound(0.1),
            temperature=0.6,
            revision=Reconsider(),
            stop=Patience(1, 0.005),
        )
        self._never = never_written(vocabulary, self.device)
        self._encoded: dict[int, _Encoded] | None = None
        self._echo: tuple[int, Tensor] | None = None

    def longest(self, prompt: Prompt) -> int:
        return self.max_length - prompt.tokens.shape[1]

    def begin(self) -> DiffusionGemma:
        run = copy.copy(self)
        run._encoded, run._echo = {}, None
        return run

    def carry(self, step: Step, bias: Tensor | None, temperature: float) -> DiffusionGemma:
        start = self._start(step.canvas)
        guided = step.logits[:, start:] / (temperature or 1.0)
        if bias is not None:
            guided = guided + bias.expand_as(step.logits)[:, start:]
        following = copy.copy(self)
        following._echo = (start, guided)
        return following

    @torch.inference_mode()
    def take(self, rows: Tensor) -> DiffusionGemma:
        moved = copy.copy(self)
        if self._echo is not None:
            moved._echo = (self._echo[0], self._echo[1][rows])
        for memory in (self._encoded or {}).values():
            memory.cache.batch_select_indices(rows)
            memory.seen, memory.masks = memory.seen[rows], None
        return moved

    @torch.inference_mode()
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        start = self._start(canvas)
        block = canvas.tokens[:, start:]
        memory = self._read(canvas.tokens[:, :start], prompt)
        seen = torch.cat([memory.seen, torch.ones_like(block, dtype=torch.bool)], dim=1)
        if prompt.padded and memory.masks is None:
            memory.masks = self.model.model.decoder.create_diffusion_decoder_attention_mask(
                config=self.model.config,
                inputs_embeds=torch.empty(*block.shape, 0, dtype=self.model.dtype, device=self.device),
                cache=memory.cache,
                decoder_attention_mask=seen,
            )
        echo = self._echo[1] if self._echo is not None and self._echo[0] == start else None
        logits: Tensor = self.model(
            cache=memory.cache,
            decoder_input_ids=block,
            self_conditioning_logits=echo,
            decoder_attention_mask=memory.masks,
            decoder_position_ids=positions(seen)[:, -block.shape[1] :],
        ).logits
        logits = logits.float().index_fill(-1, self._never, -torch.inf)
        return torch.nn.functional.pad(logits, (0, 0, start, 0))

    def _start(self, canvas: Canvas) -> int:
        """Where the canvas's last block begins."""
        assert self.block is not None
        return max(0, canvas.tokens.shape[1] - 1) // self.block * self.block

    def _read(self, finished: Tensor, prompt: Prompt) -> _Encoded:
        """The encoder's memory of the prompt and the finished blocks; what is new is read now."""
        memory = (self._encoded or {}).get(id(prompt))
        if memory is None:
            tokens, seen = lead(self._before, prompt)
            memory = _Encoded(prompt, None, seen[:, :0], 0)
            self._encode(memory, tokens, seen)
            if self._encoded is not None:
                self._encoded[id(prompt)] = memory
        if memory.done < finished.shape[1]:
            fresh = finished[:, memory.done :]
            self._encode(memory, fresh, torch.ones_like(fresh, dtype=torch.bool))
            memory.done, memory.masks = finished.shape[1], None
        return memory

    def _encode(self, memory: _Encoded, tokens: Tensor, seen: Tensor) -> None:
        memory.seen = torch.cat([memory.seen, seen], dim=1)
        memory.cache = self.model.model.encoder(
            input_ids=tokens,
            attention_mask=memory.seen if memory.prompt.padded else None,
            cache=memory.cache,
            position_ids=positions(memory.seen)[:, -tokens.shape[1] :],
        ).cache
