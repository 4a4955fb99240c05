"""What adapters that write behind left-padded prompts share."""

from __future__ import annotations

import torch
from torch import Tensor

from redraft.denoiser.step import Prompt
from redraft.denoiser.vocabulary import Vocabulary


def never_written(vocabulary: Vocabulary, device: torch.device) -> Tensor:
    """Ids [n] of the tokens that stand for no text, but for EOS and the padding behind it."""
    written = {vocabulary.eos_id, vocabulary.pad_id if vocabulary.eos_id is not None else None}
    never = [k for k, raw in enumerate(vocabulary.token_bytes) if not raw and k not in written]
    return torch.tensor(never, dtype=torch.int64, device=device)


def lead(before: Tensor, prompt: Prompt) -> tuple[Tensor, Tensor]:
    """The model's own first tokens `before` [n] and the prompt's, padding moved to the far left: [B, n + P] each.

    The first tokens stand beside the prompt's own whatever the padding; the second tensor is False at padding.
    """
    width, rows = len(before), len(prompt.tokens)
    shift = (~prompt.mask).sum(-1, keepdim=True)
    place = torch.arange(width + prompt.tokens.shape[1], device=prompt.tokens.device).expand(rows, -1) - shift
    tokens = torch.cat([prompt.tokens.new_zeros(rows, width), prompt.tokens], dim=1)
    if width:
        inside = (place >= 0) & (place < width)
        tokens = torch.where(inside, before[place.clamp(0, width - 1)], tokens)
    return tokens, place >= 0


def positions(seen: Tensor) -> Tensor:
    """[B, N]: each position's number among those that count, from 0."""
    return (seen.long().cumsum(-1) - 1).clamp_min(0)
