"""Particles: how many drafts of one text race each other, and how they are weighed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from redraft.denoiser.errors import InvalidGuideError

Potential = Literal["difference", "max", "sum"]
Resampling = Literal["systematic", "stratified", "multinomial"]
Outcome = Literal["sample", "best"]


@dataclass(frozen=True)
class Particles:
    """Sequential Monte Carlo over drafts: `count` canvases a text, weighed by the guides' `weigh`.

    The target is p(x) exp(r(x)), p the run without particles, r the guides' summed log-weights of the finished
    text. After step t a particle's log-weight grows by C_t - C_{t-1}, where r_t is r of the step's draft and

        difference: C_t = r_t      max: C_t = C_{t-1} + max_{s<=t} r_s      sum: C_t = C_{t-1} + sum_{s<=t} r_s

    and C of the last step is r of the text, so that all three aim at the same target (Feynman-Kac steering,
    Singhal et al. 2025, section 3). Where the effective sample size falls below `ess` * `count` (`ess` in
    [0, 1]; 0: never) the particles of that text are resampled; between that, weights are carried.

    `twist`: the target is p given the language of the hard guides, p without it, instead of the run that draws
    each draft within the language; log Z of each step is the weight (exact for selection policies that do not
    look at the draft, such as Random and LeftToRight; tokens that the language forces are committed at once,
    as in every run, and count as drawn together). It costs one more sum over the automaton a step.

    `likelihood` >= 0 sharpens: the target is p(x)^(1 + likelihood) exp(r(x)), log p(x) being the sum of the
    log-probabilities with which each step's commits were drawn, without the hard guides (exact where the twist is).
    Sharpening whole texts so is not a lower temperature, which sharpens each token alone (Karan and Du 2025).
    `repeats` >= 0, nats, is taken off for each token with a letter that is said again on the canvas, if its chance
    among text tokens at the first step is below 1/250 in the mean, and for each run of three text tokens that is said
    again: likely texts say the same words again.

    `opening` >= 0, tokens: that much of a text, but no more than a quarter of what is open at first, is drawn once, by
    particle 0; from the step that commits the last of it (or ends the text) all particles go on from particle 0, and
    race from there. The target is p(opening) times what is said above of the rest, given the opening: texts of
    different seeds begin differently, where sharpened whole texts are all among the few likeliest. 0: no opening.

    `result`: "sample" takes a particle with the chance of its weight, "best" the one of largest score,
    r + likelihood * log p - repeats * what is said again.
    Every particle costs as much as a text; particle 0 of text k is drawn as text k without particles is.
    """

    count: int = 8
    potential: Potential = "difference"
    ess: float = 0.5
    resample: Resampling = "systematic"
    result: Outcome = "sample"
    twist: bool = True
    likelihood: float = 0.0
    repeats: float = 0.0
    opening: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or not 1 <= self.count <= 100_000:
            raise InvalidGuideError(f"count is {self.count!r}: use a whole number of particles from 1")
        if not 0 <= self.ess <= 1:
            raise InvalidGuideError(f"ess is {self.ess}: use a share of the particles from 0 (never) to 1")
        for what, kind in (("potential", Potential), ("resample", Resampling), ("result", Outcome)):
            if getattr(self, what) not in get_args(kind):
                known = ", ".join(get_args(kind))
                raise InvalidGuideError(f"{what} is {getattr(self, what)!r}: use one of {known}")
        if not isinstance(self.twist, bool):
            raise InvalidGuideError(f"twist is {self.twist!r}: use True or False")
        if isinstance(self.opening, bool) or not isinstance(self.opening, int) or self.opening < 0:
            raise InvalidGuideError(
                f"opening is {self.opening!r}: use a whole number of tokens from 0 (none in common)"
            )
        for what in ("likelihood", "repeats"):
            value = getattr(self, what)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1000:
                raise InvalidGuideError(f"{what} is {value!r}: use a number from 0 (off) to 1000")


@dataclass(frozen=True, init=False)
class BestOf(Particles):
    """The best of `count` independent texts by the guides' `weigh`: particles weighed only at the end."""

    def __init__(self, count: int = 8) -> None:
        super().__init__(count=count, ess=0.0, result="best", twist=False)


@dataclass(frozen=True, init=False)
class Drafts(Particles):
    """The best of `count` drafts by the run's own log-likelihood, less 3 nats for what is said again.

    That is each token and each run of three (`Particles.repeats`). The drafts share their first tokens (`opening`), as
    the likeliest of all texts begin alike, and go on alone (`ess` > 0: they race); what the guides weigh counts too.
    `Drafts(8, opening=0)` are independent. This is how `redraft write` writes with the embedded denoiser.
    """

    def __init__(
        self,
        count: int = 8,
        likelihood: float = 1.0,
        repeats: float = 3.0,
        opening: int = 4,
        ess: float = 0.0,
    ) -> None:
        super().__init__(
            count=count,
            ess=ess,
            result="best",
            twist=False,
            likelihood=likelihood,
            repeats=repeats,
            opening=opening,
        )
