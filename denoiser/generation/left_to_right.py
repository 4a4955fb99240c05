"""Guides inside an autoregressive `generate()`."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LogitsProcessor

from redraft.denoiser.generation.bound import BoundGuides
from redraft.denoiser.guide import Verdict


class LeftToRightProcessor(LogitsProcessor):
    """scores'[v] = scores[v] + bias[v] where far(delta(q, v)) <= N - t, else -inf.

    q is the language's state behind the t tokens written so far, read off `input_ids` at every call, so that
    beams may be reordered; far(q) the fewest tokens from q to acceptance, EOS counted, N the most new tokens
    and one more for an EOS that need not be written. By induction some token is always allowed. A row that is
    finished (or whose prefix some other processor took out of the language) is left as it is.
    """

    def __init__(self, bound: BoundGuides, prompt_length: int) -> None:
        self.bound, self.prompt_length = bound, prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """[B, V]: the scores of the next token, for `input_ids` [B, prompt_length + t] int64."""
        written = self.bound.written(input_ids, self.prompt_length)
        now = written.shape[1]
        size = len(self.bound.vocabulary)
        language, far = self.bound.tables(scores.device)
        state = self.bound.states(written)
        steered = self._biased(written, scores, now)
        left = (
            self.bound.length - now
        )  # tokens that may follow the one chosen now, the unwritten EOS included
        allowed = (far[language.delta[state]] <= left)[:, language.classes]  # [B, V]
        allowed = torch.nn.functional.pad(allowed, (0, max(0, scores.shape[1] - size)))[:, : scores.shape[1]]
        live = allowed.any(-1, keepdim=True) & (language.accept[state].logical_not())[:, None]
        # where other processors ruled out all that the language allows, the language wins
        lost = (allowed & steered.isneginf()).sum(-1, keepdim=True) == allowed.sum(-1, keepdim=True)
        kept = torch.where(allowed, torch.where(lost, 0.0, steered), -torch.inf)
        return torch.where(live, kept, scores)

    def check(self, sequences: Tensor) -> list[list[Verdict]]:
        """Every guide's verdict on each of `generate()`'s sequences [B, prompt_length + t]."""
        return self.bound.check(self.bound.written(sequences, self.prompt_length))

    def _biased(self, written: Tensor, scores: Tensor, now: int) -> Tensor:
        size = min(len(self.bound.vocabulary), scores.shape[1])
        canvas = torch.nn.functional.pad(written, (0, 1))  # the next token's place is the open one
        known = torch.nn.functional.pad(
            scores[:, :size].float(), (0, len(self.bound.vocabulary) - size), value=-torch.inf
        )
        spread = known[:, None, :].expand(-1, canvas.shape[1], -1)
        bias = self.bound.bias(self.bound.step(canvas, spread, now, now))
        if bias is None:
            return scores
        last = torch.broadcast_to(bias, spread.shape)[:, -1, :size].to(scores.dtype)
        return scores + torch.nn.functional.pad(last, (0, scores.shape[1] - size))
