"""When a run ends and what its learning rate is: warm-up, constant, decay at the end (WSD), extendable."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

DECAY_FLOOR = 0.05
DECAY_FILE = "decay-now"


@dataclass(frozen=True)
class Budget:
    """How long to train, and how much of the end is spent decaying.

    Where `timed`, `end` is in seconds since the epoch and `decay` in seconds; otherwise both are in steps.
    """

    end: float
    decay: float
    timed: bool = True

    def __post_init__(self) -> None:
        if self.decay < 0:
            raise ValueError(f"decay is {self.decay}; give 0 or more")

    @classmethod
    def until(cls, end: float, *, now: float, decay_minutes: float | None = None) -> Budget:
        """Train until `end`; decay over the last fifth of the time from now, or the minutes given."""
        if end <= now:
            raise ValueError(f"the end is {now - end:.0f} s in the past; give a later one")
        decay = (end - now) * 0.2 if decay_minutes is None else decay_minutes * 60
        return cls(end, min(decay, end - now))

    @classmethod
    def minutes(cls, minutes: float, *, now: float) -> Budget:
        if minutes <= 0:
            raise ValueError(f"minutes is {minutes}; give more than 0")
        return cls.until(now + 60 * minutes, now=now)

    @classmethod
    def steps(cls, steps: int) -> Budget:
        if steps < 1:
            raise ValueError(f"steps is {steps}; give at least 1")
        return cls(steps, steps * 0.2, timed=False)

    def moment(self, *, now: float, step: int) -> float:
        return now if self.timed else step

    def decays(self, moment: float) -> bool:
        return moment >= self.end - self.decay

    def over(self, moment: float) -> bool:
        return moment >= self.end

    def hurried(self, folder: Path, now: float) -> Budget:
        """Decay at once, over the minutes in the folder's `decay-now` file, if any; it is removed."""
        file = folder / DECAY_FILE
        if not file.exists():
            return self
        try:
            minutes = float(file.read_text().strip() or 10)
        except ValueError:
            minutes = 10.0
        file.unlink()
        return replace(self, end=now + 60 * minutes, decay=60 * minutes, timed=True)


@dataclass(frozen=True)
class Rate:
    """Learning rate: linear warm-up over `warmup` steps, `peak`, then * 1 - 0.95 sqrt(share decayed)."""

    peak: float
    warmup: int = 200
    floor: float = DECAY_FLOOR

    def at(self, step: int, budget: Budget, moment: float) -> float:
        rate = self.peak * min(1.0, (step + 1) / max(1, self.warmup))
        if budget.decay and budget.decays(moment):
            done = min(1.0, (moment - (budget.end - budget.decay)) / budget.decay)
            rate *= 1 - (1 - self.floor) * math.sqrt(done)
        return rate
