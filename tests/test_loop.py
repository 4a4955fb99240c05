"""The loop: exact laws on a toy joint, rows, seeds, pins, reopening, greedy decoding, early errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toys import Chaos, Exact, small_vocabulary

from redraft.denoiser import (
    Canvas,
    Confidence,
    EntropyBound,
    InvalidGuideError,
    LeftToRight,
    Margin,
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
    refine,
)
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.selection import Proposal, Selection
from redraft.denoiser.testing import ToyDenoiser
from redraft.guidance import Bias, Forbid, Infill, Keywords, Repetition, Sentences, Tokens, Words, during

POLICIES: list[Selection] = [
    Random(), Confidence(), Confidence(0.7), Confidence(0.7, 0.3), Margin(), LeftToRight(),
    EntropyBound(0.0), EntropyBound(2.0),
]  # fmt: skip


def skewed_joint(symbols: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    joint = torch.rand([symbols] * length, generator=generator, dtype=torch.float64) ** 4
    return joint / joint.sum()


def chi_square_bound(cells: int) -> float:
    """Mean + 6 standard deviations of chi-square with cells - 1 degrees of freedom: flakes once in 1e7."""
    return (cells - 1) + 6 * (2 * (cells - 1)) ** 0.5


@pytest.mark.parametrize("selection", [Random(), LeftToRight()], ids=repr)
def test_one_commit_a_step_samples_the_exact_joint(selection: Selection) -> None:
    joint = skewed_joint(3, 3)
    samples = 3000
    results = Exact(joint, "abc").write(
        samples=samples, seed=11, steps=3, selection=selection, batch_size=3000, temperature=1.0
    )
    counts = {"".join(w): 0 for w in itertools.product("abc", repeat=3)}
    for result in results:
        counts[result.text] += 1
    expected = {
        "".join("abc"[k] for k in w): float(joint[w]) * samples for w in itertools.product(range(3), repeat=3)
    }
    kept = [w for w in counts if expected[w] >= 5]
    statistic = sum((counts[w] - expected[w]) ** 2 / expected[w] for w in kept)
    assert statistic < chi_square_bound(len(kept))


class Shortsighted(ToyDenoiser):
    """Guesses that the text is over soon wherever it has not come to, and knows better when it is there."""

    TEXT = 20  # tokens

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        logits = torch.zeros(*canvas.tokens.shape, len(self.vocabulary))
        logits[..., self._never] = -torch.inf
        logits[..., 1:3] = math.log(len(self.vocabulary))  # EOS: about one half
        here = canvas.open.long().argmax(-1)
        logits[torch.arange(len(here)), here, 1] = torch.where(here < self.TEXT, -40.0, 40.0)
        return logits


@pytest.mark.parametrize("guides", [(), (Words(0, 90),)], ids=str)
def test_a_text_read_in_order_ends_where_it_comes_to_its_end(guides: tuple[Words, ...]) -> None:
    shown: list[Refinement] = []
    results = Shortsighted().write(
        guides,
        samples=4,
        seed=1,
        length=40,
        steps=40,
        selection=LeftToRight(),
        temperature=1.0,
        on_step=shown.append,
    )
    for result in results:
        assert result.tokens.index(1) == Shortsighted.TEXT
        assert result.steps == Shortsighted.TEXT + 1  # what is behind the end comes with it
    for step in shown:
        held, padding = ~step.canvas.open, step.canvas.tokens == 2
        ended = (held & (step.canvas.tokens == 1)).any(-1)
        assert not (held & padding).any(-1)[~ended].any()


def test_a_count_commits_the_end_first_where_the_order_is_free() -> None:
    first: list[Refinement] = []
    for selection in (Random(), LeftToRight()):
        ToyDenoiser().write(
            Words(3, 9),
            seed=1,
            length=16,
            steps=16,
            selection=selection,
            on_step=first.append,
            temperature=1.0,
        )
    ends = [bool((step.committed & (step.draft == 1)).any()) for step in first if step.step.index == 0]
    assert ends == [True, False]


def test_greedy_is_the_most_probable_draft_each_step() -> None:
    joint = skewed_joint(3, 4)
    (result,) = Exact(joint, "abc").write(seed=0, steps=4, temperature=0.0, selection=LeftToRight())
    text = ""
    for _ in range(4):  # commit the argmax of the conditional marginal, left to right
        weights = {
            s: sum(
                float(joint[w])
                for w in itertools.product(range(3), repeat=4)
                if "".join("abc"[k] for k in w).startswith(text + s)
            )
            for s in "abc"
        }
        text += max(weights, key=lambda s: weights[s])
    assert result.text == text
    assert {
        r.text
        for r in Exact(joint, "abc").write(
            samples=5, seed=3, steps=4, temperature=0.0, selection=LeftToRight()
        )
    } == {text}


@pytest.mark.parametrize("selection", POLICIES, ids=repr)
@pytest.mark.parametrize("revision", [None, Uncertain(0.3)], ids=["keep", "reopen"])
def test_eight_samples_are_eight_single_runs(selection: Selection, revision: Uncertain | None) -> None:
    options = {"steps": 9, "selection": selection, "revision": revision, "temperature": 0.9}
    guides = [Keywords("storm", "dog"), Words(3, 9), 1.5 * Bias({"sea": 2.0}), Repetition()]
    together = Chaos(small_vocabulary(whole_first=True), sharpness=1.0).write(
        guides, samples=8, seed=40, **options
    )
    for k, result in enumerate(together):
        (alone,) = Chaos(small_vocabulary(whole_first=True), sharpness=1.0).write(
            guides, seed=40 + k, **options
        )
        assert (alone.text, alone.tokens, alone.steps, alone.trace) == (
            result.text,
            result.tokens,
            result.steps,
            result.trace,
        )
    assert len({result.text for result in together}) > 1


def test_the_seed_is_the_text() -> None:
    denoiser = Chaos(small_vocabulary(), sharpness=1.0)
    first, again, other = (denoiser.write(Keywords("storm"), seed=s, steps=6)[0].text for s in (7, 7, 9))
    assert first == again != other


@pytest.mark.parametrize(
    "guide", [0.0 * Bias({"dog": 5.0}), 0.0 * Repetition(), during(0.5, 0.6, 0 * Bias({"dog": 1}))], ids=str
)
def test_scale_zero_is_no_guide(guide: object) -> None:
    denoiser = Chaos(small_vocabulary())
    with_guide = denoiser.write([guide], seed=1, samples=3, steps=6)  # type: ignore[list-item]
    without = denoiser.write(seed=1, samples=3, steps=6)
    assert [r.tokens for r in with_guide] == [r.tokens for r in without]
    assert [r.trace for r in with_guide] == [r.trace for r in without]


def test_during_works_only_in_its_part() -> None:
    denoiser = Chaos(small_vocabulary())
    scene = Scene(denoiser.vocabulary, denoiser.device, 1, 24, 4)
    steering = Steering([during(0.25, 0.75, Bias({"dog": 2.0}))], scene)
    prompt = denoiser.prepare("", 1)
    canvas = Canvas.blank(1, 24, denoiser.noise.fill)
    run = refine(
        denoiser, canvas, steering, prompt=prompt, settings=Settings(steps=4), random=Randomness([1])
    )
    assert [steering.bias(r.step) is not None for r in run] == [False, True, True, False]


@pytest.mark.parametrize("selection", POLICIES, ids=repr)
def test_pins_survive_everything(selection: Selection) -> None:
    denoiser = Chaos(small_vocabulary(whole_first=True), sharpness=1.0)
    tokens = torch.tensor([denoiser.vocabulary.encode(" dog")]).expand(2, -1)
    canvas = Canvas.blank(2, 16, denoiser.noise.fill)
    where = torch.zeros_like(canvas.open)
    where[:, 5] = True
    canvas = canvas.pin(torch.where(where, tokens[:, :1], canvas.tokens), where)
    steering = Steering([Keywords("storm")], Scene(denoiser.vocabulary, denoiser.device, 2, 16, 12))
    settings = Settings(steps=12, selection=selection, revision=Uncertain(0.9, 0.0, 1.0))
    reopened = 0
    for r in refine(
        denoiser,
        canvas,
        steering,
        prompt=denoiser.prepare("", 2),
        settings=settings,
        random=Randomness([1, 2]),
    ):
        assert (r.canvas.tokens[:, 5] == tokens[:, 0]).all()
        assert not r.canvas.open[:, 5].any()
        assert not (r.reopened & r.canvas.pinned).any()
        reopened += int(r.reopened.sum())
    assert reopened > 0
    assert not r.canvas.open.any()
    assert all(
        Keywords("storm").check(denoiser.vocabulary.decode(row)).status == "satisfied"
        for row in r.canvas.tokens.tolist()
    )


def test_every_draft_completes_the_canvas() -> None:
    denoiser = Chaos(small_vocabulary(whole_first=True))
    guides = [Keywords("storm", "sea"), Sentences(1, 2), Forbid("the")]
    scene = Scene(denoiser.vocabulary, denoiser.device, 4, 30, 10)
    steering = Steering(guides, scene)
    canvas = Canvas.blank(4, 30, denoiser.noise.fill)
    settings = Settings(steps=10, revision=Uncertain(0.4))
    for r in refine(
        denoiser,
        canvas,
        steering,
        prompt=denoiser.prepare("", 4),
        settings=settings,
        random=Randomness(range(4)),
    ):
        held = ~r.step.canvas.open
        assert torch.equal(r.draft[held], r.step.canvas.tokens[held])
        for row in r.draft.tolist():
            assert steering.automaton.accepts(row)
            assert all(guide.check(denoiser.vocabulary.decode(row)).status == "satisfied" for guide in guides)
        assert (r.pressure >= -1e-6).all()


def test_confidence_leans_to_the_left() -> None:
    """A lean above every difference in confidence is left to right; positions committed are further left for more."""

    def order(selection: Selection) -> list[int]:
        denoiser = Chaos(small_vocabulary(eos=False))
        refinements: list[Refinement] = []
        denoiser.write(
            seed=4, steps=40, length=12, temperature=1.0, selection=selection, on_step=refinements.append
        )
        committed = torch.stack([r.committed[0] for r in refinements])
        return [int(step.int().argmax()) for step in committed.T]

    steps = [order(Confidence(1.0, lean)) for lean in (0.0, 0.5, 1e4)]
    assert steps[2] == order(LeftToRight()) == sorted(steps[2])
    inversions = [sum(a > b for i, a in enumerate(s) for b in s[i + 1 :]) for s in steps]
    assert inversions[0] > inversions[1] > inversions[2] == 0
    with pytest.raises(InvalidGuideError, match="the lean of Confidence is -1"):
        Confidence(lean=-1)


def _from_the_left(
    free: list[bool], quota: int, unseen: tuple[int, ...] = (), last: bool = False
) -> list[int]:
    shown = torch.tensor([free])
    settled = torch.tensor([[i in unseen for i in range(len(free))]])
    step: Any = None  # the order looks at no draft
    nothing = torch.zeros(shown.shape, dtype=torch.float64)
    proposal = Proposal(
        step, nothing.long(), nothing, shown, torch.tensor([quota]), torch.tensor([last]), nothing, settled
    )
    return list(LeftToRight()(proposal)[0].nonzero()[:, 0].tolist())


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 12))
def test_left_to_right_commits_its_quota_far_apart(free: list[bool], quota: int) -> None:
    """The leftmost one alone; the first of each of the leftmost runs; in one run as far apart as it is long."""
    places = [i for i, f in enumerate(free) if f]
    heads = [i for i in places if i == 0 or not free[i - 1]]
    chosen = _from_the_left(free, quota)
    assert set(chosen) <= set(places)
    assert len(chosen) == min(quota, len(places))
    assert chosen[:1] == places[: min(quota, 1)]
    if quota <= len(heads):
        assert chosen == heads[:quota]
    else:
        assert set(heads) <= set(chosen)
    if len(heads) == 1 and 1 < quota <= len(places):
        strides = [d for d in range(1, 41) if -(-len(places) // d) <= quota]
        assert set(places[:: strides[0]]) <= set(chosen)


def test_left_to_right_writes_several_runs_from_their_left() -> None:
    """The whole order by hand: an even split at first, then each run goes on; what is closed parts the runs."""
    free, steps = [True] * 9, []
    while any(free):
        steps.append(_from_the_left(free, 2))
        free = [f and i not in steps[-1] for i, f in enumerate(free)]
    assert steps == [[0, 5], [1, 6], [2, 7], [3, 8], [4]]
    closed = [i not in (4, 5) for i in range(12)]
    assert _from_the_left(closed, 3) == [0, 6, 10]


def test_left_to_right_draws_nothing_behind_what_is_committed_unseen() -> None:
    free = [i > 0 for i in range(9)]
    assert _from_the_left(free, 1) == [1]
    assert _from_the_left(free, 1, unseen=(0,)) == []
    assert _from_the_left(free, 2, unseen=(0,)) == [5]
    assert _from_the_left(free, 8, unseen=(0,), last=True) == list(range(1, 9))


class Followers(Exact):
    """a, and then b if a is seen, else c: the first token is certain, the second must see it."""

    def __init__(self) -> None:
        super().__init__(torch.ones(3, 3), "abc")

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        logits = torch.full((*canvas.tokens.shape, 4), -1e9)
        logits[:, 0, 0] = 0.0
        seen = ~canvas.open[:, 0]
        logits[:, 1, 1], logits[:, 1, 2] = torch.where(seen, 0.0, -3.0), torch.where(seen, -3.0, 0.0)
        return logits


def test_what_is_drawn_behind_a_certain_token_has_seen_it() -> None:
    """P(b | a) = 1 / (1 + exp(-3)); in 400 texts the share of b within four standard errors."""
    results = Followers().write(samples=400, seed=5, steps=4, selection=LeftToRight(), batch_size=400)
    texts = [result.text for result in results]
    p = 1 / (1 + math.exp(-3))
    assert {t[0] for t in texts} == {"a"}
    assert abs(sum(t == "ab" for t in texts) / 400 - p) < 4 * math.sqrt(p * (1 - p) / 400)


def test_a_certain_token_that_stands_keeps_nothing_waiting() -> None:
    """Uniform noise opens every position again: what stands has been seen, and its followers are accepted in turn."""

    class Flat(Exact):
        def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
            logits = torch.zeros(*canvas.tokens.shape, 3)
            logits[:, ::2, 0] = 50.0
            logits[..., 2] = -torch.inf
            return logits

    denoiser = Flat(torch.ones([2] * 8), "ab")
    denoiser.noise = Uniform(2)
    settings = Settings(steps=8, selection=LeftToRight(), revision=Reconsider())
    random = Randomness([3])
    steps = refine(
        denoiser,
        denoiser.noise.blank(8, random),
        Steering([], Scene(denoiser.vocabulary, denoiser.device, 1, 8, 8)),
        prompt=denoiser.prepare("", 1, None),
        settings=settings,
        random=random,
    )
    accepted = [int(step.committed[0].sum()) for step in steps]
    assert accepted == sorted(accepted)
    assert accepted[-2] == 8


@pytest.mark.parametrize("temperature", [0.0, 0.01, 0.1])
def test_a_cold_run_takes_its_steps(temperature: float) -> None:
    """Near temperature 0 every best token looks certain; that must not commit the whole canvas at once."""
    denoiser = Chaos(small_vocabulary(whole_first=True, eos=False))
    (result,) = denoiser.write(seed=1, steps=8, temperature=temperature)
    assert result.steps == 8
    assert all(pressure >= 0 for pressure in result.pressure)


class _Jittery(Chaos):
    """Its log-probabilities change in the last places with the batch size: the logits are shifted by a constant."""

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        logits = super().__call__(canvas, prompt)
        return logits + 0.1 * (len(logits) > 1)


def test_rounding_does_not_decide_what_is_certain() -> None:
    """A posterior of 1 - 3e-8 is 1 or less by the batch size; a row must commit the same either way."""
    vocabulary = small_vocabulary()
    together = _Jittery(vocabulary).write(seed=1, samples=16, steps=8, selection=Confidence(), top_p=0.95)
    for k, result in enumerate(together):
        (alone,) = _Jittery(vocabulary).write(seed=1 + k, steps=8, selection=Confidence(), top_p=0.95)
        assert alone.tokens == result.tokens


def test_a_run_can_be_stopped() -> None:
    denoiser = Chaos(small_vocabulary())
    steering = Steering([], Scene(denoiser.vocabulary, denoiser.device, 1, 24, 12))
    canvas = Canvas.blank(1, 24, denoiser.noise.fill)
    run = refine(
        denoiser,
        canvas,
        steering,
        prompt=denoiser.prepare("", 1),
        settings=Settings(steps=12),
        random=Randomness([1]),
    )
    next(run), next(run)
    run.close()  # type: ignore[attr-defined]
    assert denoiser.calls == 2


def test_entropy_bound_takes_fewer_steps_for_a_looser_bound() -> None:
    steps = [
        Chaos(small_vocabulary(), sharpness=2.0).write(seed=1, steps=24, selection=EntropyBound(b))[0].steps
        for b in (0.0, 1.0, 400.0)
    ]
    assert steps[0] > steps[1] > steps[2] == 1


@pytest.mark.parametrize("sharpness", [1e3, 1e30])
@pytest.mark.parametrize("temperature", [0.0, 0.01, 1.0, 50.0])
def test_numerics_never_fail(sharpness: float, temperature: float) -> None:
    guides = [Infill("The storm ___ sad keeper [[2-3]] home. By the sea."), Forbid("was")]
    for result in Chaos(small_vocabulary(), sharpness=sharpness).write(
        guides, samples=2, seed=3, steps=7, temperature=temperature
    ):
        assert result.satisfied, result.text
        assert all(p == p and abs(p) < float("inf") for p in result.pressure)


class OneHot(Chaos):
    """All its mass on one token that the guides forbid, -inf elsewhere."""

    def __call__(self, canvas, prompt):  # type: ignore[no-untyped-def]
        logits = torch.full((*canvas.tokens.shape, len(self.vocabulary)), -torch.inf)
        logits[..., self.vocabulary.encode(" the")[0]] = 0.0
        return logits


def test_a_denoiser_that_wants_only_what_is_forbidden() -> None:
    for temperature in (0.0, 1.0):
        results = OneHot(small_vocabulary(whole_first=True)).write(
            [Forbid("the"), Keywords("storm"), Tokens(3, 9)],
            samples=3,
            seed=1,
            steps=5,
            temperature=temperature,
        )
        assert all(r.satisfied for r in results)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"guides": [Keywords("storm"), Forbid("storm")]}, UnsatisfiableError, "contradict"),
        ({"guides": Keywords("storm"), "length": 200}, InvalidGuideError, "length is 200"),
        ({"guides": Tokens(200)}, UnsatisfiableError, "a canvas of 200 tokens, and chaos writes at most 96"),
        ({"steps": 0}, InvalidGuideError, "steps is 0"),
        ({"steps": True}, InvalidGuideError, "steps is True"),
        ({"temperature": float("nan")}, InvalidGuideError, "temperature is nan"),
        ({"temperature": -1.0}, InvalidGuideError, "temperature is -1"),
        ({"top_p": 0.0}, InvalidGuideError, "top_p is 0"),
        ({"top_k": 0}, InvalidGuideError, "top_k is 0"),
        ({"samples": 0}, InvalidGuideError, "samples is 0"),
        ({"seed": -1}, InvalidGuideError, "seed is -1, and 1 seed is used"),
        ({"seed": True}, InvalidGuideError, "seed is True"),
        (
            {"seed": 2**63 - 1, "samples": 2},
            InvalidGuideError,
            f"seed is {2**63 - 1}, and 2 seeds .* 0 to {2**63 - 2}",
        ),
        ({"condition": {"genre": "tale"}}, InvalidGuideError, "no condition 'genre'"),
        ({"selection": "random"}, InvalidGuideError, "selection is 'random'"),
        ({"guides": ["storm"]}, InvalidGuideError, "'storm' is no guide"),
        ({"colour": "red"}, TypeError, "no option colour"),
    ],
)
def test_bad_requests_cost_no_forward_pass(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    denoiser = Chaos(small_vocabulary())
    with pytest.raises(error, match=message):
        denoiser.write(**options)  # type: ignore[arg-type]
    assert denoiser.calls == 0


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), -float("inf")])
def test_scales_are_finite(scale: float) -> None:
    with pytest.raises(InvalidGuideError, match="use a finite number"):
        scale * Bias({"dog": 1.0})


def test_a_mask_marker_in_a_guide_is_text() -> None:
    denoiser = Chaos(small_vocabulary(whole_first=True), length=40)
    for guide in (Keywords("<mask>"), Infill("A <mask> and [MASK] ___.")):
        (result,) = denoiser.write(guide, seed=2, steps=8, prompt="<mask>")
        assert result.satisfied
        assert "<mask>" in result.text
        assert denoiser.vocabulary.mask_id not in result.tokens
