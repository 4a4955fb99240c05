"""Particles: closed forms on an exact joint, unbiased evidence, rows that do not mix, degenerate cases."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from toys import Chaos, Exact, small_vocabulary, uniform

from redraft.denoiser import (
    Absorbing,
    BestOf,
    Canvas,
    Denoiser,
    Drafts,
    InvalidGuideError,
    LeftToRight,
    Particles,
    Prompt,
    Random,
    Refinement,
    Scene,
    Settings,
    Uncertain,
    Vocabulary,
    during,
)
from redraft.denoiser.own_score import runs_again
from redraft.denoiser.particles import Potential, Resampling
from redraft.denoiser.steering import Steering
from redraft.denoiser.swarm import drawn, row_seeds
from redraft.denoiser.write import run_canvas
from redraft.guidance import Infill, Keywords, Pattern, Reward
from redraft.recipes import InvalidRecipeError, Recipe, to_dict

GENERATOR = torch.Generator().manual_seed(5)
JOINT = torch.rand([3, 3, 3], generator=GENERATOR, dtype=torch.float64) ** 4
JOINT = JOINT / JOINT.sum()
TEXTS = ["".join(w) for w in itertools.product("abc", repeat=3)]
P = dict(zip(TEXTS, JOINT.flatten().tolist(), strict=True))


def skewed(text: str) -> float:
    """A score that no sum over positions is."""
    return 1.5 * (text.count("a") == 2) + 0.4 * text.startswith("c") - 0.8 * (text[-1] == "b")


def scores(texts: Sequence[str]) -> list[float]:
    return [skewed(text) for text in texts]


def tilted() -> tuple[dict[str, float], float]:
    mass = {text: P[text] * math.exp(skewed(text)) for text in TEXTS}
    total = sum(mass.values())
    return {text: value / total for text, value in mass.items()}, total


@pytest.mark.parametrize("potential", ["difference", "max", "sum"])
@pytest.mark.parametrize("resample", ["systematic", "multinomial"])
def test_the_weighted_particles_are_the_tilted_joint(potential: Potential, resample: Resampling) -> None:
    count = 4000
    (result,) = Exact(JOINT, "abc").write(
        Reward(scores), seed=3, steps=3, selection=Random(), batch_size=count,
        particles=Particles(count, potential, ess=0.9, resample=resample),
    )  # fmt: skip
    population = result.particles
    assert population is not None
    assert len(population.resampled) >= 1
    assert math.isclose(sum(population.weights), 1.0, rel_tol=1e-9)
    wanted, total = tilted()
    share: Counter[str] = Counter()
    for text, weight in zip(population.texts, population.weights, strict=True):
        share[text] += weight
    worst = math.exp(2 * 2.7)  # the square of the largest weight ratio, twice resampled
    for text, p in wanted.items():
        assert abs(share[text] - p) < 6 * math.sqrt(p * (1 - p) * worst / count / 8), text
    assert abs(population.log_z - math.log(total)) < 6 * math.sqrt(worst / count / 8)


def test_the_bound_would_catch_the_untilted_joint() -> None:
    wanted, _ = tilted()
    worst = math.exp(2 * 2.7)
    assert any(abs(P[t] - p) > 6 * math.sqrt(p * (1 - p) * worst / 4000 / 8) for t, p in wanted.items())


@pytest.mark.parametrize("ess", [0.0, 0.7, 1.0])
def test_the_mean_weight_is_an_unbiased_estimate_of_the_evidence(ess: float) -> None:
    """E[exp(log_z)] = E_p[exp(score)], however few particles there are."""
    n = 800
    results = Exact(JOINT, "abc").write(
        Reward(scores), samples=n, seed=50, steps=3, selection=Random(), batch_size=4 * n,
        particles=Particles(4, ess=ess),
    )  # fmt: skip
    found = torch.tensor([math.exp(r.particles.log_z) for r in results if r.particles])
    assert abs(float(found.mean()) - tilted()[1]) < 5 * float(found.std()) / math.sqrt(n)


def test_the_sampled_text_follows_the_target() -> None:
    n = 400
    results = Exact(JOINT, "abc").write(
        Reward(scores), samples=n, seed=9, steps=3, selection=Random(), batch_size=3000,
        particles=Particles(30),
    )  # fmt: skip
    wanted, _ = tilted()
    counts = Counter(result.text for result in results)
    kept = [text for text in TEXTS if n * wanted[text] >= 5]
    statistic = sum((counts[t] - n * wanted[t]) ** 2 / (n * wanted[t]) for t in kept)
    assert statistic < len(kept) - 1 + 6 * math.sqrt(2 * (len(kept) - 1))


@pytest.mark.parametrize("twist", [True, False])
def test_the_language_s_log_z_is_the_twist(twist: bool) -> None:
    """With it the weighted particles are p given the language; without, the run that draws within it."""
    count = 4000
    (result,) = Exact(JOINT, "abc").write(
        [Pattern("a.*[bc]|b.*[ac]|c.*[ab]")], seed=4, steps=3, selection=LeftToRight(), batch_size=count,
        particles=Particles(count, twist=twist, ess=0.5),
    )  # fmt: skip
    population = result.particles
    assert population is not None
    inside = {t: p for t, p in P.items() if t[0] != t[-1]}  # nothing is ever forced
    total = sum(inside.values())
    share: Counter[str] = Counter()
    for text, weight in zip(population.texts, population.weights, strict=True):
        share[text] += weight
    assert set(share) <= set(inside)
    far = max(
        abs(share[t] - p / total) / math.sqrt(p / total * (1 - p / total) / count) for t, p in inside.items()
    )
    assert (far < 8) == twist
    assert (abs(population.log_z - math.log(total)) < 0.1) == twist


def test_one_particle_is_no_particles() -> None:
    denoiser = Chaos(small_vocabulary())
    guides = [Keywords("storm")]
    plain = denoiser.write(guides, samples=3, seed=7, steps=6)
    one = denoiser.write(guides, samples=3, seed=7, steps=6, particles=Particles(1))
    assert [(r.text, r.trace, r.pressure) for r in plain] == [(r.text, r.trace, r.pressure) for r in one]


def test_equal_weights_change_nothing() -> None:
    """Every particle is the text of its own seed, and none is resampled."""
    denoiser = Chaos(small_vocabulary())
    guide = Reward(lambda texts: [0.7] * len(texts))
    (result,) = denoiser.write(guide, seed=2, steps=5, particles=Particles(6, "sum"), batch_size=6)
    population = result.particles
    assert population is not None
    assert population.resampled == ()
    assert population.weights == pytest.approx([1 / 6] * 6)
    alone = [denoiser.write(seed=s, steps=5)[0].text for s in row_seeds([2], 6)]
    assert list(population.texts) == alone
    assert result.text == alone[population.chosen]


@pytest.mark.parametrize("potential", ["difference", "max", "sum"])
def test_texts_of_a_batch_are_texts_alone(potential: Potential) -> None:
    """Rows of different requests never mix: not in weights, not in rows, not in random numbers."""
    denoiser = Chaos(small_vocabulary(whole_first=True), sharpness=1.0)
    guides = [Keywords("storm"), 0.5 * Reward(lambda texts: [len(set(t)) / 4 for t in texts])]
    options = {"steps": 7, "particles": Particles(5, potential, ess=0.9)}
    together = denoiser.write(guides, samples=4, seed=60, batch_size=20, **options)
    assert any(r.particles.resampled for r in together if r.particles)
    for k, result in enumerate(together):
        (alone,) = denoiser.write(guides, seed=60 + k, **options)
        assert (alone.text, alone.trace, alone.pressure) == (result.text, result.trace, result.pressure)
        assert alone.particles == result.particles
        if result.particles:
            assert result.particles.scores == tuple(0.5 * len(set(t)) / 4 for t in result.particles.texts)


def test_a_trace_is_its_text_s_own_history() -> None:
    """Replaying the chosen particle's commits gives its text, through every resampling."""
    denoiser = Chaos(small_vocabulary())
    guide = Reward(lambda texts: [3.0 * t.count("s") for t in texts])
    (result,) = denoiser.write(guide, seed=1, steps=8, particles=Particles(8, ess=1.0), batch_size=8)
    tokens: dict[int, int] = {}
    for commit in result.trace:
        tokens |= dict(zip(commit.positions, commit.tokens, strict=True))
    assert tuple(tokens[i] for i in range(len(result.tokens))) == result.tokens
    assert result.particles is not None
    assert result.particles.texts[result.particles.chosen] == result.text
    assert result.forward_passes == 8 * result.steps


