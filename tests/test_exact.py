"""The engine against enumeration of every canvas."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from redraft.denoiser import messages
from redraft.denoiser.automaton import Automaton
from redraft.denoiser.exact import Language, feasible, posterior, shortest_canvas
from redraft.denoiser.masses import FLOOR, Segments, masses
from redraft.denoiser.sums import _logarithmic, sums
from redraft.denoiser.truncate import truncate


@dataclass
class Case:
    """A random problem small enough to enumerate: two languages, three rows, skewed probabilities."""

    automata: list[Automaton]
    row: list[int]
    log_p: Tensor
    tokens: Tensor
    open: Tensor

    def canvases(self, b: int) -> list[tuple[int, ...]]:
        length, size = self.log_p.shape[1:]
        return [
            word
            for word in itertools.product(range(size), repeat=length)
            if self.automata[self.row[b]].accepts(word)
            and all(self.open[b, i] or word[i] == self.tokens[b, i] for i in range(length))
        ]

    def weight(self, b: int, word: tuple[int, ...]) -> float:
        at = enumerate(word)
        return sum(max(float(self.log_p[b, i, v]), FLOOR) for i, v in at if self.open[b, i])

    def exact(self, b: int) -> tuple[float, Tensor, list[tuple[int, ...]], Tensor]:
        """log Z, marginals [L, V], canvases and their posterior probabilities."""
        words = self.canvases(b)
        weights = torch.tensor([self.weight(b, w) for w in words], dtype=torch.float64)
        if not words:
            return -math.inf, torch.zeros(self.log_p.shape[1:]), [], weights
        log_z = weights.logsumexp(0)
        probability = (weights - log_z).exp()
        marginal = torch.zeros(self.log_p.shape[1:], dtype=torch.float64)
        for i in range(marginal.shape[0]):
            marginal[i].index_add_(0, torch.tensor([w[i] for w in words]), probability)
        return float(log_z), marginal, words, probability

    def on(self, device: torch.device) -> tuple[Language, Tensor, Tensor, Tensor]:
        language = Language.of(self.automata, self.row, device)
        return language, self.log_p.to(device), self.tokens.to(device), self.open.to(device)


def make(seed: int, kind: str = "ordinary", dtype: torch.dtype = torch.float64) -> Case:
    rng = np.random.default_rng(seed)
    size, states, length = int(rng.integers(2, 5)), int(rng.integers(1, 6)), int(rng.integers(1, 5))
    automata = [
        Automaton(
            np.arange(size), rng.integers(0, states, (states, size)), 0, rng.random(states) < 0.45
        ).minimise()
        for _ in range(2)
    ]
    logits = torch.tensor(rng.normal(size=(3, length, size)) * 2.5)
    log_p = logits.log_softmax(-1)
    if kind == "impossible":
        log_p = torch.where(torch.tensor(rng.random(log_p.shape) < 0.5), -torch.inf, log_p)
    elif kind == "sharp":
        log_p = (logits * 400).log_softmax(-1)
    elif kind == "one-hot":
        log_p = torch.where(logits == logits.amax(-1, keepdim=True), 0.0, -torch.inf)
    open_ = torch.tensor(rng.random((3, length)) < 0.75)
    tokens = torch.tensor(rng.integers(0, size, (3, length)))
    return Case(automata, [0, 1, 0], log_p.to(dtype), tokens, open_)


KINDS = ["ordinary", "impossible", "sharp", "one-hot"]
seeds = st.integers(0, 10**6)


@pytest.mark.parametrize(("dtype", "near"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@pytest.mark.parametrize("kind", KINDS)
def test_z_and_marginals(kind: str, dtype: torch.dtype, near: float, device: torch.device) -> None:
    for seed in range(25):
        case = make(seed, kind, dtype)
        language, log_p, tokens, open_ = case.on(device)
        beliefs = posterior(language, log_p, tokens, open_)
        marginals = beliefs.marginals().cpu()
        able = feasible(language, torch.where(open_, tokens.new_tensor(-1), tokens))
        assert marginals.dtype == dtype
        for b in range(3):
            log_z, marginal, words, _ = case.exact(b)
            assert bool(able[b]) == bool(words)
            if not words:
                assert float(beliefs.log_z[b]) == -math.inf
                continue
            assert float(beliefs.log_z[b]) == pytest.approx(log_z, abs=near * max(1.0, abs(log_z) * 1e-2))
            assert (marginals[b] - marginal).abs().max() < near


@given(seeds, st.sampled_from(KINDS))
def test_drafts_confidence_best_and_forced(seed: int, kind: str) -> None:
    case = make(seed, kind)
    language, log_p, tokens, open_ = case.on(torch.device("cpu"))
    beliefs = posterior(language, log_p, tokens, open_)
    draft = beliefs.sample(
        torch.rand(*tokens.shape, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    )
    confidence, best, (forced, only) = beliefs.confidence(draft), beliefs.best(), beliefs.forced()
    for b in range(3):
        _, marginal, words, probability = case.exact(b)
        if not words:
            continue
        word, top = tuple(draft[b].tolist()), tuple(best[b].tolist())
        assert word in words
        assert top in words
        assert case.weight(b, top) == pytest.approx(max(case.weight(b, w) for w in words), abs=1e-9)
        assert probability[words.index(word)] > 0 or kind != "ordinary"
        for i in range(len(word)):
            choices = {w[i] for w in words}
            expected = marginal[i, word[i]] if open_[b, i] else 1.0
            assert float(confidence[b, i]) == pytest.approx(float(expected), abs=1e-9)
            assert bool(forced[b, i]) == (len(choices) == 1 and bool(open_[b, i]))
            assert int(only[b, i]) == (choices.pop() if forced[b, i] else -1)


def test_viterbi_ties_go_to_the_lowest_token() -> None:
    even = Automaton(np.arange(3), np.array([[0, 1, 1], [1, 0, 0]]), 0, np.array([False, True]))
    for dtype in (torch.float32, torch.float64):
        log_p = torch.full((1, 3, 3), 1 / 3, dtype=dtype).log()
        every = torch.ones(1, 3, dtype=torch.bool)
        best = posterior(Language.of([even], [0]), log_p, torch.zeros(1, 3, dtype=torch.int64), every).best()
        assert best.tolist() == [[0, 0, 1]]


def test_joint_draft_frequencies(device: torch.device) -> None:
    """Pearson's statistic of 20,000 drafts against the enumerated joint, within five standard deviations."""
    count = 20_000
    for seed in (3, 5, 8, 12):
        case = make(seed)
        b = 0
        _, _, words, probability = case.exact(b)
        if len(words) < 2:
            continue
        language = Language.of(case.automata, [case.row[b]] * count, device)
        log_p = case.log_p[b].expand(count, -1, -1).to(device)
        tokens, open_ = (x[b].expand(count, -1).to(device) for x in (case.tokens, case.open))
        uniform = torch.rand(
            *tokens.shape, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
        )
        drafts = posterior(language, log_p, tokens, open_).sample(uniform.to(device)).cpu()
        size = case.log_p.shape[2]
        place = size ** torch.arange(tokens.shape[1])
        index = {sum(v * int(p) for v, p in zip(w, place, strict=True)): j for j, w in enumerate(words)}
        seen = torch.bincount(
            torch.tensor([index[c] for c in (drafts * place).sum(-1).tolist()]), minlength=len(words)
        )
        common = probability * count >= 5
        expected = torch.cat([probability[common], probability[~common].sum()[None]]) * count
        found = torch.cat([seen[common], seen[~common].sum()[None]])
        statistic = float(((found - expected) ** 2 / expected.clamp_min(1.0)).sum())
        freedom = int(common.sum())
        assert statistic < freedom + 5 * math.sqrt(2 * freedom) + 5


