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
class Result:
    """One text with its verdicts and all that reproduces it.

    `pressure` is -log Z in nats for each step: how much the hard guides fought the denoiser. `guides`,
    `settings`, `prompt`, `chat`, `condition`, `length` and `seed` together write the same text again on the same
    kind of device.
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
    chat: bool = False

    @property
    def satisfied(self) -> bool:
        """Whether every guaranteed guide's own check holds on the decoded text."""
        return all(v.status == "satisfied" for v in self.verdicts if v.strength == "guaranteed")
