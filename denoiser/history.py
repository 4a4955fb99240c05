"""What happened at each step of a run, kept on the device until it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from redraft.denoiser.refine import Refinement
from redraft.denoiser.result import Commit


@dataclass
class Past:
    """One row's own past, a value for each step in which it had anything open."""

    commits: list[Commit] = field(default_factory=list)
    pressures: list[float] = field(default_factory=list)
    pushes: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Moment:
    """Draft, marks [B, n] (bits: 1 committed, 2 reopened, 4 the row had anything open), pressure and pushes [B]."""

    draft: Tensor
    marks: Tensor
    pressure: Tensor
    pushes: dict[str, Tensor]

    def take(self, rows: Tensor) -> _Moment:
        pushes = {name: push[rows] for name, push in self.pushes.items()}
        return _Moment(self.draft[rows], self.marks[rows], self.pressure[rows], pushes)


class History:
    """The steps of a run; keeps no logits, and waits for no device before it is read."""

    def __init__(self) -> None:
        self.denoiser_ms = self.guidance_ms = 0.0
        self._moments: list[_Moment] = []

    def add(self, r: Refinement) -> None:
        self.denoiser_ms += r.denoiser_ms
        self.guidance_ms += r.guidance_ms
        marks = r.committed.long() + 2 * r.reopened + 4 * r.step.canvas.open.any(-1, keepdim=True)
        self._moments.append(_Moment(r.draft, marks, r.pressure, dict(r.pushes)))

    def take(self, rows: Tensor) -> None:
        """Row b goes on from row rows[b] (int64 [B]), with all that happened to it."""
        self._moments = [moment.take(rows) for moment in self._moments]

    def read(self, batch: int) -> list[Past]:
        """Each row's past."""
        pasts = [Past() for _ in range(batch)]
        for moment in self._moments:
            drafts, marks = torch.stack([moment.draft, moment.marks]).tolist()
            pressures = moment.pressure.tolist()
            pushes = {name: push.tolist() for name, push in moment.pushes.items()}
            for row, (draft, mark) in enumerate(zip(drafts, marks, strict=True)):
                if mark and mark[0] & 4:
                    own = {name: values[row] for name, values in pushes.items()}
                    _remember(pasts[row], draft, mark, pressures[row], own)
        return pasts


def _remember(
    past: Past, draft: list[int], mark: list[int], pressure: float, pushes: dict[str, float]
) -> None:
    where = tuple(i for i, bits in enumerate(mark) if bits & 1)
    again = tuple(i for i, bits in enumerate(mark) if bits & 2)
    before = len(past.commits)
    past.commits.append(Commit(where, tuple(draft[i] for i in where), again))
    past.pressures.append(pressure)
    for name in past.pushes.keys() | pushes.keys():  # a guide that rests pushes 0
        past.pushes.setdefault(name, [0.0] * before).append(pushes.get(name, 0.0))
