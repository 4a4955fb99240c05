"""Top-k, top-p and min-p that never empty a language."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from redraft.denoiser.language import Language

#: Weight that a token outside the truncation keeps, relative to its own probability.
LEFT = 1e-9
#: In a class with no kept token, tokens this far (nats) below its best one are pushed down once more.
_NEAR = math.log(10.0)
_SHORTLIST = 256


def truncate(
    log_p: Tensor,
    open: Tensor,
    *,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    language: Language | None = None,
) -> Tensor:
    """Normalised log-probabilities [B, L, V] in which the tokens outside weigh LEFT times what they did.

    A token stays if it is among the `top_k` likeliest, in the smallest set of mass `top_p`, and at least
    `min_p` times as likely as the likeliest (equals of the last one stay too). What goes is not forbidden,
    so the language stays feasible; with `language` given, a class of tokens that lost all its members keeps
    those within a factor of 10 of its best. Positions that are not `open` [B, L] come back as they are.
    Raises ValueError for top_k < 1, and top_p or min_p outside (0, 1].
    """
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, got {top_k}")
    for name, value in (("top_p", top_p), ("min_p", min_p)):
        if value is not None and not 0 < value <= 1:
            raise ValueError(f"{name} must be in (0, 1], got {value}")
    top_p = None if top_p == 1 else top_p
    if top_k is None and top_p is None and min_p is None:
        return log_p
    flat = log_p.reshape(-1, log_p.shape[-1])
    best = flat.amax(-1, keepdim=True)
    bar = torch.full_like(best, -torch.inf)
    if min_p is not None:
        bar = torch.maximum(bar, best + math.log(min_p))
    if top_k is not None:
        bar = torch.maximum(bar, flat.topk(min(top_k, flat.shape[1])).values[:, -1:])
    if top_p is not None:
        bar = torch.maximum(bar, _mass_bar(flat, top_p))
    kept = flat >= bar
    cut = torch.where(kept, flat, flat + math.log(LEFT))
    if language is not None:
        cut = _spare_best(cut, flat, kept, language)
    cut = (cut - cut.logsumexp(-1, keepdim=True)).reshape(log_p.shape)
    return torch.where(open[..., None], cut, log_p)


def _mass_bar(flat: Tensor, top_p: float) -> Tensor:
    """Log-probability of the last token in the smallest set of mass `top_p`: [R, 1]."""
    few = min(_SHORTLIST, flat.shape[1])
    order = flat.topk(few).values
    mass = order.double().exp().cumsum(-1)
    bar = order.gather(1, (mass < top_p).sum(-1, keepdim=True).clamp_max(few - 1))
    if few == flat.shape[1]:
        return bar
    short = (mass[:, -1] < top_p).nonzero().squeeze(1)
    if len(short):
        order = flat[short].sort(-1, descending=True).values
        mass = order.double().exp().cumsum(-1)
        bar[short] = order.gather(1, (mass < top_p).sum(-1, keepdim=True).clamp_max(flat.shape[1] - 1))
    return bar


def _spare_best(cut: Tensor, flat: Tensor, kept: Tensor, language: Language) -> Tensor:
    """Push far tokens down once more in the classes that kept none."""
    label = language.classes.expand(len(flat), -1)
    floor = flat.new_full((len(flat), language.width), -torch.inf)
    best = floor.scatter_reduce(1, label, flat, "amax")
    top = floor.scatter_reduce(1, label, torch.where(kept, flat, -torch.inf), "amax")
    bar = torch.where(top == -torch.inf, best - _NEAR, -torch.inf)
    return torch.where(flat < bar[:, language.classes], cut + math.log(LEFT), cut)
