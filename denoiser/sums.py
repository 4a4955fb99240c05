"""What forward and backward sums tell about some rows: log Z, joint draws, marginals."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from redraft.denoiser import messages
from redraft.denoiser.language import Language
from redraft.denoiser.masses import relative
from redraft.denoiser.messages import Messages

#: Positions x rows x states whose moves are looked up together.
_AT_ONCE = 2**21


@dataclass(frozen=True, eq=False)
class Sums:
    """Messages of the rows `rows` [b] of a batch, from class log-masses `log_mass` [L, C, b]."""

    rows: Tensor
    language: Language
    log_mass: Tensor
    alpha: Messages
    beta: Messages

    def log_z(self) -> Tensor:
        """float64 [b], nats; -inf where no canvas is in the language."""
        start = self.beta.value[0].gather(0, self.language.start[None, :]).squeeze(0)
        shift = self.beta.shift[self.language.start]
        return (start if self.beta.logarithmic else start.log()) + self.beta.scale[0] + shift

    def draw(self, uniform: Tensor) -> Tensor:
        """Classes [b, L] of joint drafts, left to right by inverse CDF with `uniform` [b, L]."""
        length = uniform.shape[1]
        logarithmic, beta = self.beta.logarithmic, self.beta.value
        weight = (self.log_mass if logarithmic else self.log_mass.exp()).permute(0, 2, 1).contiguous()
        # Just below 1, so that rounding never selects past the last possible class.
        goal = uniform.T.clamp(0.0, 1.0 - 2.0**-52).contiguous()[..., None]
        state, chosen = self.language.start, []
        for i in range(length):
            move = self.language.moves(state)  # [b, C]
            after = beta[i + 1].T.gather(1, move)
            plain = None if logarithmic else after * weight[i] * self.language.tilts(state, move)
            joint = relative(after + weight[i]) if plain is None else plain
            total = joint.cumsum(1)
            pick = (total[:, :-1] <= goal[i] * total[:, -1:]).sum(1, keepdim=True)
            chosen.append(pick)
            state = move.gather(1, pick).squeeze(1)
        return torch.cat(chosen, 1)

    def class_ratios(self) -> Tensor:
        """log w_i(c) / Z, posterior over prior of each class: [b, L, C]."""
        before, after = (m.log().transpose(1, 2).contiguous() for m in (self.alpha, self.beta))
        move = self.language.columns(torch.arange(self.language.width, device=before.device))  # [C, Q]
        ratios = [
            (before[i][:, None, :] + after[i + 1][:, move]).logsumexp(2) for i in range(len(before) - 1)
        ]
        return torch.stack(ratios, 1) - self.log_z()[:, None, None]

    def ratios(self, classes: Tensor) -> Tensor:
        """log w_i(c) / Z for one class at each position, `classes` [b, L]: [b, L]."""
        scale = (self.alpha.scale[:-1] + self.beta.scale[1:]).T - self.log_z()[:, None]
        length, rows = classes.shape[1], len(classes)
        step = max(1, _AT_ONCE // max(1, rows * self.language.states))
        found = []
        for i in range(0, length, step):
            j = min(i + step, length)
            which = classes[:, i:j].T
            move = self.language.columns(which)  # [positions, b, Q]
            # States last: a sum along them then has the same order whatever the number of rows.
            before = self.alpha.value[i:j].transpose(1, 2).contiguous()
            after = self.beta.value[i + 1 : j + 1].transpose(1, 2).gather(2, move)
            if self.alpha.logarithmic:
                found.append((before + after).logsumexp(2))
            else:
                found.append((before * after * self.language.column_tilts(which, move)).sum(2).log())
        return torch.cat(found).T + scale


def sums(language: Language, log_mass: Tensor, held: Tensor | None = None) -> list[Sums]:
    """Sums of all rows [L, C, B], plain where that is sound for the row, logarithmic elsewhere.

    `held` [L, B]: the class of each committed position, -1 for an open one.
    """
    every = torch.arange(log_mass.shape[2], device=log_mass.device)
    if log_mass.is_cuda:
        return [_logarithmic(language, log_mass, every)]
    first = Sums(every, language, log_mass, *messages.plain(language, log_mass, held))
    sound = messages.is_sound(first.alpha, first.beta, first.log_z())
    if bool(sound.all()):
        return [first]
    rest = _logarithmic(language, log_mass, every[~sound])
    return [_kept(first, sound), rest] if bool(sound.any()) else [rest]


def _part(language: Language, log_mass: Tensor, rows: Tensor) -> tuple[Language, Tensor]:
    if len(rows) == log_mass.shape[2]:
        return language, log_mass
    return language.begin(language.start[rows]), log_mass[:, :, rows].contiguous()


def _kept(whole: Sums, keep: Tensor) -> Sums:
    alpha, beta = (
        Messages(m.value[..., keep].contiguous(), m.scale[:, keep], m.shift, m.logarithmic)
        for m in (whole.alpha, whole.beta)
    )
    rows = whole.rows[keep]
    return Sums(
        rows, whole.language.begin(whole.language.start[keep]), whole.log_mass[..., keep], alpha, beta
    )


def _logarithmic(language: Language, log_mass: Tensor, rows: Tensor) -> Sums:
    part = _part(language, log_mass, rows)
    return Sums(rows, *part, messages.log_forward(*part), messages.log_backward(*part))
