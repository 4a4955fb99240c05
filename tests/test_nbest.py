"""The n best drafts against sorting every canvas."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_exact import KINDS, counting, make

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.exact import Language, posterior


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.integers(1, 9))
def test_n_best_are_the_first_of_all_canvases(seed: int, kind: str, n: int) -> None:
    case = make(seed, kind)
    language, log_p, tokens, open_ = case.on(torch.device("cpu"))
    beliefs = posterior(language, log_p, tokens, open_)
    drafts, values = beliefs.best_n(n)
    assert drafts.shape == (3, n, tokens.shape[1])
    for b in range(3):
        ranked = sorted((round(-case.weight(b, w) / 1e-9), w) for w in case.canvases(b))[:n]
        assert len({tuple(w) for w in drafts[b, : len(ranked)].tolist()}) == len(ranked)
        assert (drafts[b, len(ranked) :] == -1).all()
        assert (values[b, len(ranked) :] == -torch.inf).all()
        for (weight, _), word, value in zip(ranked, drafts[b].tolist(), values[b].tolist(), strict=False):
            assert tuple(word) in case.canvases(b)
            assert value == pytest.approx(case.weight(b, tuple(word)), abs=1e-9)
            assert value == pytest.approx(-weight * 1e-9, abs=1e-8)


def test_equals_come_by_token_ids_and_the_first_is_the_best_draft() -> None:
    log_p = torch.full((2, 3, 6), 1 / 6, dtype=torch.float64).log()
    every, tokens = torch.ones(2, 3, dtype=torch.bool), torch.zeros(2, 3, dtype=torch.int64)
    language = Language.of([counting(2, 2)], [0, 0])
    beliefs = posterior(language, log_p, tokens, every)
    drafts, values = beliefs.best_n(4)
    assert drafts[0].tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 2]]
    assert torch.equal(drafts[0], drafts[1])
    assert torch.equal(drafts[:, 0], beliefs.best())
    assert values[0].tolist() == pytest.approx([float(log_p[0, 0, 0]) * 3] * 4)


def test_n_best_of_a_row_does_not_depend_on_its_neighbours() -> None:
    case = make(7)
    language, log_p, tokens, open_ = case.on(torch.device("cpu"))
    drafts, values = posterior(language, log_p, tokens, open_).best_n(5)
    for b, which in enumerate(case.row):
        alone = Language.of([case.automata[which]], [0])
        one, value = posterior(alone, log_p[b : b + 1], tokens[b : b + 1], open_[b : b + 1]).best_n(5)
        assert torch.equal(one[0], drafts[b])
        assert torch.equal(value[0], values[b])


def test_n_best_refuses_and_says_when_there_is_nothing() -> None:
    log_p = torch.zeros(1, 2, 6).log_softmax(-1)
    none = posterior(
        Language.of([Automaton.none(6)], [0]),
        log_p,
        torch.zeros(1, 2, dtype=torch.int64),
        torch.ones(1, 2).bool(),
    )
    drafts, values = none.best_n(2)
    assert drafts.tolist() == [[[-1, -1], [-1, -1]]]
    assert values.tolist() == [[-torch.inf, -torch.inf]]
    with pytest.raises(ValueError, match="at least 1, got 0"):
        none.best_n(0)