def test_best_of_is_the_best_of_independent_texts() -> None:
    denoiser = Chaos(small_vocabulary())

    def length(texts: Sequence[str]) -> list[float]:
        seen.append(len(texts))
        return [float(len(text)) for text in texts]

    seen: list[int] = []
    (best,) = denoiser.write(Reward(length), seed=5, steps=5, particles=BestOf(6))
    alone = [denoiser.write(seed=s, steps=5)[0].text for s in row_seeds([5], 6)]
    assert best.text == max(alone, key=len)
    assert seen == [6, 1]  # the drafts of the last step, and the check of the chosen text


@pytest.mark.parametrize("likelihood", [0.5, 2.0])
def test_likelihood_sharpens_the_joint_and_not_each_token(likelihood: float) -> None:
    """The weighted particles are P(x)^(1 + likelihood) exp(r(x)), and log_z is of E_P[P^likelihood exp(r)]."""
    count = 4000
    (result,) = Exact(JOINT, "abc").write(
        0.5 * Reward(scores), seed=6, steps=3, selection=Random(), batch_size=count,
        particles=Particles(count, ess=0.7, likelihood=likelihood),
    )  # fmt: skip
    population = result.particles
    assert population is not None
    mass = {t: p ** (1 + likelihood) * math.exp(0.5 * skewed(t)) for t, p in P.items()}
    total = sum(mass.values())
    worst = (
        max(mass[t] / total / P[t] for t in TEXTS) ** 2
    )  # the square of the largest weight, twice resampled
    share: Counter[str] = Counter()
    for text, weight in zip(population.texts, population.weights, strict=True):
        share[text] += weight
    for text, m in mass.items():
        p = m / total
        assert abs(share[text] - p) < 6 * math.sqrt(p * (1 - p) * worst / count), text
    assert any(
        abs(P[t] - mass[t] / total) > 6 * math.sqrt(P[t] * worst / count) for t in TEXTS
    )  # it would catch P
    assert abs(population.log_z - math.log(total)) < 6 * math.sqrt(worst / count)
    for text, score in zip(population.texts, population.scores, strict=True):
        assert score == pytest.approx(likelihood * math.log(P[text]) + 0.5 * skewed(text), abs=1e-4)


