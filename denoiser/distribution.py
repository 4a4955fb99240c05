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
    it hold text and those behind it padding: the weight of EOS at n is l(n) / sum_n l(n), text tokens are normalised
    among themselves, padding weighs 1. A text that has come to open position n ends there with the chance h(n) of EOS
    among all but padding, so l(n) = h(n) prod_{m < n} (1 - h(m)): written from left to right, the next token is drawn
    as the denoiser predicts it, but for the room that is left. Where EOS is its own padding l(n) is the rise of
    p_n(EOS) at n, to the power 1/T. Unconstrained, the weights of all canvases sum to 1, so the pressure -log Z counts
    the guides alone. Where more blocks follow, the text may also go on: its weight prod_n (1 - h(n)) joins the sum, and
    stands at the text tokens of the last position.
    """
    eos, pad = step.denoiser.vocabulary.eos_id, step.denoiser.vocabulary.pad_id
    temperature = settings.temperature
    if eos is None:
        weights = _normalised(_scores(step.logits, bias, temperature), temperature)
        return _truncated(weights, settings, step.canvas.open, language)
    ends = [eos] if pad is None or pad == eos else [eos, pad]
    columns = torch.tensor(ends, device=step.logits.device)
    own = step.logits.index_fill(-1, columns, -torch.inf)
    scores = _scores(own, bias, temperature, spoil=True)
    weights = _normalised(scores, temperature)
    stop, beyond = _end(step, bias, temperature, step.denoiser.vocabulary, scores, weights)
    text = _truncated(weights, settings, step.canvas.open, language)
    if beyond is not None:
        text = torch.cat([text[:, :-1], text[:, -1:] + beyond[:, None, None]], dim=1)
    tail = torch.zeros_like(stop)
    return text.index_copy_(-1, columns, torch.stack([stop, tail], dim=-1)[..., : len(ends)])


def _scores(logits: Tensor, bias: Tensor | None, temperature: float, *, spoil: bool = False) -> Tensor:
    """logits / T + bias; `spoil`: the logits may be written over, as each new [B, L, V] costs as much as the sums."""
    if temperature not in (0, 1):
        logits = logits.div_(temperature) if spoil else logits / temperature
        spoil = True
    if bias is not None:
        logits = logits.add_(bias) if spoil else logits + bias
    return logits


def _normalised(scores: Tensor, temperature: float) -> Tensor:
    return scores - scores.amax(-1, keepdim=True) if temperature == 0 else scores.log_softmax(-1)


def _truncated(weights: Tensor, settings: Settings, open: Tensor, language: Language) -> Tensor:
    if settings.temperature == 0:
        return weights
    return truncate(
        weights,
        open,
        top_k=settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        language=language,
    )


def _end(
    step: Step,
    bias: Tensor | None,
    temperature: float,
    vocabulary: Vocabulary,
    scores: Tensor,
    weights: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """[B, L]: log l(n), the log-probability that the text ends at position n; [B]: that it goes on, or None.

    `scores`, `weights` [B, L, V]: the text tokens', as they were and normalised.
    """
    eos, pad = vocabulary.eos_id, vocabulary.pad_id
    shared, greedy = pad is None or pad == eos, temperature == 0
    if shared:
        stop, stay = _rises(step, bias, temperature, vocabulary)
    else:
        end = step.logits[..., eos] if greedy else step.logits[..., eos] / temperature
        end = end if bias is None else end + bias.expand_as(step.logits)[..., eos]
        norm = scores.amax(-1) - weights.amax(-1)
        total = torch.maximum(end, norm) if greedy else torch.logaddexp(end, norm)
        stop, stay = end - total, norm - total  # log h(n), log (1 - h(n))
    stop = torch.where(step.canvas.open, stop, -1e4)
    stay = torch.where(step.canvas.open, stay, 0.0).clamp_min(-1e4)
    beyond = stay.sum(-1).clamp_min(-1e4) if step.remaining else None
    if not shared:
        stop = stop + stay.cumsum(-1) - stay
    stop = stop.clamp_min(-1e4)
    choices = stop if beyond is None else torch.cat([stop, beyond[:, None]], dim=1)
    choices = choices - (choices.amax(-1, keepdim=True) if greedy else choices.logsumexp(-1, keepdim=True))
    return (choices, None) if beyond is None else (choices[:, :-1], choices[:, -1])


def _rises(
    step: Step, bias: Tensor | None, temperature: float, vocabulary: Vocabulary
) -> tuple[Tensor, Tensor]:
    """The end's weight, and that the text goes on, [B, L], of an EOS that is its own padding: p_n(EOS) = P(end <= n),
    and the end is where it rises."""
    stop = step.log_p[..., vocabulary.eos_id].exp()
    stop = (stop - torch.nn.functional.pad(stop, (1, 0))[..., :-1].cummax(-1).values).clamp_min(1e-12)
    scale = 1.0 if temperature == 0 else temperature
    stay, stop = torch.log1p(-stop.clamp_max(1 - 1e-6)), stop.log()
    if bias is not None:
        stop = stop + bias.expand_as(step.logits)[..., vocabulary.eos_id]
    return stop / scale, stay / scale
