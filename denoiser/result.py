"""What a run gives back: the text and the proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from redraft.denoiser.guide import Guide, Verdict
from redraft.denoiser.settings import Settings


@dataclass(frozen=True)
class Timing:
    """Milliseconds of the run that wrote this text (shared by the texts of one batch)."""

    denoiser_ms: float
    guidance_ms: float
    total_ms: float
    guides_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Commit:
    """What one step did to a text: positions and tokens committed, positions reopened."""

    positions: tuple[int, ...]
    tokens: tuple[int, ...]
    reopened: tuple[int, ...] = ()


@dataclass(frozen=True)
class Population:
    """The particles that a text was taken from, when the run had ended.

    `texts` and `weights` (normalised; a share each) are a properly weighted sample of the target, `scores` what the
    guides and the particles' own `likelihood` and `repeats` make of the texts in nats, `chosen` the number of the
    text that was returned. `log_z` estimates log E[exp(weigh)] (times the probability of the language, with the
    twist); exp of it is unbiased. `ess` is the effective sample size after each step, `resampled` the steps that
    resampled.
    """

    texts: tuple[str, ...]
    weights: tuple[float, ...]
    scores: tuple[float, ...]
    chosen: int
    log_z: float
    ess: tuple[float, ...]
    resampled: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """One text with its verdicts and all that reproduces it.

    `pressure` is -log Z in nats for each step: how much the hard guides fought the denoiser. `guides`,
    `settings`, `prompt`, `chat`, `condition`, `length` and `seed` together write the same text again on the same
    kind of device. `pushes` has, by guide, the strength used at each step where the guide tells it;
    `particles` the population that the text was taken from, for a run with particles.
    """

    text: str
    seed: int
    prompt: str
    condition: Mapping[str, str]
    length: int
    guides: tuple[Guide, ...]
    settings: Settings
    verdicts: tuple[Verdict, ...]
    steps: int
    forward_passes: int
    pressure: tuple[float, ...]
    timing: Timing
    tokens: tuple[int, ...]
    trace: tuple[Commit, ...]
    pushes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    particles: Population | None = None
    chat: bool = False

    @property
    def satisfied(self) -> bool:
        """Whether every guaranteed guide's own check holds on the decoded text."""
        return all(v.status == "satisfied" for v in self.verdicts if v.strength == "guaranteed")

    def report(self) -> str:
        """This result as a page of HTML that needs nothing else: the text, its verdicts, the pressure curve.

        `redraft write --report` and `redraft.recipes.page` explain a run step by step as well.
        """
        from redraft.denoiser.card import card, standalone

        return standalone(card(self), f"Redraft: seed {self.seed}")

    def _repr_html_(self) -> str:
        """For notebooks."""
        from redraft.denoiser.card import card

        return card(self)