GOES_ON = 2 / 3


class Coins(Denoiser):
    """Text tokens "a" and "b" at 0.7 and 0.3 wherever a text goes on, which it does two times in three."""

    name = "coins"

    def __init__(self, length: int) -> None:
        self.vocabulary = Vocabulary([b"a", b"b", None, None, None], lambda t: [ord(c) - 97 for c in t],
                                     mask_id=2, eos_id=3, pad_id=4)  # fmt: skip
        self.noise, self.device = Absorbing(2), torch.device("cpu")
        self.length = self.max_length = length

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        odds = torch.tensor([0.7, 0.3, 0.0, 1 / GOES_ON - 1, 0.5])
        return odds.log().expand(*canvas.tokens.shape, -1)


def coins(length: int) -> dict[str, float]:
    """The run's own law: a text ends at once or goes on, and each token has its own chance."""
    room = 1 - GOES_ON**length
    return {
        "".join(w): math.prod(GOES_ON * (0.7 if c == "a" else 0.3) for c in w) * (1 - GOES_ON) / room
        for n in range(length)
        for w in itertools.product("ab", repeat=n)
    }


@pytest.mark.parametrize("restricted", [False, True])
def test_likelihood_counts_where_a_text_ends(restricted: bool) -> None:
    """Sharpened, a law over texts of any length; with a hard guide and the twist, its share of it."""
    count = 4000
    guides = [Pattern("a.*|b?")] if restricted else []
    (result,) = Coins(4).write(
        guides, seed=2, steps=4, selection=LeftToRight(), batch_size=count,
        particles=Particles(count, ess=0.0, likelihood=1.0),
    )  # fmt: skip
    own = coins(4)
    kept = {t: p for t, p in own.items() if not restricted or t in ("", "b") or t.startswith("a")}
    mass = {t: p * p for t, p in kept.items()}
    total = sum(mass.values())
    assert result.particles is not None
    share: Counter[str] = Counter()
    for text, weight, score in zip(
        *(getattr(result.particles, n) for n in ("texts", "weights", "scores")), strict=True
    ):
        share[text] += weight
        assert score == pytest.approx(math.log(own[text]), abs=1e-5)
    assert set(share) == set(kept)
    worst = max(mass[t] / total / own[t] for t in kept)
    for text, m in mass.items():
        p = m / total
        assert abs(share[text] - p) < 6 * math.sqrt(p * worst / count), text


