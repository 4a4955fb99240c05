"""What the absorbing families share: prompt and canvas in one sequence, rows that differ in length, a text's end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.chat import ChatTemplate
from redraft.denoiser.errors import UnsupportedModelError
from redraft.denoiser.noise import Absorbing
from redraft.denoiser.step import Prompt
from redraft.denoiser.vocabulary import Vocabulary


@dataclass(frozen=True)
class Row:
    """One forward pass: tokens [B, N] int64; `seen` [B, N] bool and `place` [B, N] int64 where some row is
    padded, else None; `open` [B] float32: the share of the canvas that is open."""

    tokens: Tensor
    seen: Tensor | None
    place: Tensor | None
    open: Tensor


class OneSequence(Denoiser):
    """`[padding] begin prompt canvas end` in one bidirectional pass; a family says how its model is called.

    `shift` is 1 where the logits of position i stand at i - 1. Rows whose prompts differ in length are padded
    on the left where `pads`, which promises that the model hides padding and takes positions; otherwise rows
    of one length run together, each group without padding, so that no row ever depends on its neighbours.
    `ends`: further tokens with which the model ends a text; their probability counts as EOS.
    """

    shift: ClassVar[int] = 0
    pads: bool = False

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary,
        *,
        name: str,
        before: Sequence[int] = (),
        after: Sequence[int] = (),
        max_positions: int = 512,
        ends: Sequence[int] = (),
        filler: int | None = None,
        template: ChatTemplate | None = None,
    ) -> None:
        if vocabulary.mask_id is None:
            raise UnsupportedModelError(f"{name} has no mask token: a masked denoiser needs one")
        self.name = name
        self.model = model.eval()
        self.vocabulary = vocabulary
        self.noise = Absorbing(vocabulary.mask_id)
        self.device = next(model.parameters()).device
        self.filler = vocabulary.mask_id if filler is None else filler
        self.max_length = max_positions - len(before) - len(after)
        self.length = min(type(self).length, self.max_length)
        self._before = tuple(before)
        self._after = torch.tensor(list(after), dtype=torch.int64, device=self.device)
        self._positions = max_positions
        self.template = template
        eos = vocabulary.eos_id
        written = {eos, vocabulary.pad_id if eos is not None else None}
        never = [k for k, raw in enumerate(vocabulary.token_bytes) if not raw and k not in written]
        self._never = torch.tensor(never, dtype=torch.int64, device=self.device)
        folded = sorted({eos, *ends}) if eos is not None else []
        self._ends = torch.tensor(folded, dtype=torch.int64, device=self.device)

    def forward(self, row: Row) -> Tensor:
        """Logits [B, N, at least V] of the whole sequence, as the model gives them."""
        raise NotImplementedError

    def lead(self, text: str, condition: Mapping[str, str], *, chat: bool = False) -> list[int]:
        own = super().lead(text, condition, chat=chat)
        return own if chat else [*self._before, *own]  # a template brings its own begin token

    def longest(self, prompt: Prompt) -> int:
        return min(self.max_length, self._positions - prompt.tokens.shape[1] - len(self._after))

    @torch.inference_mode()
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        if self.pads or not prompt.padded:
            return self._logits(canvas.tokens, canvas.open, prompt.tokens, prompt)
        width = prompt.tokens.shape[1]
        parts, order = [], []
        for length in dict.fromkeys(prompt.lengths):
            rows = [k for k, own in enumerate(prompt.lengths) if own == length]
            index = torch.tensor(rows, device=self.device)
            lead = prompt.tokens[index, width - length :]
            parts.append(self._logits(canvas.tokens[index], canvas.open[index], lead, None))
            order += rows
        back = torch.tensor(sorted(range(len(order)), key=order.__getitem__), device=self.device)
        return torch.cat(parts)[back]

    def _logits(self, canvas: Tensor, open: Tensor, lead: Tensor, prompt: Prompt | None) -> Tensor:
        batch, length = canvas.shape
        tokens = torch.cat([lead, canvas, self._after.expand(batch, -1)], dim=1)
        seen = place = None
        if prompt is not None and prompt.padded:
            rest = prompt.mask.new_ones(batch, tokens.shape[1] - lead.shape[1])
            seen = torch.cat([prompt.mask, rest], dim=1)
            place = (seen.long().cumsum(-1) - 1).clamp_min(0)
        logits = self.forward(Row(tokens, seen, place, open.float().mean(-1)))
        start = lead.shape[1] - self.shift
        if start < 0:  # nothing stands before the canvas: its first position has only its own logits
            logits, start = torch.cat([logits[:, :1], logits], dim=1), 0
        return self.finish(logits[:, start : start + length])

    def finish(self, logits: Tensor) -> Tensor:
        """[B, L, V] float32 of the canvas: cut or widened to the vocabulary, ends folded, specials -inf."""
        size = len(self.vocabulary)
        logits = logits[..., :size].float()
        if logits.shape[-1] < size:
            logits = torch.nn.functional.pad(logits, (0, size - logits.shape[-1]), value=-torch.inf)
        if len(self._ends) > 1:
            eos = self.vocabulary.eos_id
            total = logits[..., self._ends].logsumexp(-1)
            logits = torch.cat([logits[..., :eos], total[..., None], logits[..., eos + 1 :]], dim=-1)  # type: ignore[operator]
        return logits.index_fill(-1, self._never, -torch.inf)
