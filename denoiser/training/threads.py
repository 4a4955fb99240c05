"""Sharing a small machine: fewer threads while others keep the cores busy."""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch

_STAT = Path("/proc/stat")


class Governor:
    """Sets torch's threads by what other processes use, looked at every `window` seconds.

    Two threads with one core taken run at the pace of the slower one; one thread has the free core to itself.
    Without /proc/stat it leaves the threads alone.
    """

    def __init__(self, threads: int, *, window: float = 6.0) -> None:
        self.most, self.window = threads, window
        self.ticks = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
        self.last = self._look()

    def tick(self) -> None:
        """Call once a step, from the thread that trains."""
        now = time.monotonic()
        if now - self.last[0] < self.window or not _STAT.exists():
            return
        look = self._look()
        wall, busy, own = (b - a for a, b in zip(self.last, look, strict=True))
        self.last = look
        others = max(0.0, (busy - own) / wall)
        cores = os.cpu_count() or 1
        free = round(cores - others)
        wanted = min(self.most, free) if free >= 1 else self.most
        if wanted != torch.get_num_threads():
            torch.set_num_threads(wanted)

    def _look(self) -> tuple[float, float, float]:
        """(wall clock, busy core-seconds of the machine, core-seconds of this process)."""
        busy = 0.0
        if _STAT.exists():
            fields = [int(x) for x in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
            busy = (sum(fields) - fields[3] - fields[4]) / self.ticks  # all but idle and iowait
        return time.monotonic(), busy, time.process_time()