def scored(
    path: Sequence[tuple[Refinement, int]], likelihood: float, repeats: float, rare: set[int], text: set[int]
) -> tuple[float, int]:
    """A draft's score and how often it says something again, by plain code from the steps that it came through."""
    said: dict[int, tuple[int, float]] = {}
    for r, row in path:
        for i in range(r.draft.shape[1]):
            if r.committed[row, i]:
                token = int(r.draft[row, i])
                said[i] = token, max(-100.0, float(r.beliefs.log_p[row, i, token]))
            if r.reopened[row, i]:
                said.pop(i, None)
    places = sorted(said)
    tokens = [said[i][0] for i in places]
    again = sum(token in rare and token in tokens[:k] for k, token in enumerate(tokens))
    runs = [
        tuple(said[j][0] for j in range(i, i + 3))
        for i in places
        if all(j in said and said[j][0] in text for j in range(i, i + 3))
    ]
    again += sum(run in runs[:k] for k, run in enumerate(runs))
    return likelihood * sum(log_p for _, log_p in said.values()) - repeats * again, again


def paths(seen: Sequence[Refinement]) -> list[list[tuple[Refinement, int]]]:
    """The steps and rows that each particle came through."""
    out: list[list[tuple[Refinement, int]]] = [[] for _ in seen[0].draft]
    for r in seen:
        out = [[*path, (r, row)] for row, path in enumerate(out)]
        if r.parents is not None:
            out = [out[parent] for parent in r.parents.tolist()]
    return out


def text_tokens(vocabulary: Vocabulary) -> set[int]:
    return {k for k, raw in enumerate(vocabulary.token_bytes) if raw is not None}


def rare_tokens(seen: Sequence[Refinement], vocabulary: Vocabulary) -> set[int]:
    chance = seen[0].step.logits.softmax(-1).mean((0, 1))
    text = text_tokens(vocabulary)
    whole = sum(float(chance[k]) for k in text)
    spelled = {k: (vocabulary.token_bytes[k] or b"").decode("utf-8", "ignore") for k in text}
    return {k for k in text if float(chance[k]) / whole < 1 / 250 and any(c.isalpha() for c in spelled[k])}


@pytest.mark.parametrize("revised", [False, True])
def test_drafts_are_scored_as_they_were_drawn_and_less_for_what_they_say_again(revised: bool) -> None:
    """Reopened tokens count as they were drawn the last time."""
    denoiser = Chaos(small_vocabulary(eos=False, fragments=False), sharpness=0.3)
    seen: list[Refinement] = []
    revision = {"revision": Uncertain(rate=0.3)} if revised else {}
    (result,) = denoiser.write(
        Pattern("[a-f ]*"), seed=8, steps=30, length=20, particles=Drafts(6, 0.7, 2.0),
        batch_size=6, on_step=seen.append, **revision,
    )  # fmt: skip
    population = result.particles
    assert population is not None
    assert revised == any(bool(r.reopened.any()) for r in seen)
    rare, text = rare_tokens(seen, denoiser.vocabulary), text_tokens(denoiser.vocabulary)
    expected = [scored(path, 0.7, 2.0, rare, text) for path in paths(seen)]
    assert sum(again for _, again in expected) > 0
    assert population.scores == pytest.approx([score for score, _ in expected], abs=1e-4)
    assert population.chosen == max(range(6), key=[score for score, _ in expected].__getitem__)


def test_what_travels_with_a_resampled_particle_is_its_own() -> None:
    """Under uniform noise every particle has another first canvas, and all of a text are judged by one rule."""
    vocabulary = small_vocabulary(eos=False, fragments=False)
    denoiser = Chaos(vocabulary, sharpness=0.3, noise=uniform(vocabulary))
    seen: list[Refinement] = []
    (result,) = denoiser.write(
        Pattern("[ab ]*"), seed=3, steps=14, length=14, on_step=seen.append,
        particles=Particles(8, ess=1.0, likelihood=1.0, repeats=2.0), batch_size=8,
    )  # fmt: skip
    assert result.particles is not None
    assert result.particles.resampled
    rare, text = rare_tokens(seen, vocabulary), text_tokens(vocabulary)
    expected = [scored(path, 1.0, 2.0, rare, text) for path in paths(seen)]
    assert sum(again for _, again in expected) > 0
    assert result.particles.scores == pytest.approx([score for score, _ in expected], abs=1e-4)


