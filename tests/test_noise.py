"""Uniform noise: what stands at open positions, acceptance, early stops; the same guarantees as with masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from test_loop import POLICIES, chi_square_bound
from torch.utils._python_dispatch import TorchDispatchMode
from toys import Chaos, small_vocabulary, uniform

from redraft.denoiser import (
    Absorbing,
    Canvas,
    Denoiser,
    EntropyBound,
    InvalidGuideError,
    Patience,
    Prompt,
    Random,
    Reconsider,
    Refinement,
    Scene,
    Settings,
    Steering,
    Uncertain,
    Uniform,
    UnsatisfiableError,
    Vocabulary,
    refine,
)
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.selection import Proposal
from redraft.denoiser.step import Step
from redraft.guidance import Bias, Forbid, Infill, Keywords, Repetition, Words

REVISIONS = [None, Uncertain(0.4, 0.0, 1.0), Reconsider()]


def steps_of(
    denoiser: Denoiser, guides: list[Any], canvas: Canvas, settings: Settings, seeds: list[int]
) -> Iterator[Refinement]:
    rows, length = canvas.tokens.shape
    steering = Steering(guides, Scene(denoiser.vocabulary, denoiser.device, rows, length, settings.steps))
    yield from refine(
        denoiser,
        canvas,
        steering,
        prompt=denoiser.prepare("", rows),
        settings=settings,
        random=Randomness(seeds),
    )


def test_noise_is_even_and_each_row_has_its_own() -> None:
    noise, rows, length = Uniform(8), 40, 100
    canvas = noise.blank(length, Randomness(range(rows)))
    assert canvas.open.all()
    counts = torch.bincount(canvas.tokens.flatten(), minlength=8).double()
    expected = rows * length / 8
    assert float(((counts - expected) ** 2 / expected).sum()) < chi_square_bound(8)
    for row in (0, 7):
        assert torch.equal(noise.blank(length, Randomness([row])).tokens[0], canvas.tokens[row])


def test_renoise_touches_what_it_is_told() -> None:
    where = torch.arange(12).expand(2, -1) % 3 == 0
    canvas = Canvas.blank(2, 12, 99)
    drawn = Uniform(50).renoise(canvas, where, Randomness([1, 2]))
    assert (drawn.tokens[~where] == 99).all()
    assert (drawn.tokens[where] < 50).all()
    assert (Absorbing(7).renoise(canvas, where, Randomness([1, 2])).tokens == torch.where(where, 7, 99)).all()


@pytest.mark.parametrize("revision", REVISIONS, ids=repr)
@pytest.mark.parametrize("selection", POLICIES, ids=repr)
def test_pins_and_accepted_tokens_stand_and_the_rest_is_drawn_anew(selection: Any, revision: Any) -> None:
    vocabulary = small_vocabulary(whole_first=True)
    denoiser = Chaos(vocabulary, sharpness=1.0, noise=uniform(vocabulary))
    pin = vocabulary.encode(" dog")[0]
    where = torch.zeros(2, 14, dtype=torch.bool)
    where[:, 5] = True
    canvas = denoiser.noise.blank(14, Randomness([1, 2])).pin(torch.full((2, 14), pin), where)
    settings = Settings(steps=6, selection=selection, revision=revision)
    moved = seen = 0
    for r in steps_of(denoiser, [Keywords("storm")], canvas, settings, [1, 2]):
        before, after = r.step.canvas, r.canvas
        assert (after.tokens[:, 5] == pin).all()
        assert not after.open[:, 5].any()
        kept = ~before.open & ~after.open
        assert torch.equal(after.tokens[kept], before.tokens[kept])
        assert torch.equal(
            after.tokens[r.committed], torch.where(r.reopened, after.tokens, r.draft)[r.committed]
        )
        if revision is not None and revision.provisional:
            assert torch.equal(after.tokens[r.reopened], r.draft[r.reopened])
        still = before.open & after.open & ~r.reopened
        moved += int((before.tokens != after.tokens)[still].sum())
        seen += int(still.sum())
    assert not r.canvas.open.any()
    if not (isinstance(selection, EntropyBound) and selection.bound):
        assert moved > 0.9 * seen > 0
    for row in r.canvas.tokens.tolist():
        assert Keywords("storm").check(vocabulary.decode(row)).status == "satisfied"


@pytest.mark.parametrize(
    ("revision", "stop"),
    [(None, None), (Uncertain(0.4, 0.0, 1.0), Patience(1, 4.0)), (Reconsider(), Patience(1, 4.0))],
)
def test_four_samples_are_four_single_runs(revision: Any, stop: Any) -> None:
    vocabulary = small_vocabulary(whole_first=True)
    guides = [Keywords("storm", "dog"), Words(3, 9), 1.5 * Bias({"sea": 2.0}), Repetition()]
    options = {
        "steps": 6,
        "selection": EntropyBound(4.0),
        "revision": revision,
        "stop": stop,
        "temperature": 0.9,
    }

    def write(**more: Any) -> Any:
        return Chaos(vocabulary, noise=uniform(vocabulary)).write(guides, **options, **more)

    together = write(samples=4, seed=40)
    for k, result in enumerate(together):
        (alone,) = write(seed=40 + k)
        assert (alone.tokens, alone.trace, alone.steps) == (result.tokens, result.trace, result.steps)
    assert len({result.text for result in together}) > 2


def test_scale_zero_is_no_guide() -> None:
    vocabulary = small_vocabulary()
    denoiser = Chaos(vocabulary, noise=uniform(vocabulary))
    options = {"seed": 1, "samples": 3, "steps": 6, "revision": Reconsider()}
    with_guide = denoiser.write([0.0 * Bias({"dog": 5.0}), 0.0 * Repetition()], **options)
    without = denoiser.write(**options)
    assert [(r.tokens, r.trace) for r in with_guide] == [(r.tokens, r.trace) for r in without]


def test_a_mask_marker_in_a_guide_is_text() -> None:
    vocabulary = small_vocabulary(whole_first=True)
    denoiser = Chaos(vocabulary, length=40, noise=uniform(vocabulary))
    (result,) = denoiser.write(Infill("A <mask> and [MASK] ___."), seed=2, steps=8, prompt="<mask>")
    assert result.satisfied
    assert not {0, 3} & set(result.tokens)  # the noise has specials, the text has none


def proposal(logits: torch.Tensor, open: torch.Tensor | None = None, **changes: Any) -> Proposal:
    """What a policy sees for logits [B, L, V] at open positions."""
    rows, length, size = logits.shape
    canvas = Canvas.blank(rows, length, 0)
    vocabulary = Vocabulary([bytes([97 + k]) for k in range(size)], lambda text: [ord(c) - 97 for c in text])
    denoiser = Chaos.__new__(Chaos)
    denoiser.vocabulary = vocabulary
    step = Step(0, 9, canvas, logits, denoiser_prompt(rows), denoiser, Randomness(range(rows)))
    free = canvas.open if open is None else open
    ones = torch.ones(rows, dtype=torch.int64)
    return replace(Proposal(step, canvas.tokens, torch.ones(rows, length), free, ones, ones == 0,
                            torch.zeros(rows, length), canvas.open & ~free), **changes)  # fmt: skip


def denoiser_prompt(rows: int) -> Prompt:
    empty = torch.zeros(rows, 0, dtype=torch.int64)
    return Prompt(empty, empty.bool())


def test_patience_waits_for_a_draft_that_stands_and_a_low_entropy() -> None:
    sharp, flat = torch.tensor([20.0, 0.0, 0.0]), torch.zeros(3)
    logits = torch.stack([sharp, flat]).expand(4, 2, 3)
    everything, first = torch.ones(4, 2, dtype=torch.bool), torch.tensor([[True, False]]).expand(4, 2)
    stood = torch.tensor([0, 1, 2, 3])
    mean = float(torch.tensor(3.0).log()) / 2  # of a flat position and a sure one
    assert Patience(2, mean + 0.01)(proposal(logits), stood, everything).tolist() == [
        False,
        False,
        True,
        True,
    ]
    assert not Patience(2, mean - 0.01)(proposal(logits), stood, everything).any()
    assert Patience(3, 0.01)(proposal(logits), stood, first).tolist() == [False] * 3 + [True]
    for bad in ({"unchanged": -1}, {"unchanged": 1.5}, {"entropy": 0.0}, {"entropy": float("nan")}):
        with pytest.raises(InvalidGuideError, match="Patience"):
            Patience(**bad)


class Fickle(Chaos):
    """Wants `a` everywhere at first and `b` from the fourth call on, sure of itself each time."""

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        self.calls += 1
        logits = torch.zeros(*canvas.tokens.shape, len(self.vocabulary))
        logits[..., self.vocabulary.encode("a" if self.calls < 4 else "b")[0]] = 30.0
        return logits.index_fill(-1, self._never, -torch.inf)


def test_a_denoiser_may_change_its_mind() -> None:
    vocabulary = small_vocabulary(eos=False, whole_first=True)
    texts = [
        Fickle(vocabulary, noise=uniform(vocabulary), length=8)
        .write(seed=1, steps=8, revision=revision)[0]
        .text
        for revision in (Reconsider(), None)
    ]
    assert texts[0] == "b" * 8
    assert set(texts[1]) == {"a"}  # accepted for good: all certain at the first step


@pytest.mark.parametrize(
    ("unchanged", "text", "steps"), [(0, "a", 1), (2, "a", 3), (3, "b", 7), (50, "b", 20)]
)
def test_a_run_stops_when_the_draft_stands(unchanged: int, text: str, steps: int) -> None:
    """It wants a at the steps 1-3 and b from 4 on: after 3 unchanged steps the first stop is at step 7."""
    vocabulary = small_vocabulary(eos=False, whole_first=True)
    denoiser = Fickle(vocabulary, noise=uniform(vocabulary), length=8)
    (result,) = denoiser.write(seed=1, steps=20, revision=Reconsider(), stop=Patience(unchanged, 0.01))
    assert (result.text, result.steps) == (text * 8, steps)
    assert result.trace[-1].positions == tuple(range(8))
    (unsure,) = Chaos(vocabulary, noise=uniform(vocabulary), sharpness=0.1).write(
        seed=1, steps=20, revision=Reconsider(), stop=Patience(0, 0.01)
    )
    assert unsure.steps == 20


def test_provisional_acceptance_grows_evenly() -> None:
    vocabulary = small_vocabulary(eos=False)
    denoiser = Chaos(vocabulary, noise=uniform(vocabulary), sharpness=0.3)
    (result,) = denoiser.write(seed=1, steps=6, length=24, revision=Reconsider(), selection=Random())
    assert [len(commit.positions) for commit in result.trace] == [4, 8, 12, 16, 20, 24]


def test_pins_that_contradict_are_refused_before_a_forward_pass() -> None:
    vocabulary = small_vocabulary(whole_first=True)
    denoiser = Chaos(vocabulary)
    where = torch.zeros(2, 12, dtype=torch.bool)
    where[1, 3] = True
    canvas = denoiser.noise.blank(12, Randomness([1, 2])).pin(
        torch.full((2, 12), vocabulary.encode(" dog")[0]), where
    )
    with pytest.raises(UnsatisfiableError, match="row 1: no text on this canvas keeps the pinned"):
        next(steps_of(denoiser, [Forbid("dog"), Forbid("o", whole=False)], canvas, Settings(), [1, 2]))
    assert denoiser.calls == 0


READS = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "equal",
    "repeat_interleave",
}


class HostReads(TorchDispatchMode):
    """Counts what would make the host wait for an accelerator: a value read, or a shape that depends on values."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = args[1] if name in ("index", "index_put", "index_put_") else ()
        told = name == "repeat_interleave" and (kwargs or {}).get("output_size") is not None
        if (name in READS and not told) or any(
            index is not None and index.dtype == torch.bool for index in masks
        ):
            self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("kind", "temperature"), [("mask", 0.0), ("uniform", 1.0), ("blocks", 1.0)])
