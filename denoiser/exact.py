"""Exact inference: independent position distributions restricted to a language of whole canvases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from redraft.denoiser import messages
from redraft.denoiser.language import Language, feasible, reachable, shortest_canvas
from redraft.denoiser.masses import (
    Masses,
    Segments,
    best_tokens,
    clean,
    draw_tokens,
    masses,
)
from redraft.denoiser.nbest import nbest
from redraft.denoiser.sums import Sums, sums

__all__ = ["Language", "Posterior", "feasible", "posterior", "shortest_canvas"]

#: States x positions that are looked at together for tokens that have no alternative.
_AT_ONCE = 2**20


def posterior(language: Language, log_p: Tensor, tokens: Tensor, open: Tensor) -> Posterior:
    """p(x | x in language, x agrees with `tokens` where not `open`), for p(x) = prod_i p_i(x_i).

    `log_p` [B, L, V] normalised log-probabilities (float32 or float64), `tokens` [B, L] int64, `open` [B, L]
    bool. A token's log-probability counts as at least FLOOR (-10,000 nats), so a row that is `feasible` has
    a posterior whatever the model says; otherwise its `log_z` is -inf and its drafts mean nothing.
    """
    if log_p.shape[:2] != tokens.shape or tokens.shape != open.shape or len(tokens) != len(language.start):
        shapes = f"log_p {tuple(log_p.shape)}, tokens {tuple(tokens.shape)}, open {tuple(open.shape)}"
        raise ValueError(f"{shapes} and {len(language.start)} start states do not belong together")
    if log_p.shape[2] != len(language.classes):
        raise ValueError(f"log_p has {log_p.shape[2]} tokens, the language {len(language.classes)}")
    return Posterior(language, log_p, tokens, open)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Exact posterior over canvases, made by `posterior`; everything is computed when first asked for."""

    language: Language
    log_p: Tensor
    tokens: Tensor
    open: Tensor

    @cached_property
    def _segments(self) -> Segments:
        return self.language.segments

    @cached_property
    def _where(self) -> Tensor:
        """Rows of the flattened [B * L] positions that are worked on: the open ones (on a CPU), or all."""
        flat = self.open.flatten()
        return torch.arange(len(flat), device=flat.device) if flat.is_cuda else flat.nonzero().squeeze(1)

    @cached_property
    def _rows(self) -> Tensor:
        """log_p of the positions that are worked on: [R, V]."""
        flat = self.log_p.reshape(-1, self.log_p.shape[2])
        return flat if len(self._where) == len(flat) else flat[self._where]

    @cached_property
    def _masses(self) -> Masses:
        return masses(self._segments, self._rows)

    @cached_property
    def _log_mass(self) -> Tensor:
        """Class log-masses [L, C, B]; a committed position has its token's class alone."""
        return self._by_position(self._masses.log)

    def _by_position(self, logs: Tensor) -> Tensor:
        """Values of the worked positions [R, C], with 0 for a committed token's class and -inf beside it."""
        rows, length = self.open.shape
        held = self.language.classes[self.tokens.clamp_min(0)].flatten()[:, None]
        full = logs.new_full((rows * length, self.language.width), -torch.inf).scatter_(1, held, 0.0)
        full[self._where] = torch.where(self.open.flatten()[self._where, None], logs, full[self._where])
        return full.reshape(rows, length, -1).permute(1, 2, 0).contiguous()

    @cached_property
    def _sums(self) -> list[Sums]:
        held = torch.where(self.open, -1, self.language.classes[self.tokens.clamp_min(0)])
        return sums(self.language, self._log_mass, held.T)

    def _gathered(self, parts: list[Tensor]) -> Tensor:
        """Results [b, ...] of the groups of rows put back in the batch's order."""
        if len(parts) == 1:
            return parts[0]
        rows = torch.cat([group.rows for group in self._sums])
        return torch.cat(parts)[torch.argsort(rows)]

    @cached_property
    def log_z(self) -> Tensor:
        """log probability that independent draws fall in the language: float64 [B], nats; the pressure."""
        return self._gathered([group.log_z() for group in self._sums])

    def marginals(self) -> Tensor:
        """Posterior marginals p_i(v) w_i(class(v)) / Z: [B, L, V] in log_p's dtype."""
        ratios = self._gathered([group.class_ratios() for group in self._sums])[..., self.language.classes]
        held = torch.nn.functional.one_hot(self.tokens.clamp_min(0), self.log_p.shape[2]).to(self.log_p.dtype)
        return torch.where(
            self.open[..., None], (ratios + clean(self.log_p)).exp().to(self.log_p.dtype), held
        )

    def confidence(self, draft: Tensor) -> Tensor:
        """Posterior marginal of each drafted token: [B, L] float64; 1 at committed positions."""
        classes = self.language.classes[draft]
        ratio = self._gathered([group.ratios(classes[group.rows]) for group in self._sums])
        prior = clean(self.log_p.gather(2, draft[..., None])).squeeze(-1)
        return torch.where(self.open, (ratio + prior).exp().clamp_max(1.0), 1.0)

    def forced(self) -> tuple[Tensor, Tensor]:
        """Where language and committed tokens leave one token only: bool [B, L], and that token (else -1)."""
        committed = torch.where(self.open, -1, self.tokens)
        before, after = reachable(self.language, committed)
        rows, length = self.open.shape
        chosen = torch.empty_like(self.tokens)
        step = max(1, _AT_ONCE // max(1, rows * self.language.states))
        for i in range(0, length, step):
            j = min(i + step, length)
            # States first, positions and rows side by side: [Q, positions * B].
            here, there = (m.permute(2, 0, 1).flatten(1) for m in (before[i:j], after[i + 1 : j + 1]))
            possible = self.language.edges.presence.classes(here, there, self.language.width)
            count = (possible * self.language.size[:, None]).sum(0)
            only = torch.where(count == 1, possible.long().argmax(0), -1)
            chosen[:, i:j] = only.view(j - i, rows).T
        token = self._segments.small[chosen.clamp_min(0)]
        forced = self.open & (chosen >= 0)
        return forced, torch.where(forced, token, -1)

    def sample(self, uniform: Tensor) -> Tensor:
        """A whole draft [B, L] from the posterior, left to right: v ~ p_i(v) beta_{i+1}(delta[q, v]).

        `uniform` [B, L, 2] float64 in [0, 1): one number for the class, one for the token within it.
        """
        classes = self._gathered([group.draw(uniform[group.rows, :, 0]) for group in self._sums])
        classes = classes.flatten()[self._where]
        share, second = self._masses.share, uniform[..., 1].flatten()[self._where]
        return self._fill(draw_tokens(self._segments, self._rows, share, classes, second))

    def _fill(self, drawn: Tensor) -> Tensor:
        """The tokens [B, L] with those of the worked positions [R] in the open places."""
        full = self.tokens.flatten().index_put((self._where,), drawn).reshape(self.tokens.shape)
        return torch.where(self.open, full, self.tokens)

    def best(self) -> Tensor:
        """The most probable draft [B, L] (Viterbi); among equals the lowest token id, from the left."""
        top, lowest = best_tokens(self._segments, self._rows)
        value = self._by_position(top)  # [L, C, B]
        token = (
            self.tokens.flatten()[:, None].repeat(1, self.language.width).index_put((self._where,), lowest)
        )
        token = token.reshape(*self.open.shape, -1)
        ahead = messages.best_ahead(self.language, value)
        state, picked = self.language.start, []
        for i in range(self.open.shape[1]):
            move = self.language.moves(state)
            total = ahead[i + 1].T.gather(1, move) + value[i].T
            ids = torch.where(total == total.amax(-1, keepdim=True), token[:, i], self.log_p.shape[2])
            pick = ids.argmin(-1, keepdim=True)
            picked.append(token[:, i].gather(1, pick).squeeze(1))
            state = move.gather(1, pick).squeeze(1)
        return torch.where(self.open, torch.stack(picked, 1), self.tokens)

    def best_n(self, n: int) -> tuple[Tensor, Tensor]:
        """The `n` most probable drafts, all different: tokens [B, n, L] and log p [B, n], best first.

        log p = sum over open positions of log p_i(x_i), float64 nats, unnormalised. Drafts within 1e-9 of each other
        count as equal and come in the order of their token ids. Where the language has fewer, the rest is -1 and
        -inf. Best-first search on the host with the exact best completion as its bound; not for use inside a step.
        Raises ValueError for n < 1.
        """
        if n < 1:
            raise ValueError(f"best_n needs n of at least 1, got {n}")
        top, _ = best_tokens(self._segments, self._rows)
        ahead = messages.best_ahead(self.language, self._by_position(top))
        log_p = torch.where(self.open[..., None], clean(self.log_p), 0.0)
        found = [
            nbest(self.language, log_p[b], self.tokens[b], self.open[b], ahead[:, :, b], b, n)
            for b in range(len(self.tokens))
        ]
        return torch.stack([tokens for tokens, _ in found]), torch.stack([value for _, value in found])