def test_the_best_draft_is_the_likeliest_of_any_length() -> None:
    (result,) = Coins(12).write(
        seed=4, steps=12, selection=LeftToRight(), particles=Drafts(32, repeats=0.0, opening=0), batch_size=32
    )
    population = result.particles
    assert population is not None
    own = coins(12)
    expected = [math.log(own[text]) for text in population.texts]
    assert population.scores == pytest.approx(expected, abs=1e-5)
    assert result.text == population.texts[expected.index(max(expected))]
    assert len({len(text) for text in population.texts}) > 5


def test_a_pinned_word_is_said_already_wherever_it_stands() -> None:
    denoiser = Chaos(small_vocabulary(eos=False), sharpness=0.3)
    storm = denoiser.vocabulary.encode(" storm")[0]
    settings = denoiser.settings.override(steps=3, particles=Drafts(4, likelihood=0.0, repeats=2.0))
    for pinned in (0, 2):
        held = torch.full((4, 3), -1)
        held[:, pinned] = storm
        scene = Scene(denoiser.vocabulary, denoiser.device, 4, 3, 3)
        guides = (Pattern(" storm.* storm"),)
        (result,) = run_canvas(denoiser, Steering(guides, scene), guides, [5], settings, held)
        assert result.particles is not None
        for text, score in zip(result.particles.texts, result.particles.scores, strict=True):
            middle = text.removeprefix(" storm").removesuffix(" storm")
            assert score == -2.0 * (1 + (middle == " storm"))


@pytest.mark.parametrize(
    ("ids", "again"),
    [
        ([5, 6, 7, 5, 6, 7], 1),
        ([5, 6, 7, 7, 6, 5], 0),
        ([5, 5, 5, 5, 5, 5], 3),
        ([5, 6, 0, 5, 6, 0], 0),
        ([5, 5], 0),
        ([5], 0),
    ],
)
def test_runs_of_three_that_are_said_again_are_counted(ids: list[int], again: int) -> None:
    text = torch.ones(8, dtype=torch.bool)
    text[0] = False
    tokens, canvas = torch.tensor([ids, ids]), Canvas.blank(2, len(ids), 1)
    first = torch.zeros_like(canvas.open)
    first[:, :3] = True
    canvas = canvas.commit(tokens, torch.ones_like(first), canvas.confidence)
    assert runs_again(canvas, text).tolist() == [again, again]
    pinned = Canvas.blank(2, len(ids), 1).pin(tokens, first).commit(tokens, ~first, canvas.confidence)
    assert runs_again(pinned, text).tolist() == [again, again]
    assert runs_again(pinned.pin(tokens, ~first), text).tolist() == [0, 0]
    assert runs_again(Canvas.blank(2, len(ids), 5), text).tolist() == [0, 0]


def test_an_independent_draft_is_the_text_that_its_seed_writes_alone() -> None:
    denoiser = Chaos(small_vocabulary())
    drafts = Drafts(6, opening=0)
    (best,) = denoiser.write(seed=5, steps=5, particles=drafts)
    alone = [denoiser.write(seed=s, steps=5)[0].text for s in row_seeds([5], 6)]
    assert best.particles is not None
    assert list(best.particles.texts) == alone
    assert best.text == alone[best.particles.chosen]
    together = denoiser.write(seed=4, steps=5, samples=3, particles=drafts, batch_size=18)
    assert together[1].text == best.text
    assert together[1].particles == best.particles


# A run from left to right that looks at what was written: P(w) = A(w_1) B(w_2 | w_1) C(w_3 | w_2) D(w_4 | w_3).
LINKS = torch.rand([4, 3, 3], generator=torch.Generator().manual_seed(11), dtype=torch.float64) ** 2 + 0.05
LINKS = LINKS / LINKS.sum(-1, keepdim=True)


