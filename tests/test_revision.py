"""Revision policies: the schedules' formulas, expected counts, budgets, pins, rows."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_soft_guides import MASK, a_step, noise
from toys import Chaos, small_vocabulary

from redraft.denoiser import Canvas, InvalidGuideError, Refinement, Settings, Step, Uncertain
from redraft.denoiser.revision import REVISIONS, ReMDM, Revision
from redraft.denoiser.selection import Random

POLICIES: list[Revision] = [
    ReMDM(rate=0.3), ReMDM("rescale", 0.5), ReMDM(rate=0.4, by="confidence"), Uncertain(0.3),
]  # fmt: skip


def at(index: int, steps: int, rows: int = 1, length: int = 8) -> Step:
    return replace(a_step([[-1] * length] * rows, noise(length, 0)), index=index, steps=steps)


def held(rows: int, length: int, confidence: torch.Tensor | float = 1.0) -> Canvas:
    canvas = Canvas.blank(rows, length, MASK)
    sure = torch.as_tensor(confidence).expand(rows, length)
    return canvas.commit(
        torch.zeros(rows, length, dtype=torch.int64), torch.ones(rows, length, dtype=torch.bool), sure
    )


@pytest.mark.parametrize(("index", "steps"), [(0, 10), (3, 10), (8, 10), (9, 10), (0, 1)])
def test_the_schedules_are_their_formulas(index: int, steps: int) -> None:
    share, after = (index + 1) / steps, (index + 2) / steps
    most = max(0.0, min(1.0, (1 - after) / share))
    assert ReMDM(rate=0.2).sigma(at(index, steps)) == pytest.approx(min(0.2, most))
    assert ReMDM("rescale", 0.2).sigma(at(index, steps)) == pytest.approx(0.2 * most)


def test_outside_its_part_it_rests() -> None:
    policy = ReMDM(rate=0.5, start=0.25, stop=0.75)
    assert [policy.sigma(at(k, 8)) > 0 for k in range(8)] == [
        False,
        False,
        True,
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("by", ["chance", "confidence"])
def test_the_expected_number_is_the_schedule_s(by: str) -> None:
    """And by confidence the unsure go first, in the ratio exp(-confidence)."""
    rows, length = 4000, 10
    confidence = torch.linspace(0.0, 1.0, length)
    policy = ReMDM(rate=0.15, by=by)  # type: ignore[arg-type]
    uniform = torch.rand(rows, length, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    mark = policy(at(2, 10, rows, length), held(rows, length, confidence), uniform).double()
    each = torch.full((length,), 0.15, dtype=torch.float64)
    if by == "confidence":
        each = 0.15 * length * (-confidence.double()).softmax(-1)
    error = 5 * (each * (1 - each) / rows).sqrt()
    assert bool(((mark.mean(0) - each).abs() < error).all())
    assert abs(float(mark.sum(1).mean()) - 0.15 * length) < 5 * math.sqrt(0.15 * length / rows)


@given(st.floats(0.01, 2), st.integers(1, 12), st.sampled_from(POLICIES), st.integers(0, 99))
def test_a_run_keeps_within_its_budget(budget: float, steps: int, policy: Revision, seed: int) -> None:
    policy = replace(policy, budget=budget)  # type: ignore[type-var]
    denoiser, reopened = Chaos(small_vocabulary(), length=16), 0
    pad = denoiser.vocabulary.pad_id

    def count(r: Refinement) -> None:
        nonlocal reopened
        reopened += int((r.reopened & (r.draft != pad)).sum())

    denoiser.write(seed=seed, steps=steps, revision=policy, on_step=count)
    assert reopened <= budget * 16


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_padding_opens_with_its_end(policy: Revision, seed: int) -> None:
    """Held behind an end that is open again, it would hold the text to where it ended before."""
    denoiser = Chaos(small_vocabulary(), length=16)
    eos, pad = denoiser.vocabulary.ends
    ends = 0

    def see(r: Refinement) -> None:
        nonlocal ends
        again = (r.reopened & (r.draft == eos)).any(-1)
        ends += int(again.sum())
        assert not bool((~r.canvas.open & (r.draft == pad))[again].any())

    denoiser.write(samples=8, seed=seed, steps=12, selection=Random(), revision=policy, on_step=see)
    assert ends


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_without_a_budget_they_do_reopen_and_batches_are_singles(policy: Revision) -> None:
    denoiser = Chaos(small_vocabulary(whole_first=True), sharpness=1.0)
    together = denoiser.write(samples=4, seed=8, steps=8, revision=policy)
    assert any(commit.reopened for result in together for commit in result.trace)
    for k, result in enumerate(together):
        (alone,) = denoiser.write(seed=8 + k, steps=8, revision=policy)
        assert (alone.tokens, alone.trace) == (result.tokens, result.trace)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_open_and_pinned_positions_are_never_marked(policy: Revision) -> None:
    canvas = held(2, 8)
    canvas = replace(
        canvas, pinned=torch.arange(8).expand(2, -1) % 2 == 0, open=torch.arange(8).expand(2, -1) == 1
    )
    mark = policy(at(3, 8, 2), canvas, torch.zeros(2, 8, dtype=torch.float64))
    assert not bool((mark & (canvas.pinned | canvas.open)).any())


def test_values_and_recipes() -> None:
    for wrong in (
        {"rate": 0.0},
        {"rate": 1.5},
        {"schedule": "loop"},
        {"by": "x"},
        {"budget": 0.0},
        {"start": 0.9, "stop": 0.2},
    ):
        with pytest.raises(InvalidGuideError):
            ReMDM(**wrong)  # type: ignore[arg-type]
    settings = Settings(revision=ReMDM("rescale", 0.1, "confidence", budget=0.5))
    assert Settings.from_dict(settings.to_dict()) == settings
    assert set(REVISIONS) == {"reconsider", "remdm", "uncertain"}