def test_draws_within_large_classes_and_segments() -> None:
    """Classes of one token, of hundreds, and a dominant one: drafted tokens follow p within each."""
    size, count = 2_000, 30_000
    classes = np.zeros(size, dtype=np.int64)
    classes[::7], classes[5] = 1, 2
    language = Language.of([Automaton(classes, np.array([[0, 0, 0]]), 0, np.array([True]))], [0] * count)
    for dtype in (torch.float32, torch.float64):
        log_p = (
            torch.randn(1, 1, size, generator=torch.Generator().manual_seed(0)).to(dtype) * 4
        ).log_softmax(-1)
        every = torch.ones(count, 1, dtype=torch.bool)
        beliefs = posterior(
            language, log_p.expand(count, 1, -1), torch.zeros(count, 1, dtype=torch.int64), every
        )
        draft = beliefs.sample(
            torch.rand(count, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        )
        seen = torch.bincount(draft.flatten(), minlength=size)
        expected = log_p.flatten().double().exp() * count
        common = expected >= 10
        statistic = float(((seen - expected)[common] ** 2 / expected[common]).sum())
        assert statistic < int(common.sum()) + 5 * math.sqrt(2 * int(common.sum()))
        rare = float(expected[~common].sum())
        assert abs(int(seen[~common].sum()) - rare) < 5 * math.sqrt(rare)


def test_class_sums_over_a_wide_range() -> None:
    generator = torch.Generator().manual_seed(0)
    classes = torch.randint(0, 5, (700,), generator=generator) ** 2 % 7
    size = torch.bincount(classes, minlength=7)
    segments = Segments.of(classes, size)
    for spread in (1.0, 30.0, 3000.0):
        log_p = (torch.randn(40, 700, generator=generator) * spread).log_softmax(-1)
        log_p[3] = -torch.inf
        made = masses(segments, log_p)
        safe = log_p.double().clamp_min(FLOOR)
        for c in range(7):
            expected = safe[:, classes == c].logsumexp(-1)
            assert torch.allclose(made.log[:, c], expected, rtol=1e-6, atol=1e-5)
        shares = torch.zeros(40, 7, dtype=torch.float64).index_add_(1, segments.class_of, made.share.double())
        assert bool((shares[:, size > 0] > 0).all())


@given(seeds, st.sampled_from(KINDS))
def test_committing_any_part_of_drafts_stays_in_the_language(seed: int, kind: str) -> None:
    case = make(seed, kind)
    language, log_p, tokens, open_ = case.on(torch.device("cpu"))
    able = feasible(language, torch.where(open_, -1, tokens))
    generator = torch.Generator().manual_seed(seed)
    for _ in range(6):
        uniform = torch.rand(*tokens.shape, 2, dtype=torch.float64, generator=generator)
        draft = posterior(language, log_p, tokens, open_).sample(uniform)
        assert torch.equal(draft[~open_], tokens[~open_])
        take = open_ & (torch.rand(open_.shape, generator=generator) < 0.4)
        tokens, open_ = torch.where(take, draft, tokens), open_ & ~take
        assert bool(feasible(language, torch.where(open_, -1, tokens))[able].all())
    for b in range(3):
        if able[b]:
            assert case.automata[case.row[b]].accepts(draft[b].tolist())


def counting(least: int, most: int, size: int = 6) -> Automaton:
    """Between `least` and `most` tokens 1, the others free."""
    return Automaton.build(
        0,
        lambda n, v: (n + 1 if n < most else None) if v == 1 else n,
        lambda n: n >= least,
        alphabet=size,
        classes=[int(v == 1) for v in range(size)],
    )


@pytest.mark.parametrize("height", [-30.0, -300.0, -9_000.0, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sixty_unlikely_tokens_on_a_long_canvas(
    height: float, dtype: torch.dtype, device: torch.device
) -> None:
    """Sixty tokens that the model never wants, among 300: log Z in closed form, free placement."""
    length = 300
    log_p = torch.full((2, length, 6), height, dtype=dtype)
    log_p[..., 2:] = math.log(0.25)
    log_p[1, :, 1] = log_p[1, :, 2] - 3.0
    language = Language.of([counting(60, 60)], [0, 0], device)
    tokens, every = torch.zeros(2, length, dtype=torch.int64), torch.ones(2, length, dtype=torch.bool)
    beliefs = posterior(language, log_p.to(device), tokens.to(device), every.to(device))
    low = max(height, FLOOR)
    ways = math.lgamma(301) - math.lgamma(61) - math.lgamma(241)
    expected = ways + 60 * float(torch.tensor(low, dtype=dtype)) + 240 * math.log1p(math.exp(low))
    assert float(beliefs.log_z[0]) == pytest.approx(expected, rel=1e-6)
    uniform = torch.rand(2, length, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    draft = beliefs.sample(uniform.to(device))
    assert (draft == 1).sum(-1).tolist() == [60, 60]
    where = (draft[0] == 1).nonzero().double().mean().item()
    assert abs(where - 149.5) < 5 * 300 / math.sqrt(12 * 60)
    confidence = beliefs.confidence(draft)
    assert bool(confidence.isfinite().all())
    assert confidence[0][draft[0] == 1].tolist() == pytest.approx([0.2] * 60, rel=1e-3)
    assert (beliefs.best() == 1).sum(-1).tolist() == [60, 60]
    assert bool(beliefs.marginals().isfinite().all())


@pytest.mark.parametrize("row", ["forbidden only", "nan", "all -inf", "+inf"])
def test_broken_distributions_never_stick(row: str) -> None:
    log_p = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    log_p[1] = {"forbidden only": -torch.inf, "nan": math.nan, "all -inf": -torch.inf, "+inf": torch.inf}[row]
    if row == "forbidden only":
        log_p[1, :, 1] = 0.0
    language = Language.of([counting(0, 0), counting(5, 5)], [0, 0, 1, 1])
    tokens, every = torch.zeros(4, 5, dtype=torch.int64), torch.ones(4, 5, dtype=torch.bool)
    beliefs = posterior(language, log_p, tokens, every)
    uniform = torch.rand(4, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for draft in (beliefs.sample(uniform), beliefs.best()):
        assert (draft == 1).sum(-1).tolist() == [0, 0, 5, 5]
    assert bool(beliefs.confidence(draft).isfinite().all())
    assert bool(beliefs.log_z.isfinite().all())


@pytest.mark.parametrize("value", [0.0, 1.0 - 2.0**-53, 1.0])
def test_extreme_uniforms_pick_possible_tokens(value: float) -> None:
    for kind in KINDS:
        for seed in range(15):
            case = make(seed, kind)
            language, log_p, tokens, open_ = case.on(torch.device("cpu"))
            draft = posterior(language, log_p, tokens, open_).sample(
                torch.full((*tokens.shape, 2), value).double()
            )
            for b in range(3):
                words = case.canvases(b)
                assert not words or tuple(draft[b].tolist()) in words


def test_rows_do_not_depend_on_their_neighbours() -> None:
    """Bit for bit, with different languages, ranges and open positions in the batch."""
    size, length, rows = 900, 12, 5
    rng = np.random.default_rng(0)
    automata = [
        Automaton(rng.integers(0, 9, size), rng.integers(0, 30, (30, 9)), 0, rng.random(30) < 0.4).minimise()
        for _ in range(2)
    ]
    generator = torch.Generator().manual_seed(0)
    log_p = (
        torch.randn(rows, length, size, generator=generator)
        * torch.tensor([1, 3, 1, 900, 400.0])[:, None, None]
    ).log_softmax(-1)
    uniform = torch.rand(rows, length, 2, dtype=torch.float64, generator=generator)
    open_ = torch.rand(rows, length, generator=generator) < 0.7
    row = [0, 1, 0, 1, 1]
    tokens = posterior(Language.of(automata, row), log_p, open_.long(), torch.ones_like(open_)).best()
    together = posterior(Language.of(automata, row), log_p, tokens, open_)
    draft = together.sample(uniform)
    for b in range(rows):
        cut = slice(b, b + 1)
        alone = posterior(Language.of(automata, row[cut]), log_p[cut], tokens[cut], open_[cut])
        assert torch.equal(alone.sample(uniform[cut]), draft[cut])
        assert torch.equal(alone.log_z, together.log_z[cut])
        assert torch.equal(alone.confidence(draft[cut]), together.confidence(draft)[cut])
        assert torch.equal(alone.best(), together.best()[cut])


def test_union_of_languages_equals_separate_runs_and_start_states() -> None:
    case = make(21)
    joint = Language.of(case.automata, case.row)
    uniform = torch.rand(
        *case.tokens.shape, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    together = posterior(joint, case.log_p, case.tokens, case.open)
    for b, which in enumerate(case.row):
        cut = slice(b, b + 1)
        alone = posterior(
            Language.of([case.automata[which]], [0]), case.log_p[cut], case.tokens[cut], case.open[cut]
        )
        assert torch.allclose(alone.log_z, together.log_z[cut], rtol=0, atol=1e-12)
        assert torch.allclose(alone.marginals(), together.marginals()[cut], rtol=0, atol=1e-12)
    three = counting(3, 3)
    language = Language.of([three], [0, 0])
    later = language.begin(torch.tensor([three.run([]), three.run([1, 1])]))
    tokens, every = torch.zeros(2, 4, dtype=torch.int64), torch.ones(2, 4, dtype=torch.bool)
    log_p = torch.full((2, 4, 6), 1 / 6, dtype=torch.float64).log()
    draft = posterior(later, log_p, tokens, every).sample(torch.rand(2, 4, 2, dtype=torch.float64))
    assert (draft == 1).sum(-1).tolist() == [3, 1]
    assert shortest_canvas(later).tolist() == [3, 1]
    assert shortest_canvas(Language.of([Automaton.none(6)], [0])).tolist() == [-1]
    assert uniform.shape[-1] == 2


def test_temperature_near_zero_keeps_the_order_of_what_is_needed() -> None:
    """Sharpened to -inf elsewhere, the one forced token still goes where the model minds least."""
    log_p = torch.full((1, 8, 6), 0.0)
    log_p[..., 1] = torch.tensor([-900.0, -500, -700, -400, -650, -480, -800, -450])
    log_p[..., 3:] = -5_000.0
    language = Language.of([counting(1, 1)], [0])
    tokens, every = torch.zeros(1, 8, dtype=torch.int64), torch.ones(1, 8, dtype=torch.bool)
    beliefs = posterior(language, log_p.log_softmax(-1), tokens, every)
    draft = beliefs.sample(torch.full((1, 8, 2), 0.5, dtype=torch.float64))
    assert (draft[0] == 1).nonzero().flatten().tolist() == [3]
    assert (beliefs.best()[0] == 1).nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize("limits", [{"top_k": 2}, {"top_p": 0.6}, {"min_p": 0.3}, {"top_k": 3, "top_p": 0.9}])
def test_truncation_keeps_the_right_tokens_and_the_language(limits: dict[str, float]) -> None:
    log_p = torch.tensor([[0.5, 0.01, 0.3, 0.1, 0.05, 0.04], [0.4, 0.02, 0.18, 0.2, 0.1, 0.1]]).log()[None]
    every = torch.ones(1, 2, dtype=torch.bool)
    cut = truncate(log_p, every, **limits)  # type: ignore[arg-type]
    kept = (
        {"top_k": [2, 2], "top_p": [2, 2], "min_p": [2, 3]}[next(iter(limits))]
        if len(limits) == 1
        else [3, 3]
    )
    assert ((cut > -15).sum(-1)[0]).tolist() == kept
    assert torch.allclose(cut.exp().sum(-1), torch.ones(1, 2))
    must = posterior(Language.of([counting(2, 2)], [0]), cut, torch.zeros(1, 2, dtype=torch.int64), every)
    assert must.sample(torch.rand(1, 2, 2, dtype=torch.float64)).tolist() == [[1, 1]]
    assert torch.equal(truncate(log_p, ~every, **limits), log_p)  # type: ignore[arg-type]


def test_truncation_within_a_class_that_lost_all() -> None:
    """Tokens 2..5 form a class with none kept: those within ten times of its best stand out."""
    language = Language.of(
        [Automaton(np.array([0, 0, 1, 1, 1, 1]), np.array([[1, 0], [1, 1]]), 0, np.array([True, False]))], [0]
    )
    log_p = torch.tensor([0.6, 0.3, 0.05, 0.045, 0.004, 0.001]).log()[None, None]
    every = torch.ones(1, 1, dtype=torch.bool)
    cut = truncate(log_p, every, top_k=2, language=language)
    draws = posterior(
        language, cut.expand(1, 1, -1), torch.zeros(1, 1, dtype=torch.int64), every
    ).marginals()[0, 0]
    assert float(draws[2:4].sum()) == pytest.approx(1.0, abs=1e-6)
    assert float(draws[2] / draws[3]) == pytest.approx(0.05 / 0.045, rel=1e-5)


@pytest.mark.parametrize("bad", [{"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}, {"min_p": -0.1}])
def test_truncation_refuses(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        truncate(torch.zeros(1, 1, 2), torch.ones(1, 1, dtype=torch.bool), **bad)  # type: ignore[arg-type]


def test_a_long_forced_text_among_many_tokens() -> None:
    """What finishing is worth spans more than a float64 can: dead ends must weigh nothing, not 0 * inf."""
    length, size = 90, 20_000
    word = [1 + 7 * k for k in range(length)]
    language = Language.of([Automaton.of_word(word, size)], [0])
    assert float(language.potential.min()) < -800
    log_p = torch.zeros(1, length, size).log_softmax(-1)
    tokens, every = torch.zeros(1, length, dtype=torch.int64), torch.ones(1, length, dtype=torch.bool)
    beliefs = posterior(language, log_p, tokens, every)
    draft = beliefs.sample(torch.rand(1, length, 2, dtype=torch.float64))
    assert draft.tolist() == [word]
    assert beliefs.confidence(draft).tolist() == [pytest.approx([1.0] * length)]
    assert float(beliefs.log_z[0]) == pytest.approx(-length * math.log(size), rel=1e-6)


@pytest.mark.parametrize("large", [0, 10**9])
def test_following_committed_positions_is_summing_over_them(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "_LARGE", large)
    for kind in KINDS:
        for seed in range(12):
            case = make(seed, kind)
            language, log_p, tokens, open_ = case.on(torch.device("cpu"))
            beliefs = posterior(language, log_p, tokens, open_)
            marginals = beliefs.marginals()
            for b in range(3):
                log_z, marginal, words, _ = case.exact(b)
                if words:
                    assert float(beliefs.log_z[b]) == pytest.approx(
                        log_z, abs=1e-9 * max(1.0, abs(log_z) * 1e-2)
                    )
                    assert (marginals[b] - marginal).abs().max() < 1e-9


def test_mass_beyond_the_shortlist() -> None:
    log_p = torch.zeros(1, 1, 1_000).log_softmax(-1) + torch.linspace(0.001, 0, 1_000)
    log_p = log_p.log_softmax(-1)
    cut = truncate(log_p, torch.ones(1, 1, dtype=torch.bool), top_p=0.8)
    assert abs(int((cut > -15).sum()) - 800) < 3


def test_mismatched_shapes_are_refused() -> None:
    language = Language.of([counting(1, 1)], [0])
    with pytest.raises(ValueError, match="belong together"):
        posterior(language, torch.zeros(1, 2, 6), torch.zeros(1, 3).long(), torch.ones(1, 3).bool())
    with pytest.raises(ValueError, match="5 tokens, the language 6"):
        posterior(language, torch.zeros(1, 2, 5), torch.zeros(1, 2).long(), torch.ones(1, 2).bool())
    with pytest.raises(ValueError, match="vocabularies differ"):
        Language.of([counting(1, 1), counting(1, 1, 7)], [0, 1])
    with pytest.raises(ValueError, match="outside the 1 given"):
        Language.of([counting(1, 1)], [1])


@given(seeds, st.sampled_from([1.0, 30.0, 300.0, 3000.0]))
def test_plain_sums_are_those_of_logarithms(seed: int, spread: float) -> None:
    case = make(seed)
    language, log_p, tokens, open_ = case.on(torch.device("cpu"))
    beliefs = posterior(language, (log_p * spread).log_softmax(-1), tokens, open_)
    log_mass, every = beliefs._log_mass, torch.arange(3)
    slow = _logarithmic(language, log_mass, every)
    for part in sums(language, log_mass):
        assert torch.allclose(part.log_z(), slow.log_z()[part.rows], rtol=1e-9, atol=1e-9)
        ratio, exact = part.class_ratios().exp(), slow.class_ratios()[part.rows].exp()
        mass = log_mass.permute(2, 0, 1)[part.rows].exp()
        able = slow.log_z()[part.rows].isfinite()
        assert torch.allclose((ratio * mass)[able], (exact * mass)[able], atol=1e-9, equal_nan=True)


def test_what_the_model_rules_out_costs_no_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens 9,000 nats down that the language does not need leave the fast sums sound."""
    log_p = torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0, 0.0]).log().clamp_min(-9_000.0).expand(1, 8, 6)
    language = Language.of([counting(2, 8)], [0])
    monkeypatch.setattr(messages, "log_forward", None)
    beliefs = posterior(
        language, log_p, torch.zeros(1, 8, dtype=torch.int64), torch.ones(1, 8, dtype=torch.bool)
    )
    assert float(beliefs.log_z.exp()) == pytest.approx(1 - 0.75**8 - 8 * 0.25 * 0.75**7, rel=1e-6)
