"""What every hook sees at one step, and the scene a guide is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.vocabulary import Vocabulary

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser


@dataclass(frozen=True)
class Prompt:
    """What stands before the canvas; never part of it.

    tokens [B, P] int64, all that the denoiser reads before the canvas (its begin token and tags included), and
    mask [B, P] bool (False: padding, on the left; `padded` where there is any); `lengths` the rows' own
    lengths, known on the host; `text` as the caller gave it (the first row's, where rows differ; `texts` has
    each row's), put into the chat template where `chat`; `fitted` where the canvas is as wide as the text, so that
    its width says something; `condition` names the denoiser's own tags, such as
    {"genre": "tale"}.
    """

    tokens: Tensor
    mask: Tensor
    text: str = ""
    padded: bool = False
    condition: Mapping[str, str] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    chat: bool = False
    fitted: bool = False

    def again(self, denoiser: Denoiser, batch: int, condition: Mapping[str, str]) -> Prompt:
        """The same rows' texts behind other tags, or for another denoiser; raises as its `prepare` does."""
        more: dict[str, Any] = {"chat": True} if self.chat else {}
        given = list(self.texts) if len(set(self.texts)) > 1 else self.text
        return replace(denoiser.prepare(given, batch, condition, **more), fitted=self.fitted)

    @property
    def positions(self) -> Tensor:
        """[B, P] int64: each token's place among its row's own, 0 at padding."""
        return (self.mask.long().cumsum(-1) - 1).clamp_min(0)


@dataclass(frozen=True)
class Scene:
    """Where a guide is bound: one vocabulary, device, canvas shape [batch, length] and number of steps.

    `ending` is 1 where the denoiser closes a text with an EOS token (it takes one position of the canvas),
    0 where the text fills the canvas exactly. `parts`: the canvas holds tokens that are parts of characters
    already, so that a vocabulary that keeps to whole characters where it can (`whole_first`) cannot.
    """

    vocabulary: Vocabulary
    device: torch.device
    batch: int
    length: int
    steps: int
    prompt: str = ""
    parts: bool = False

    @property
    def ending(self) -> int:
        """Positions of the canvas that are not text: 1 for the EOS token, 0 without one."""
        return int(self.vocabulary.eos_id is not None)


@dataclass(frozen=True)
class Step:
    """One refinement step, before anything is committed.

    `index` counts up from 0; `progress` = index / steps in [0, 1); `logits` [B, L, V] float32 are the
    denoiser's own, before temperature and guidance, -inf at tokens it never writes. `temperature` is the run's;
    `remaining` positions of the canvas lie behind what this step shows (0: it shows the whole; see `blocks`);
    `in_order`: what no guide anchors is committed from the left, one token a step.
    """

    index: int
    steps: int
    canvas: Canvas
    logits: Tensor
    prompt: Prompt
    denoiser: Denoiser
    random: Randomness
    temperature: float = 1.0
    remaining: int = 0
    in_order: bool = False

    @cached_property
    def log_p(self) -> Tensor:
        """[B, L, V] log softmax(logits), nats: computed once, for all who ask."""
        return self.logits.log_softmax(-1)

    @property
    def progress(self) -> float:
        """How far the run is, in [0, 1)."""
        return self.index / self.steps
