"""From logits to the distributions a draft is drawn from: temperature, bias, truncation, and where the text ends."""

from __future__ import annotations

import torch
from torch import Tensor

from redraft.denoiser.language import Language
from redraft.denoiser.settings import Settings
from redraft.denoiser.step import Step
from redraft.denoiser.truncate import truncate
from redraft.denoiser.vocabulary import Vocabulary


def distributions(step: Step, bias: Tensor | None, settings: Settings, language: Language) -> Tensor:
    """[B, L, V] log-weights: log softmax(logits / T) + bias, normalised and truncated; T = 0: log p - max log p.

    With an EOS token the text's end is one choice, not L independent ones. Given the end n, positions before
    it hold text and those behind it padding: the weight of EOS at n is l(n) = p_n(EOS)^(1/T) / sum_n, text
    tokens are normalised among themselves, padding weighs 1. Unconstrained, the weights of all canvases sum
    to 1, so the pressure -log Z counts the guides alone. Where more blocks follow, the text may also go on: its
    weight prod_n (1 - p_n(EOS)) joins the sum, and stands at the text tokens of the last position.
    """
    eos, pad = step.denoiser.vocabulary.eos_id, step.denoiser.vocabulary.pad_id
    if eos is None:
        return _tempered(step.logits, bias, settings, step.canvas.open, language)
    ends = [eos] if pad is None or pad == eos else [eos, pad]
    columns = torch.tensor(ends, device=step.logits.device)
    own = step.logits.index_fill(-1, columns, -torch.inf)
    text = _tempered(own, bias, settings, step.canvas.open, language, spoil=True)
    stop, beyond = _end(step, bias, settings.temperature, step.denoiser.vocabulary)
    if beyond is not None:
        text = torch.cat([text[:, :-1], text[:, -1:] + beyond[:, None, None]], dim=1)
    tail = torch.zeros_like(stop)
    return text.index_copy(-1, columns, torch.stack([stop, tail], dim=-1)[..., : len(ends)])


def _tempered(
    logits: Tensor,
    bias: Tensor | None,
    settings: Settings,
    open: Tensor,
    language: Language,
    *,
    spoil: bool = False,
) -> Tensor:
    """`spoil`: the logits may be written over, as each new [B, L, V] costs as much as the arithmetic."""
    if settings.temperature == 0:
        scores = logits if bias is None else logits + bias
        return scores - scores.amax(-1, keepdim=True)
    if settings.temperature != 1:
        logits = logits.div_(settings.temperature) if spoil else logits / settings.temperature
        spoil = True
    if bias is not None:
        logits = logits.add_(bias) if spoil else logits + bias
    return truncate(
        logits.log_softmax(-1),
        open,
        top_k=settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        language=language,
    )


def _end(
    step: Step, bias: Tensor | None, temperature: float, vocabulary: Vocabulary
) -> tuple[Tensor, Tensor | None]:
    """[B, L]: log l(n), the log-probability that the text ends at position n; [B]: that it goes on, or None."""
    log_stop = step.log_p[..., vocabulary.eos_id]
    if vocabulary.pad_id is None or vocabulary.pad_id == vocabulary.eos_id:
        # EOS is its own padding: p_n(EOS) = P(end <= n), and the end is where it rises
        before = torch.nn.functional.pad(log_stop.exp(), (1, 0))[..., :-1].cummax(-1).values
        log_stop = (log_stop.exp() - before).clamp_min(1e-12).log()
    beyond = None
    if step.remaining:
        stays = torch.log1p(-log_stop.exp().clamp_max(1 - 1e-6))
        beyond = torch.where(step.canvas.open, stays, 0.0).sum(-1).clamp_min(-1e4)
    if bias is not None:
        log_stop = log_stop + bias.expand_as(step.logits)[..., vocabulary.eos_id]
    log_stop = torch.where(step.canvas.open, log_stop, -1e4).clamp_min(-1e4)
    choices = log_stop if beyond is None else torch.cat([log_stop, beyond[:, None]], dim=1)
    scaled = choices if temperature == 0 else choices / temperature
    choices = scaled - (
        scaled.amax(-1, keepdim=True) if temperature == 0 else scaled.logsumexp(-1, keepdim=True)
    )
    return (choices, None) if beyond is None else (choices[:, :-1], choices[:, -1])
