"""Blocks: prefixes that can be completed, never a dead end, rows, endings, laws of block-wise writing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_loop import chi_square_bound
from toys import Chaos, Exact, small_vocabulary, uniform

from redraft.denoiser import (
    Automaton,
    Canvas,
    Confidence,
    EntropyBound,
    HardGuide,
    InvalidGuideError,
    LeftToRight,
    Noise,
    Prompt,
    Random,
    Reconsider,
    Refinement,
    Scene,
    Settings,
    Steering,
    Uncertain,
    UnsatisfiableError,
    Verdict,
    Vocabulary,
    refine,
)
from redraft.denoiser.blocks import Schedule
from redraft.denoiser.randomness import Randomness
from redraft.guidance import Bias, Forbid, Infill, Keywords, Pattern, Repetition, Sentences, Tokens, Words


def letters(count: int, *, eos: bool) -> Vocabulary:
    """The tokens a, b, c, ... and a mask, with EOS and padding or without."""
    table: list[bytes | None] = [bytes([97 + k]) for k in range(count)] + [None] * (3 if eos else 1)
    ends = {"eos_id": count + 1, "pad_id": count + 2} if eos else {}
    return Vocabulary(table, lambda text: [ord(c) - 97 for c in text], mask_id=count, **ends)


@dataclass(frozen=True)
class Raw(HardGuide):
    """Any automaton over letters as a guide; its check runs the words."""

    name: ClassVar[str] = "raw"
    delta: tuple[tuple[int, ...], ...]
    accept: tuple[bool, ...]

    def language(self, scene: Scene) -> Automaton:
        width = len(self.delta[0])
        classes = np.array([min(k, width) for k in range(len(scene.vocabulary))])
        dead = len(self.delta)
        delta = np.array([[*row, dead] for row in self.delta] + [[dead] * (width + 1)])
        return Automaton(classes, delta, 0, np.array([*self.accept, False]))

    def check(self, text: str) -> Verdict:
        state = 0
        for char in text:
            state = self.delta[state][ord(char) - 97]
        return self.verdict(self.accept[state])


@st.composite
def raws(draw: st.DrawFn, symbols: int = 3) -> Raw:
    states = draw(st.integers(1, 6))
    delta = draw(st.lists(st.lists(st.integers(0, states - 1), min_size=symbols, max_size=symbols),
                          min_size=states, max_size=states))  # fmt: skip
    accept = draw(st.lists(st.sampled_from([False, False, True]), min_size=states, max_size=states))
    return Raw(tuple(map(tuple, delta)), tuple(accept))


KINDS = st.tuples(st.booleans(), st.booleans(), st.booleans())  # EOS, uniform noise, blind to what follows


@given(raws(), KINDS, st.integers(1, 9), st.integers(1, 4), st.integers(0, 99), st.sampled_from([0.0, 1.0]))
@settings(max_examples=40)
def test_no_dead_end_and_the_whole_is_in_the_language(
    guide: Raw, kind: tuple[bool, bool, bool], length: int, block: int, seed: int, temperature: float
) -> None:
    eos, doubting, blind = kind
    vocabulary = letters(3, eos=eos)
    denoiser = Chaos(
        vocabulary, noise=uniform(vocabulary) if doubting else None, block=block if blind else None
    )
    revision = Reconsider() if doubting else Uncertain(0.5, 0.0, 1.0)
    options = {"length": length, "steps": 9, "temperature": temperature, "revision": revision}
    options["selection"] = (Random(), EntropyBound(1.0), Confidence())[seed % 3]
    try:
        results = denoiser.write(guide, samples=2, seed=seed, block_length=block, **options)
    except UnsatisfiableError:
        return
    for result in results:
        assert guide.check(result.text).status == "satisfied"
        assert len(result.tokens) == length
        assert len(result.text) == (result.tokens.index(vocabulary.eos_id) if eos else length)
        assert all(np.isfinite(result.pressure))


def test_most_random_languages_are_written() -> None:
    """The property above would be empty if the languages were."""
    guide = Raw(((1, 0, 0), (1, 2, 1), (2, 2, 0)), (False, False, True))
    for result in Chaos(letters(3, eos=True), block=2).write(guide, samples=8, seed=1, length=9, steps=10):
        assert result.satisfied
        assert "b" in result.text


class Prefix(Exact):
    """The exact conditional marginals of a joint, of the positions shown: what comes later is summed out."""

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        shown, size = canvas.tokens.shape[1], len(self.vocabulary) - 1
        joint = self.joint.reshape(*[size] * shown, -1).sum(-1)
        part = Exact(joint, "abc"[:size])
        return part(canvas, prompt)


def test_one_token_a_block_weighs_what_the_rest_can_become() -> None:
    """p(x) = prod_i p_i(x_i) h_i(x_<=i) / sum over x_i, h_i = P(the rest, drawn from p_i alone, ends in the language).

    p_i is the denoiser's own conditional p(x_i | x_<i), which is all that a block of one token shows.
    """
    generator = torch.Generator().manual_seed(5)
    joint = torch.rand([3, 3, 3], generator=generator, dtype=torch.float64) ** 3
    joint /= joint.sum()
    guide = Raw(((1, 0, 2), (1, 2, 0), (2, 2, 1)), (False, True, False))
    automaton = guide.language(Scene(letters(3, eos=False), torch.device("cpu"), 1, 3, 3))
    words = [w for w in itertools.product(range(3), repeat=3) if automaton.accepts(w)]
    expected = {}
    for word in words:
        share = 1.0
        for i in range(3):
            own = [float(joint[(*word[:i], v)].sum()) for v in range(3)]
            own = [p / sum(own) for p in own]
            weights = [0.0, 0.0, 0.0]
            for other in words:
                if other[:i] == word[:i]:
                    weights[other[i]] += float(np.prod([own[v] for v in other[i:]]))
            share *= weights[word[i]] / sum(weights)
        expected[word] = share
    assert sum(expected.values()) == pytest.approx(1)
    denoiser = Prefix(joint, "abc")
    denoiser.block = 1
    samples = 4000
    counts = dict.fromkeys(words, 0)
    for result in denoiser.write(guide, samples=samples, seed=3, steps=3, batch_size=4000):
        counts[tuple(result.tokens)] += 1
    kept = {w: p * samples for w, p in expected.items() if p * samples >= 5}
    assert len(kept) > 4
    statistic = sum((counts[w] - n) ** 2 / n for w, n in kept.items())
    assert statistic < chi_square_bound(len(kept))


@pytest.mark.parametrize("eos", [False, True])
def test_what_may_stand_anywhere_falls_evenly_over_the_blocks(eos: bool) -> None:
    """One c among a's and b's; without looking ahead it would wait for the last block."""
    vocabulary = letters(3, eos=eos)
    denoiser = Chaos(vocabulary, sharpness=0.0, block=3)
    once = Raw(((0, 0, 1), (1, 1, 2), (2, 2, 2)), (False, True, False))
    samples, length = 400, 12 + eos
    options = {"seed": 1, "steps": 5 + 5 * eos, "length": length, "batch_size": samples, "samples": samples}
    guides = [once, Tokens(12)] if eos else once
    counts = [0, 0, 0, 0]
    for result in denoiser.write(guides, **options):
        counts[result.text.index("c") // 3] += 1
    assert sum((n - samples / 4) ** 2 / (samples / 4) for n in counts) < chi_square_bound(4)


GUIDES = [
    [Keywords("storm", "dog"), Words(3, 9)],
    [Infill("The storm ___ sad keeper [[2-3]] home.")],
    [Pattern(r"[A-Z][a-z ]*\."), Forbid("the", "was")],
    [Sentences(1, 2), 1.5 * Bias({"sea": 2.0}), Repetition()],
    [Keywords("storm", anchor="early"), Forbid("e")],
]


@pytest.mark.parametrize("guides", GUIDES, ids=lambda g: str(g[0])[:20])
@pytest.mark.parametrize(("blind", "kind"), [(False, "mask"), (True, "uniform")])
def test_guides_hold_and_rows_are_alone(guides: list[HardGuide], blind: bool, kind: str) -> None:
    vocabulary = small_vocabulary(whole_first=True)
    noise: Noise | None = uniform(vocabulary) if kind == "uniform" else None
    revision = Reconsider() if kind == "uniform" else Uncertain(0.3)

    def denoiser() -> Chaos:
        return Chaos(vocabulary, sharpness=1.0, noise=noise, block=11 if blind else None)

    options = {
        "length": 28,
        "steps": 9,
        "revision": revision,
        "selection": EntropyBound(6.0),
        "block_length": 11,
    }
    together = denoiser().write(guides, samples=2, seed=40, **options)
    for k, result in enumerate(together):
        assert result.satisfied, result.text
        (alone,) = denoiser().write(guides, seed=40 + k, **options)
        assert (alone.tokens, alone.trace, alone.steps) == (result.tokens, result.trace, result.steps)


@pytest.mark.parametrize("blind", [False, True], ids=["sees ahead", "blind"])
def test_only_the_current_block_is_committed(blind: bool) -> None:
    vocabulary = small_vocabulary(eos=False, whole_first=True)
    denoiser = Chaos(vocabulary, block=5 if blind else None)
    (result,) = denoiser.write(
        Keywords("sea"), seed=4, length=18, steps=8, block_length=5, selection=LeftToRight()
    )
    starts = [j * 8 // 4 for j in range(5)]
    for number, commit in enumerate(result.trace):
        block = next(j for j in range(4) if starts[j] <= number < starts[j + 1])
        assert commit.positions
        assert all(position // 5 == block for position in commit.positions)
    assert sorted(p for commit in result.trace for p in commit.positions) == list(range(18))


class Brief(Chaos):
    """Sure that the text ends at position 3."""

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        logits = super().__call__(canvas, prompt)
        logits[:, :, 1] = -30.0
        logits[:, 3, 1] = 60.0
        return logits


def test_a_closed_text_needs_no_more_forward_passes() -> None:
    denoiser = Brief(small_vocabulary(whole_first=True), block=6)
    results = denoiser.write(samples=2, seed=1, length=60, steps=30)
    assert all(result.tokens == (*result.tokens[:3], 1, *[2] * 56) for result in results)
    assert denoiser.calls <= 3
    seeing = Brief(small_vocabulary(whole_first=True))
    (result,) = seeing.write(seed=1, length=60, steps=30, block_length=6)
    assert result.tokens[3:] == (1, *[2] * 56)
    assert seeing.calls <= 4


class Filling(Chaos):
    """Believes in EOS everywhere to the right of 8 until something is written there; then the text goes on."""

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        logits = super().__call__(canvas, prompt)
        logits[..., 1] = -20.0
        written = (~canvas.open).sum(-1)
        for row, count in enumerate(written.tolist()):
            logits[row, max(8, int(count) + 4) :, 1] = 20.0
        return logits


def test_a_long_canvas_does_not_fill_with_the_end() -> None:
    """A denoiser that sees an empty canvas as a finished text ends it at once; in blocks it is asked again."""
    options = {"seed": 2, "length": 48, "steps": 24, "selection": Confidence()}
    (whole,) = Filling(small_vocabulary(whole_first=True)).write(**options)
    (blocks,) = Filling(small_vocabulary(whole_first=True)).write(**options, block_length=4)
    assert whole.tokens.index(1) < 16 < 40 < blocks.tokens.index(1)


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_without_guides_a_fresh_block_has_no_pressure(temperature: float) -> None:
    """The weights of all that a block can be, ended or not, sum to one."""
    denoiser = Chaos(small_vocabulary(fragments=False), sharpness=0.3, block=7)
    for result in denoiser.write(samples=2, seed=5, length=30, steps=10, temperature=temperature):
        assert max(result.pressure[::2]) < 1e-4


def test_pins_of_later_blocks_are_kept() -> None:
    vocabulary = letters(3, eos=False)
    denoiser = Chaos(vocabulary, block=3)
    guide = Raw(((1, 0, 0), (0, 1, 1)), (True, False))  # an even number of a
    scene = Scene(vocabulary, denoiser.device, 2, 8, 6)
    random = Randomness([1, 2])
    where = torch.zeros(2, 8, dtype=torch.bool)
    where[:, [4, 7]] = True
    canvas = denoiser.noise.blank(8, random).pin(torch.zeros(2, 8, dtype=torch.int64), where)
    run = refine(denoiser, canvas, Steering([guide], scene), prompt=denoiser.prepare("", 2),
                 settings=Settings(steps=6), random=random)  # fmt: skip
    try:
        while True:
            next(run)
    except StopIteration as end:
        final = end.value
    assert not final.open.any()
    for row in final.tokens.tolist():
        assert row[4] == row[7] == 0
        assert row.count(0) % 2 == 0


@pytest.mark.parametrize("doubting", [False, True])
def test_rows_may_be_exchanged_between_steps(doubting: bool) -> None:
    """A population resampled inside the loop: what is finished, open and remembered moves along."""
    vocabulary = letters(3, eos=False)
    denoiser = Chaos(vocabulary, sharpness=0.3, block=4, noise=uniform(vocabulary) if doubting else None)
    guide = Raw(((1, 0, 0), (1, 2, 1), (2, 2, 0)), (False, False, True))
    random = Randomness([1, 2, 3])
    settings = Settings(steps=9, revision=Reconsider() if doubting else None)
    steering = Steering([guide], Scene(vocabulary, denoiser.device, 3, 11, 9))
    run = refine(denoiser, denoiser.noise.blank(11, random), steering, prompt=denoiser.prepare("", 3),
                 settings=settings, random=random)  # fmt: skip
    rows, sent = [torch.tensor([2, 0, 0]), torch.tensor([1, 1, 2])], 0
    seen = next(run)
    try:
        while True:
            following, before = run.send(rows[sent % 2]), seen
            if following.canvas.tokens.shape == before.canvas.tokens.shape:
                assert torch.equal(following.step.canvas.tokens, before.canvas.tokens[rows[sent % 2]])
            seen, sent = following, sent + 1
    except StopIteration as end:
        final = end.value
    assert sent > 4
    assert not final.open.any()
    assert all(guide.check(vocabulary.decode(row)).status == "satisfied" for row in final.tokens.tolist())


def test_what_an_earlier_block_has_settled_is_not_reconsidered() -> None:
    """The end of a text that stands in an earlier block stays there, or nothing would settle the blocks behind it."""
    vocabulary = small_vocabulary()
    denoiser = Chaos(vocabulary, sharpness=1.0, noise=uniform(vocabulary))
    final: list[Refinement] = []
    results = denoiser.write([Keywords("storm"), Words(2, 8)], seed=0, samples=20, batch_size=20, length=20, steps=5,
                             block_length=8, revision=Reconsider(), on_step=final.append)  # fmt: skip
    assert not final[-1].canvas.open.any()
    assert all(vocabulary.eos_id in result.tokens and result.satisfied for result in results)


def test_blocks_that_cannot_be_are_refused() -> None:
    denoiser = Chaos(small_vocabulary(), block=4)
    for options, message in (
        ({"steps": 5, "length": 24}, "has 6 blocks of 4: use at least one step a block"),
        ({"block_length": 5}, "writes blocks of 4: leave block_length out"),
        ({"block_length": 0}, "block_length is 0"),
        ({"revision": Reconsider()}, "expects masks there"),
    ):
        with pytest.raises(InvalidGuideError, match=message):
            denoiser.write(seed=1, **options)
    assert denoiser.calls == 0


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 40))
def test_every_block_has_its_steps(length: int, block: int, spare: int) -> None:
    count = -(-length // block)
    schedule = Schedule.of(count + spare, length, block, None)
    windows = list(schedule.windows(apart=True))
    assert [w.end for w in windows] == [min((j + 1) * block, length) for j in range(count)]
    assert [step for w in windows for step in w.steps] == list(range(count + spare))
    assert max(len(w.steps) for w in windows) - min(len(w.steps) for w in windows) <= 1
