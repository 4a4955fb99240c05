"""The particles of a batch while it runs: weights carried, rows resampled within a text's own particles."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.exact import posterior
from redraft.denoiser.history import History
from redraft.denoiser.own_score import OwnScore
from redraft.denoiser.particles import Particles
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.refine import Refinement
from redraft.denoiser.result import Population
from redraft.denoiser.steering import Steering


def derived(seed: int, what: object) -> int:
    """A seed of its own for `what` under `seed`, in [0, 2**63)."""
    digest = hashlib.blake2b(f"{seed}:{what}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def row_seeds(seeds: Sequence[int], count: int) -> list[int]:
    """The seeds of every particle, text by text; particle 0 has the text's own."""
    return [seed if k == 0 else derived(seed, k) for seed in seeds for k in range(count)]


class Swarm:
    """Log-weights of R texts with K particles each; row r * K + k of the batch is particle k of text r.

    A text's numbers depend on its own seed and rows alone. What a particle has earned travels with it.
    """

    def __init__(self, particles: Particles, steering: Steering, seeds: Sequence[int]) -> None:
        self.particles, self.steering = particles, steering
        device = steering.scene.device
        self.random = Randomness([derived(seed, "resample") for seed in seeds], device)
        self.choice = Randomness([derived(seed, "choice") for seed in seeds], device).uniform()
        self.twist = particles.twist and steering.restricts
        zero = torch.zeros(len(seeds), particles.count, dtype=torch.float64, device=device)
        self.log_weight, self.earned, self.latest, self.pending, self.scores = zero, zero, zero, zero, zero
        self.tally = zero - torch.inf if particles.potential == "max" else zero
        self.log_z = zero[:, 0]
        self.done = torch.zeros(len(seeds), dtype=torch.bool, device=device)
        self.opening = self.written = torch.zeros_like(self.done, dtype=torch.long)  # tokens, of particle 0
        self.racing = ~self.done  # whose common opening is over
        self.own = OwnScore(particles, steering.scene, len(seeds))
        counts = self.twist or particles.likelihood > 0
        self.plain = Steering((), steering.scene).language if counts else None
        self.weighing = bool(steering.weighing)
        self.history: list[tuple[Tensor, Tensor, Tensor]] = []  # running, ESS, resampled: [R] each

    def advance(self, refinement: Refinement) -> Tensor | None:
        """Weigh a step; int64 [R * K]: the row that each row goes on from, or None where all go on as they are."""
        step = refinement.step
        rows, count = self.log_weight.shape
        open_ = refinement.canvas.open.any(-1).reshape(rows, count)
        running = ~self.done
        last = running & (~open_.any(-1) | (step.index + 1 == step.steps))
        plain = self._plain(refinement)
        gain = (
            self._reward(refinement, last)
            + self._twist(refinement, *plain)
            + self.own.gain(refinement, *plain)
        )
        self.log_weight = torch.where(running[:, None], self.log_weight + gain, self.log_weight)
        self._finish(last)
        total = self.log_weight.logsumexp(-1)
        size = (2 * total - (2 * self.log_weight).logsumexp(-1)).exp()
        parting = self._parting(refinement, running, last)
        again = running & self.racing & ~last & (size < self.particles.ess * count * (1 - 1e-9))
        self.racing = self.racing | parting
        self.history.append((running, size, again))
        if self.particles.ess == 0 and self.particles.opening == 0:
            return None
        parents = torch.zeros(rows, count, dtype=torch.long, device=size.device)
        parents = torch.where(parting[:, None], parents, torch.arange(count, device=size.device))
        if self.particles.ess > 0:
            uniform = self.random.uniform(count)
            if bool(again.any()):
                self.log_z = torch.where(
                    again, self.log_z + total - torch.log(total.new_tensor(count)), self.log_z
                )
                found = drawn(self.log_weight.softmax(-1), uniform, self.particles.resample)
                parents = torch.where(again[:, None], found, parents)
                self.log_weight = torch.where(again[:, None], 0.0, self.log_weight)
        if not bool((again | parting).any()):
            return None
        self.log_weight, self.scores, self.latest, self.earned, self.pending, self.tally = (
            values.gather(1, parents)
            for values in (self.log_weight, self.scores, self.latest, self.earned, self.pending, self.tally)
        )
        whole = (torch.arange(rows, device=parents.device)[:, None] * count + parents).flatten()
        self.own.take(whole)
        over = (again | parting) & ~last & ~open_.gather(1, parents).any(-1)
        self._finish(over)  # only finished particles were left
        return whole

    def _parting(self, refinement: Refinement, running: Tensor, last: Tensor) -> Tensor:
        """bool [R]: the texts whose opening is over with this step: particle 0 has written it, or all have ended."""
        step = refinement.step
        if step.index == 0:  # what is pinned or forced is on the canvas already
            room = self._of_first(step.canvas.open) + step.remaining
            self.opening = (room // 4).clamp_max(self.particles.opening)
            self.racing = self.opening == 0
        drawn = self._of_first(refinement.committed & step.canvas.open) - self._of_first(refinement.reopened)
        self.written = self.written + drawn
        return running & ~self.racing & (last | (self.written >= self.opening))

    def _of_first(self, marks: Tensor) -> Tensor:
        """int64 [R]: how many positions [R * K, L] are marked in each text's particle 0."""
        return marks.sum(-1).reshape(self.log_weight.shape)[:, 0]

    def _reward(self, refinement: Refinement, last: Tensor) -> Tensor:
        """C_t - C_{t-1} [R, K]."""
        nothing = torch.zeros_like(self.log_weight)
        if not self.weighing or (self.particles.ess == 0 and not bool(last.any())):
            return nothing
        weight = self.steering.weigh(refinement.step, refinement.draft)
        weight = nothing if weight is None else weight.reshape(self.log_weight.shape)
        self.latest = torch.where(self.done[:, None], self.latest, weight)
        if self.particles.ess == 0:  # only the finished text counts
            return nothing
        if self.particles.potential == "difference":
            earned = weight
        else:
            peak = self.particles.potential == "max"
            self.tally = torch.maximum(self.tally, weight) if peak else self.tally + weight
            earned = self.earned + self.tally
        before, self.earned = self.earned, torch.where(self.done[:, None], self.earned, earned)
        return self.earned - before

    def _plain(self, refinement: Refinement) -> tuple[Tensor, Tensor]:
        """Log of the chance [R * K], before and after this step's commits, that independent draws are a text at all.

        That is what the vocabulary can write, without guides: one end, whole characters.
        """
        beliefs, canvas = refinement.beliefs, refinement.step.canvas
        if self.plain is None:
            return beliefs.log_z, beliefs.log_z
        restricted = self.steering.restricts
        before = posterior(self.plain, beliefs.log_p, canvas.tokens, canvas.open) if restricted else beliefs
        then = _committed(refinement)
        return before.log_z, posterior(self.plain, beliefs.log_p, then.tokens, then.open).log_z

    def _twist(self, refinement: Refinement, before: Tensor, after: Tensor) -> Tensor:
        """log Z_t - log P_{t-1}(language | what was committed) [R, K], both given that it is a text at all.

        A committed token's chance without the language is smaller than with it by P_t(language | committed) /
        Z_t. The numerator's weight waits for the next step's Z, which says the same with the denoiser's
        newest opinion: between the two it would reward what is hard to complete.
        """
        if not self.twist:
            return torch.zeros_like(self.log_weight)
        beliefs, then = refinement.beliefs, _committed(refinement)
        left = posterior(beliefs.language, beliefs.log_p, then.tokens, then.open)
        gain = (beliefs.log_z - before).reshape(self.pending.shape) + self.pending
        owed = (after - left.log_z).reshape(self.pending.shape)
        self.pending = torch.where(self.done[:, None], 0.0, owed)
        return gain

    def _finish(self, which: Tensor) -> None:
        """For the texts of `which` [R] the run is over: C becomes the finished text's own log-weight."""
        owed = self.latest - self.earned + self.pending
        self.log_weight = torch.where(which[:, None], self.log_weight + owed, self.log_weight)
        self.scores = torch.where(which[:, None], self.latest + self.own.score, self.scores)
        self.earned = torch.where(which[:, None], self.latest, self.earned)
        self.pending = torch.where(which[:, None], 0.0, self.pending)
        self.done = self.done | which

    def chosen(self) -> Tensor:
        """int64 [R]: the particle that is each text's result."""
        if self.particles.result == "best":
            weighs = (self.scores != self.scores[:, :1]).any(-1, keepdim=True)
            return torch.where(weighs, self.scores, self.log_weight).argmax(-1)
        steps = self.log_weight.softmax(-1).cumsum(-1)
        return (steps < self.choice[:, None] * steps[:, -1:]).sum(-1).clamp_max(steps.shape[1] - 1)

    def evidence(self) -> Tensor:
        """float64 [R]: log of the estimate of E[exp(weigh)], the mean weights' product; unbiased before the log."""
        count = self.log_weight.new_tensor(self.log_weight.shape[1])
        return self.log_z + self.log_weight.logsumexp(-1) - torch.log(count)

    def populations(self, texts: Sequence[str]) -> list[Population]:
        """What is left of each text's particles; `texts` are the rows', in order."""
        count = self.log_weight.shape[1]
        weights, scores = self.log_weight.softmax(-1).tolist(), self.scores.tolist()
        chosen, log_z = self.chosen().tolist(), self.evidence().tolist()
        trace = [tuple(values.tolist() for values in entry) for entry in self.history]
        return [
            Population(
                texts=tuple(texts[row * count : (row + 1) * count]),
                weights=tuple(weights[row]),
                scores=tuple(scores[row]),
                chosen=chosen[row],
                log_z=log_z[row],
                ess=tuple(size[row] for running, size, _ in trace if running[row]),
                resampled=tuple(t for t, (_, _, again) in enumerate(trace) if again[row]),
            )
            for row in range(len(weights))
        ]


def _committed(refinement: Refinement) -> Canvas:
    """The step's canvas with its commits, before anything was reopened."""
    canvas = refinement.step.canvas
    return canvas.commit(refinement.draft, refinement.committed, canvas.confidence)


def drawn(weights: Tensor, uniform: Tensor, how: str) -> Tensor:
    """int64 [R, K] parents by normalised weights [R, K]; each occurs K * weight times in the mean.

    systematic: (k + u) / K with one u a row, stratified: one for each k, multinomial: independent.
    """
    count = weights.shape[1]
    rank = torch.arange(count, device=weights.device, dtype=weights.dtype)
    if how == "systematic":
        points = (rank + uniform[:, :1]) / count
    elif how == "stratified":
        points = (rank + uniform) / count
    else:
        points = uniform.sort(-1).values
    ends = weights.cumsum(-1)
    return torch.searchsorted(ends, points * ends[:, -1:], right=True).clamp_max(count - 1)


def drain(
    run: Generator[Refinement, Tensor | None, Canvas],
    history: History,
    swarm: Swarm | None,
    on_step: Callable[[Refinement], object] | None,
) -> Canvas:
    """The canvas that the loop ends with; with a swarm, rows are rearranged as it says."""
    rows: Tensor | None = None
    while True:
        try:
            refinement = run.send(rows)
        except StopIteration as end:
            canvas: Canvas = end.value
            return canvas
        history.add(refinement)
        rows = None if swarm is None else swarm.advance(refinement)
        if rows is not None:
            history.take(rows)
        if on_step is not None:
            on_step(refinement if rows is None else replace(refinement, parents=rows))