class Chain(Denoiser):
    """ "abc" from left to right; a position sees the committed one to its left, or takes it for an "a"."""

    name = "chain"

    def __init__(self, length: int = 4) -> None:
        self.vocabulary = Vocabulary([b"a", b"b", b"c", None], lambda t: [ord(c) - 97 for c in t], mask_id=3)
        self.noise, self.device = Absorbing(3), torch.device("cpu")
        self.length = self.max_length = length

    def __call__(self, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        left = torch.nn.functional.pad(canvas.tokens.masked_fill(canvas.open, 0)[:, :-1], (1, 0))
        place = torch.arange(left.shape[1]) % len(LINKS)
        return torch.nn.functional.pad(LINKS[place, left].log().float(), (0, 1), value=-1e9)


def chain(text: str, start: str = "") -> float:
    """P(text | start)."""
    ids = [0, *(ord(c) - 97 for c in text)]
    return math.prod(float(LINKS[i, ids[i], ids[i + 1]]) for i in range(len(start), len(text)))


@pytest.mark.parametrize("ess", [0.0, 0.7])
def test_what_follows_a_common_opening_is_sharpened_given_it(ess: float) -> None:
    """The opening is the text's own without particles; the rest is P(rest | opening)^3 exp(r), weighted."""
    count, texts = 3000, {}
    for seed in range(4):
        (result,) = Chain().write(
            0.5 * Reward(scores), seed=seed, steps=4, selection=LeftToRight(), batch_size=count,
            particles=Particles(count, ess=ess, likelihood=2.0, opening=1),
        )  # fmt: skip
        (alone,) = Chain().write(seed=seed, steps=4, selection=LeftToRight())
        population = result.particles
        assert population is not None
        opening = alone.text[0]
        assert {text[0] for text in population.texts} == {opening}
        possible = [opening + "".join(w) for w in itertools.product("abc", repeat=3)]
        mass = {t: chain(t, opening) ** 3 * math.exp(0.5 * skewed(t)) for t in possible}
        total = sum(mass.values())
        worst = max(mass[t] / total / chain(t, opening) for t in possible) ** (2 if ess else 1)
        share: Counter[str] = Counter()
        for text, weight in zip(population.texts, population.weights, strict=True):
            share[text] += weight
        for text, m in mass.items():
            p = m / total
            assert abs(share[text] - p) < 6 * math.sqrt(p * worst / count), text
        assert any(abs(chain(t, opening) - m / total) > 6 * math.sqrt(m / total * worst / count)
                   for t, m in mass.items())  # fmt: skip
        texts[opening] = result.text
    assert len(texts) > 1


def test_with_an_opening_the_mean_weight_is_still_the_evidence() -> None:
    possible = ["".join(w) for w in itertools.product("abc", repeat=4)]
    truth = sum(chain(t) * math.exp(skewed(t)) for t in possible)
    runs, bound = 400, max(math.exp(skewed(t)) for t in possible)
    results = Chain().write(
        Reward(scores), samples=runs, seed=3, steps=4, selection=LeftToRight(), batch_size=runs * 4,
        particles=Particles(4, ess=0.7, opening=1),
    )  # fmt: skip
    mean = sum(math.exp(r.particles.log_z) for r in results if r.particles) / runs
    assert abs(mean - truth) < 4 * bound / math.sqrt(runs)  # each is between 0 and the bound


def test_drafts_share_an_opening_of_a_quarter_at_most() -> None:
    denoiser = Chain(12)
    options = {"selection": LeftToRight(), "steps": 12}
    for opening, common in ((2, 2), (6, 3), (0, 0)):
        (result,) = denoiser.write(seed=2, particles=Drafts(16, opening=opening), **options)
        (alone,) = denoiser.write(seed=2, **options)
        assert result.particles is not None
        assert result.particles.texts[0] == alone.text
        assert {t[:common] for t in result.particles.texts} == {alone.text[:common]}
        assert len({t[: common + 1] for t in result.particles.texts}) > 1
        tokens = {p: t for c in result.trace for p, t in zip(c.positions, c.tokens, strict=True)}
        assert tuple(tokens[i] for i in range(12)) == result.tokens
    (few,) = Chain(3).write(seed=2, particles=Drafts(16), selection=LeftToRight(), steps=3)
    assert few.particles is not None
    assert len({t[0] for t in few.particles.texts}) > 1  # of three tokens nothing is in common
    (filled,) = denoiser.write(Infill("abcabcabc___"), length=12, seed=2, particles=Drafts(16), **options)
    assert filled.particles is not None
    assert len({t[9:] for t in filled.particles.texts}) > 4  # nine of twelve are pinned: nor here


def test_a_text_that_ends_within_its_opening_is_particle_0_alone() -> None:
    together = Coins(12).write(
        seed=40, samples=12, steps=12, selection=LeftToRight(), particles=Drafts(8, opening=3), batch_size=96
    )
    alone = Coins(12).write(seed=40, samples=12, steps=12, selection=LeftToRight())
    short = [(one, raced) for one, raced in zip(alone, together, strict=True) if len(one.text) < 3]
    assert 0 < len(short) < 12
    for one, raced in short:
        assert raced.particles is not None
        assert set(raced.particles.texts) == {one.text} == {raced.text}
    for k, raced in enumerate(together):
        (same,) = Coins(12).write(
            seed=40 + k, steps=12, selection=LeftToRight(), particles=Drafts(8, opening=3)
        )
        assert same.particles == raced.particles


def test_systematic_resampling_keeps_whole_shares() -> None:
    """A particle of weight w gets floor(K w) or ceil(K w) children, K w in the mean."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(200, 7, generator=generator, dtype=torch.float64) ** 3
    weights = weights / weights.sum(-1, keepdim=True)
    uniform = torch.rand(200, 7, generator=generator, dtype=torch.float64)
    for how in ("systematic", "stratified", "multinomial"):
        parents = drawn(weights, uniform, how)
        children = torch.nn.functional.one_hot(parents, 7).sum(1).double()
        assert abs(float((children - 7 * weights).mean(0).abs().max())) < 6 * math.sqrt(7 * 0.25 / 200)
        if how == "systematic":
            assert bool((children >= (7 * weights).floor()).all())
            assert bool((children <= (7 * weights).ceil()).all())


def test_during_weighs_only_in_its_part_and_scale_multiplies() -> None:
    (early,) = Exact(JOINT, "abc").write(
        during(0.0, 0.5, Reward(scores)), seed=1, steps=3, particles=Particles(64, ess=1.0), batch_size=64
    )
    (twice,) = Exact(JOINT, "abc").write(2.0 * Reward(scores), seed=1, steps=3, particles=Particles(4))
    assert early.particles is not None
    assert twice.particles is not None
    assert set(early.particles.scores) == {0.0}
    assert twice.particles.scores == tuple(2 * skewed(t) for t in twice.particles.texts)
    assert {v.strength for v in (*early.verdicts, *twice.verdicts)} == {"searched"}


def test_what_cannot_be_meant_is_refused_before_any_pass() -> None:
    denoiser = Chaos(small_vocabulary())
    with pytest.raises(InvalidGuideError, match="Particles"):
        denoiser.write(Reward(scores))
    with pytest.raises(InvalidGuideError, match="temperature 0"):
        denoiser.write(temperature=0.0, particles=Particles(4))
    for wrong in ({"count": 0}, {"ess": 1.5}, {"potential": "mean"}, {"resample": "x"}, {"result": "all"},
                  {"likelihood": -1.0}, {"repeats": math.inf}, {"likelihood": math.nan},
                  {"opening": -1}, {"opening": 0.5}, {"opening": True}):  # fmt: skip
        with pytest.raises(InvalidGuideError):
            Particles(**wrong)  # type: ignore[arg-type]
    assert denoiser.calls == 0
    (none,) = denoiser.write(0.0 * Reward(scores), seed=1, steps=3)  # scale 0 is no guide
    (same,) = denoiser.write(Reward(scores, scale=0.0), seed=1, steps=3)
    assert same.text == none.text
    assert none.tokens == denoiser.write(seed=1, steps=3)[0].tokens
    with pytest.raises(InvalidGuideError, match="finite"):
        denoiser.write(Reward(lambda texts: [math.nan] * len(texts)), steps=2, particles=Particles(2))
    with pytest.raises(InvalidGuideError, match="one a text"):
        denoiser.write(Reward(lambda texts: [0.0]), steps=2, particles=Particles(2))


def test_settings_with_particles_come_back() -> None:
    settings = Settings(particles=Particles(4, "max", 0.3, result="best"))
    assert Settings.from_dict(settings.to_dict()) == settings
    assert Settings(particles=BestOf(3)).to_dict()["particles"]["ess"] == 0.0
    drafts = Settings(particles=Drafts(3)).to_dict()["particles"]
    assert (drafts["likelihood"], drafts["repeats"]) == (1.0, 3.0)


def test_a_recipe_holds_particles_and_no_function() -> None:
    recipe = Recipe(settings={"particles": {"count": 4, "result": "best"}, "steps": 3}, seed=1, samples=2)
    assert Recipe.from_dict(recipe.to_dict()) == recipe
    assert recipe.settings["particles"]["potential"] == "difference"
    with pytest.raises(InvalidRecipeError, match="Python"):
        to_dict(Reward(scores))
