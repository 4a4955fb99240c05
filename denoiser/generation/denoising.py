"""Guides inside DiffusionGemma's own `generate()`, once a denoising step."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LogitsProcessor

from redraft.denoiser.exact import posterior
from redraft.denoiser.generation.bound import BoundGuides
from redraft.denoiser.guide import Verdict
from redraft.denoiser.language import Language

FLOOR = -1e4
LEAD = 1e-3  # nats by which the word of the language stands above its rivals


class DenoisingProcessor(LogitsProcessor):
    """scores'[i, v] = log posterior marginal of token v at i, and the most probable word of the language first.

    `generate()` keeps the position-wise best of the last step's scores. Independent draws, or the best of the
    marginals, need not be in the language; so at each position the token of the most probable word (Viterbi)
    is raised to LEAD above the best marginal. What the sampler draws on the way is free; what is kept is in
    the language, and where the canvas is not the last, it can still be completed on those that follow.
    Processors never see the canvas, so soft guides see it open; temperatures stay the sampler's.
    """

    def __init__(self, bound: BoundGuides, prompt_length: int, canvas_length: int) -> None:
        self.bound, self.prompt_length, self.canvas_length = bound, prompt_length, canvas_length

    def __call__(self, input_ids: Tensor, scores: Tensor, cur_step: int | Tensor) -> Tensor:
        """[B, canvas, V] float32; `input_ids` [B, prompt_length + whole canvases], `cur_step` counts down."""
        written = self.bound.written(input_ids, self.prompt_length)
        index = max(0, self.bound.steps - int(cur_step))
        size = len(self.bound.vocabulary)
        known = torch.nn.functional.pad(
            scores[..., :size].float(), (0, max(0, size - scores.shape[-1])), value=-torch.inf
        )
        blank = torch.zeros_like(known[..., 0], dtype=torch.int64)
        bias = self.bound.bias(self.bound.step(blank, known, index, 0))
        log_p = (known if bias is None else known + bias).log_softmax(-1)
        language, done = self._language(written, known.device)
        beliefs = posterior(language, log_p, blank, torch.ones_like(blank, dtype=torch.bool))
        steered = beliefs.marginals().log().clamp_min(FLOOR)
        word = beliefs.best()[..., None]
        steered = steered.scatter(-1, word, steered.amax(-1, keepdim=True) + LEAD)
        wide = torch.nn.functional.pad(steered, (0, max(0, scores.shape[-1] - size)), value=2 * FLOOR)
        return torch.where(done[:, None, None], scores.float(), wide[..., : scores.shape[-1]])

    def check(self, sequences: Tensor) -> list[list[Verdict]]:
        """Every guide's verdict on each of `generate()`'s sequences [B, prompt_length + t]."""
        return self.bound.check(self.bound.written(sequences, self.prompt_length))

    def _language(self, written: Tensor, device: torch.device) -> tuple[Language, Tensor]:
        """This canvas's language, row by row from the state behind the finished canvases; rows that are finished."""
        whole, far = self.bound.tables(device)
        state = self.bound.states(written)
        left = self.bound.length - written.shape[1] - self.canvas_length
        reach = far <= max(0, left) + 1  # the unwritten EOS behind the last token counts
        own = Language(whole.delta, whole.classes, reach, state)
        return own, whole.accept[state]
