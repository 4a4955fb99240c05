"""Approximate block caching: exact where it says so, rows and runs apart, guarantees untouched."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from toys import Chaos, small_vocabulary

from redraft.denoiser import (
    Canvas,
    HardGuide,
    InvalidGuideError,
    Particles,
    Prompt,
    Random,
    Refinement,
    UnsupportedModelError,
    load,
)
from redraft.denoiser.models.approximate import Approximate
from redraft.denoiser.models.embedded import Embedded
from redraft.guidance import Bias, ClassifierFree, Forbid, Keywords, Pattern, Words

PROMPTS = ["The old man went home.", "It", ""]


@pytest.fixture(scope="module")
def exact() -> Embedded:
    denoiser = load()
    assert isinstance(denoiser, Embedded)
    return denoiser


def canvases(exact: Embedded, rows: int, length: int, steps: int, each: int = 2) -> list[Canvas]:
    """A canvas filled from left to right, `each` random tokens a step."""
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(300, len(exact.vocabulary), (rows, length), generator=random)
    canvas, found = Canvas.blank(rows, length, exact.noise.fill), []
    for k in range(steps):
        found.append(canvas)
        where = torch.zeros_like(canvas.open)
        where[:, each * k : each * (k + 1)] = True
        canvas = canvas.commit(ids, where, torch.ones(rows, length))
    return found


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert torch.equal(ours.isfinite(), theirs.isfinite())
    torch.testing.assert_close(
        ours.nan_to_num(neginf=0.0), theirs.nan_to_num(neginf=0.0), atol=5e-4, rtol=1e-4
    )


@pytest.mark.parametrize("prompts", [["It was"] * 3, PROMPTS], ids=["one length", "padded"])
def test_refresh_1_is_the_exact_denoiser(exact: Embedded, prompts: list[str]) -> None:
    prompt = exact.prepare(prompts, 3)
    run = Approximate(exact, block_length=8, refresh=1).begin()
    for canvas in canvases(exact, 3, 20, 5):
        close(run(canvas, prompt), exact(canvas, prompt))


@pytest.mark.parametrize("prompts", [["It was"] * 3, PROMPTS], ids=["one length", "padded"])
def test_what_is_stored_is_all_that_is_approximate(exact: Embedded, prompts: list[str]) -> None:
    prompt = exact.prepare(prompts, 3)
    run = Approximate(exact, block_length=20, refresh=9).begin()
    (first, second) = canvases(exact, 3, 20, 2)
    close(run(first, prompt), exact(first, prompt))
    close(run(first, prompt), exact(first, prompt))  # nothing changed: the stored keys are the exact ones
    assert not torch.allclose(run(second, prompt)[:, -1], run(first, prompt)[:, -1])
    bare = exact.prepare("", 3)
    none = Prompt(bare.tokens[:, :0], bare.mask[:, :0])
    run = Approximate(exact, block_length=20, refresh=9).begin()
    for canvas in (first, second):  # nothing stands outside the block: no stored key is read
        close(run(canvas, none), exact(canvas, none))


@pytest.mark.parametrize("room", [True, False])
def test_only_the_block_is_computed_and_the_rest_is_the_last_full_pass(exact: Embedded, room: bool) -> None:
    """From left to right no stored key changes, so the block is exact; it is not where all tokens see all."""
    exact = copy.copy(exact)
    exact.attend_room = room
    prompt = exact.prepare("It was", 2)
    run = Approximate(exact, block_length=8, refresh=3).begin()
    shown = canvases(exact, 2, 20, 5)
    logits = [run(canvas, prompt) for canvas in shown]
    truth = [exact(canvas, prompt) for canvas in shown]
    close(logits[0], truth[0])
    for k in (1, 2):
        close(logits[k][:, 8:], truth[0][:, 8:])
        away = (logits[k] - truth[k])[:, :8].nan_to_num().abs().amax()
        stale = (truth[0] - truth[k])[:, :8].nan_to_num().abs().amax()
        assert away < stale  # nearer than not computing anything
        assert bool(away > 1e-3) is room
    close(logits[3], truth[3])  # the third call after the first
    close(logits[4], truth[4])  # a new block


def test_a_change_outside_the_block_is_a_full_pass(exact: Embedded) -> None:
    prompt = exact.prepare("It was", 2)
    run = Approximate(exact, block_length=8, refresh=9).begin()
    (canvas,) = canvases(exact, 2, 20, 1)
    run(canvas, prompt)
    where = torch.zeros_like(canvas.open)
    where[1, 15] = True
    after = canvas.commit(torch.full_like(canvas.tokens, 500), where, torch.ones(2, 20))
    logits = run(after, prompt)
    close(logits, exact(after, prompt))  # row 0 did not change, so its memory is right
    close(
        run(after, exact.prepare("Once", 2)), exact(after, exact.prepare("Once", 2))
    )  # not the run's prompt


def test_rows_stand_alone_and_move(exact: Embedded) -> None:
    """Rows in different blocks, at different times, with prompts of their own."""
    denoiser = Approximate(exact, block_length=8, refresh=3)
    slow, quick = canvases(exact, 3, 24, 6, 1), canvases(exact, 3, 24, 6, 4)
    shown = [
        Canvas(
            *(
                torch.stack([a[0], b[1], a[2]])
                for a, b in zip(vars(s).values(), vars(q).values(), strict=True)
            )
        )
        for s, q in zip(slow, quick, strict=True)
    ]
    run, prompt = denoiser.begin(), exact.prepare(PROMPTS, 3)
    together = [run(canvas, prompt) for canvas in shown]
    for row, text in enumerate(PROMPTS):
        alone, own = denoiser.begin(), exact.prepare(text, 1)
        for canvas, logits in zip(shown, together, strict=True):
            close(alone(canvas.take(torch.tensor([row])), own), logits[row : row + 1])

    rows, shared = torch.tensor([1, 1, 0]), exact.prepare("It", 3)
    stays, moves = denoiser.begin(), denoiser.begin()
    for canvas in shown[:2]:
        stays(canvas, shared), moves(canvas, shared)
    unmoved = moves
    moves = moves.take(rows)
    expected = stays(shown[2], shared)[rows]
    close(moves(shown[2].take(rows), shared), expected)
    close(unmoved(shown[2], shared)[rows], expected)  # taking changed nothing in what it was taken from


def test_runs_do_not_mix(exact: Embedded) -> None:
    denoiser = Approximate(exact, block_length=8, refresh=4)
    prompt, other = exact.prepare("It was", 2), exact.prepare("The old man", 2)
    shown = canvases(exact, 2, 20, 4)
    alone = denoiser.begin()
    expected = [alone(canvas, prompt) for canvas in shown]
    one, two = denoiser.begin(), denoiser.begin()
    for k, canvas in enumerate(shown):
        assert torch.equal(one(canvas, prompt), expected[k])
        two(shown[3 - k], other)
        assert torch.equal(
            denoiser(canvas, prompt), exact(canvas, prompt)
        )  # the shared object remembers nothing


@pytest.mark.parametrize(
    ("guides", "options"),
    [
        ([Keywords("storm"), Words(12, 20), Forbid("the")], {}),
        ([Keywords("lighthouse"), Words(8, 16), Bias({"sea": 2.0})], {"particles": Particles(2)}),
        ([Pattern("[A-Z][a-z ]{20,60}[.]"), ClassifierFree({"genre": "tale"})], {"prompt": PROMPTS}),
    ],
)
def test_languages_hold(exact: Embedded, guides: list[Any], options: dict[str, Any]) -> None:
    denoiser = Approximate(exact, block_length=8, refresh=4)
    seen: list[Refinement] = []
    samples = {} if "prompt" in options else {"samples": 3}
    results = denoiser.write(guides, seed=1, steps=12, length=32, on_step=seen.append, **samples, **options)
    assert len(results) == 3
    hard = [guide for guide in guides if isinstance(guide, HardGuide)]
    assert all(guide.check(r.text).status == "satisfied" for r in results for guide in hard)
    assert any(
        not torch.allclose(r.step.logits, exact(r.step.canvas, r.step.prompt), atol=1e-2) for r in seen
    )


def test_the_block_length_is_the_runs_and_any_other_is_safe(exact: Embedded) -> None:
    """A step that commits more than a block holds changes tokens outside it: then every call is a full pass."""
    denoiser = Approximate(exact, block_length=8, refresh=4)
    assert denoiser.settings.block_length == 8
    assert exact.settings.block_length is None
    seen: list[Refinement] = []
    settings = exact.settings.override(steps=3, selection=Random())
    denoiser.write(seed=1, settings=settings, length=32, on_step=seen.append)
    for r in seen:
        close(r.step.logits, exact(r.step.canvas, r.step.prompt))


def test_what_is_refused(exact: Embedded) -> None:
    with pytest.raises(UnsupportedModelError, match="no approximate cache"):
        Approximate(Chaos(small_vocabulary()))
    for wrong in ({"refresh": 0}, {"block_length": True}, {"refresh": 2.5}):
        with pytest.raises(InvalidGuideError, match="use a whole number from 1"):
            Approximate(exact, **wrong)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_compiled_network_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="leave compile out"):
        Approximate(load(compile="eager"))