def test_a_step_reads_the_device_once(kind: str, temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the paths for an accelerator; `tolist` and `cpu` read past the dispatcher and are counted by themselves."""
    vocabulary = small_vocabulary(eos=False, whole_first=True)
    noise = uniform(vocabulary) if kind == "uniform" else None
    denoiser = Chaos(vocabulary, sharpness=1.0, noise=noise)
    settings = Settings(
        steps=6, temperature=temperature, selection=Random(), top_k=20,
        revision=Reconsider() if noise else Uncertain(0.3), stop=Patience(1, 0.01),
        block_length=6 if kind == "blocks" else None,
    )  # fmt: skip
    guides = [Words(2, 4), 1.5 * Bias({"sea": 2.0})]
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda tensor: True))
    # one_hot checks its range with reads on a CPU only
    monkeypatch.setattr(
        torch.nn.functional, "one_hot", lambda ids, size: (ids[..., None] == torch.arange(size)).long()
    )
    past = []
    for name in ("tolist", "cpu"):
        own = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda self, own=own, name=name: past.append(name) or own(self)
        )
    canvas = denoiser.noise.blank(12, Randomness([1, 2]))
    run = steps_of(denoiser, guides, canvas, settings, [1, 2])
    next(run)  # what is made once, at the first step, may wait
    counts = []
    with HostReads() as reads:
        while True:
            before = reads.count + len(past)
            if next(run, None) is None:
                break
            counts.append(reads.count + len(past) - before)
    assert len(counts) >= 2
    assert max(counts) == 1, counts
