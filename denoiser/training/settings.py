"""How a run trains, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from redraft.denoiser.training.corpus import MIN_WORDS
from redraft.denoiser.training.evaluate import Figures
from redraft.denoiser.training.masking import Masking
from redraft.denoiser.training.rows import Mixture
from redraft.denoiser.training.tokenizer import VOCABULARY


@dataclass(frozen=True)
class Settings:
    """How to train; the defaults are those of the embedded denoiser. Times in seconds."""

    peak: float = 8e-4
    warmup: int = 200
    weight_decay: float = 0.01
    clip: float = 1.0
    tokens: int = 2048
    seed: int = 0
    device: str = "cpu"
    bf16: bool | None = None  # None: where the device has it; emulated, it is sixty times slower
    compile: bool = False  # needs a C++ compiler; a third faster after half a minute of compiling
    share_cores: bool = False  # fewer threads while other processes are busy
    mixture: Mixture = field(default_factory=Mixture)
    masking: Masking = field(default_factory=Masking)
    vocabulary: int = VOCABULARY
    layers: int = 6
    width: int = 384
    heads: int = 12
    min_words: int = MIN_WORDS
    checkpoint_every: float = 180.0
    report_every: float = 30.0
    evaluate_every: float = 360.0

    @classmethod
    def fine_tuning(cls) -> Settings:
        """For a user's own text on top of a trained denoiser: a gentle rate, a short warm-up."""
        return cls(peak=2e-4, warmup=50, mixture=Mixture(real=0.15, joined=0.0))


@dataclass(frozen=True)
class Progress:
    """What a run reports: every 30 s its speed, now and then its held-out figures and samples too."""

    step: int
    tokens: int
    tokens_per_second: float
    loss: float
    rate: float
    share_done: float | None
    decaying: bool
    note: str = ""
    raw: Figures | None = None
    mean: Figures | None = None
    samples: tuple[str, ...] = ()
