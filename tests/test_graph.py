"""Sparse graphs and two languages side by side, against the tables they stand for."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_automaton import automata
from torch.utils._python_dispatch import TorchDispatchMode
from toys import small_vocabulary

from redraft.denoiser import Scene, Steering, joint, masses, messages, sums
from redraft.denoiser.automaton import Automaton
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.exact import Language, feasible, posterior, shortest_canvas
from redraft.denoiser.graph import Graph, Lists, by_tree, graph_of
from redraft.denoiser.language import reachable
from redraft.guidance import Forbid, Keywords, Sentences, Words


def _moves(graph: Graph) -> dict[tuple[int, int], set[int]]:
    """(state, class) -> targets, by following every list of a graph."""
    members = [set(graph.members.at(np.array([j]))[0].tolist()) for j in range(len(graph.members))]
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    state, pair = graph.out()
    assert len(set(zip(state.tolist(), pair.tolist(), strict=True))) == len(state)
    for q, u in zip(state.tolist(), pair.tolist(), strict=True):
        for c in members[graph.set_of[u]]:
            assert int(graph.target[u]) not in found[q, c]
            found[q, c].add(int(graph.target[u]))
    return found


@pytest.mark.parametrize(
    ("states", "width", "kind"), [(7, 5, "any"), (60, 9, "chain"), (90, 60, "exceptions")]
)
def test_graph_is_the_table(states: int, width: int, kind: str) -> None:
    """Also with hubs and with the tree over popular pairs, which the last kind needs."""
    rng = np.random.default_rng(states)
    delta = rng.integers(0, states, (states, width))
    if kind == "chain":
        delta = np.minimum(np.arange(states)[:, None] + rng.integers(0, 2, width), states - 1)
    if kind == "exceptions":  # rows alike but for one or two entries each
        delta = np.tile(delta[:1], (states, 1))
        delta[np.arange(states), rng.integers(0, width, states)] = rng.integers(0, states, states)
    accept, live = rng.random(states) < 0.3, rng.random(states) < 0.9
    group = rng.integers(0, 3, width)
    graph = graph_of(delta, accept, live, group)
    expected = {
        (q, c): {int(delta[q, c])}
        for q in range(states)
        for c in range(width)
        if live[q] and live[delta[q, c]]
    }
    assert dict(_moves(graph)) == expected
    for j in range(len(graph.members)):
        assert len(set(group[graph.members.at(np.array([j]))[0]])) == 1
    if kind == "exceptions":
        assert len(graph.inside) > 0
        assert len(graph.direct.items) + len(graph.hubs.items) + len(graph.inside.items) < len(expected) / 3


@given(st.lists(st.sets(st.integers(0, 18)), min_size=1, max_size=8))
def test_lists_as_parts_of_a_tree(wanted: list[set[int]]) -> None:
    owner = np.array([k for k, s in enumerate(wanted) for _ in s], dtype=np.int64)
    items = np.array([v for s in wanted for v in sorted(s)], dtype=np.int64)
    tree, parts = by_tree(Lists.of(owner, items, len(wanted)), 19)
    for k, numbers in enumerate(wanted):
        found: list[int] = []
        for part in parts.at(np.array([k]))[0].tolist():
            found += [part] if part < 19 else tree.at(np.array([part - 19]))[0].tolist()
        assert sorted(found) == sorted(numbers)


@given(automata(most=5), automata(most=5), st.integers(0, 10**6))
def test_two_side_by_side_are_their_product(a: Automaton, b: Automaton, seed: int) -> None:
    length, rows, size = 5, 3, 3
    both = a & b
    whole = Language.of([both], [0] * rows)
    able = bool(feasible(whole, torch.full((rows, length), -1)).all())
    pair = joint.Factored.meet(a, b, length, "cpu", 1_000)
    if pair is None:
        assert not able
        return
    pair = pair.begin(pair.start.expand(rows).contiguous())
    generator = torch.Generator().manual_seed(seed)
    log_p = (torch.randn(rows, length, size, generator=generator) * 3).log_softmax(-1).double()
    log_p[2] *= 300  # beyond what plain sums take
    uniform = torch.rand(rows, length, 2, generator=generator, dtype=torch.float64)
    open_ = torch.rand(rows, length, generator=generator) < 0.7
    tokens = torch.randint(0, size, (rows, length), generator=generator)
    one, two = (posterior(language, log_p, tokens, open_) for language in (whole, pair))
    held = torch.where(open_, -1, tokens)
    assert torch.equal(feasible(pair, held), feasible(whole, held))
    for b_ in feasible(whole, held).nonzero().flatten().tolist():
        assert float(one.log_z[b_]) == pytest.approx(float(two.log_z[b_]), abs=1e-9, rel=1e-12)
        assert (one.marginals()[b_] - two.marginals()[b_]).abs().max() < 1e-9
        assert both.accepts(two.sample(uniform)[b_].tolist())
        assert torch.equal(one.best()[b_], two.best()[b_])
        assert torch.equal(one.forced()[0][b_], two.forced()[0][b_])
        assert torch.equal(one.forced()[1][b_], two.forced()[1][b_])
        assert torch.equal(one.best_n(3)[0][b_], two.best_n(3)[0][b_])
    shortest = both.shortest()
    if shortest is not None and shortest <= length:
        assert shortest_canvas(pair).tolist() == [shortest] * rows
    if able:
        kept = pair.automaton()
        for word in range(3**length):
            digits = [word // 3**i % 3 for i in range(length)]
            assert kept.accepts(digits) == both.accepts(digits)


def test_side_by_side_keeps_to_the_budget() -> None:
    def modulo(n: int) -> Automaton:
        return Automaton.build(0, lambda q, _: (q + 1) % n, lambda q: q == 0, alphabet=1)

    with pytest.raises(StateBudgetError, match="19 & 23 states need more than 400"):
        joint.Factored.meet(modulo(19), modulo(23), 500, "cpu", 400)


def test_a_run_does_not_depend_on_how_its_language_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same pressure and the same possible tokens, as one table and as two side by side."""
    vocabulary = small_vocabulary()
    guides = [Keywords("storm", "old dog"), Words(6, 9), Sentences(1, 2), Forbid("sea", "ship")]
    scene = Scene(vocabulary, torch.device("cpu"), 2, 20, 8)
    size = len(vocabulary)
    log_p = (torch.randn(2, 20, size, generator=torch.Generator().manual_seed(3)) * 2).log_softmax(-1)
    tokens, every = torch.zeros(2, 20, dtype=torch.int64), torch.ones(2, 20, dtype=torch.bool)
    uniform = torch.rand(2, 20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    results = []
    for entries in (2**30, 2**8):
        monkeypatch.setattr(joint, "ENTRIES", entries)
        steering = Steering(guides, scene)
        beliefs = posterior(steering.language, log_p, tokens, every)
        draft = beliefs.sample(uniform)
        for row in draft.tolist():
            assert steering.automaton.accepts(row)
            assert all(v.status == "satisfied" for v in steering.check(vocabulary.decode(row), row))
        results.append((type(steering.language), beliefs.log_z, beliefs.forced()[0], beliefs.best()))
    (kind1, z1, forced1, best1), (kind2, z2, forced2, best2) = results
    assert (kind1, kind2) == (Language, joint.Factored)
    assert torch.allclose(z1, z2, rtol=1e-9, atol=1e-9)
    assert torch.equal(forced1, forced2)
    assert torch.equal(best1, best2)


class _NoSync(TorchDispatchMode):
    """Refuses what would make the host wait for a device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        waits = ("_local_scalar_dense", "aten.nonzero", "aten.item", "is_nonzero", "aten.masked_select")
        assert not any(word in name for word in waits), f"{name} waits for the device"
        if "repeat_interleave" in name:
            assert (kwargs or {}).get("output_size") is not None, f"{name} without its output's size"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("entries", [2**30, 2**8])
def test_what_a_step_does_on_cuda_never_waits(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The branches that CUDA takes, run here: logarithmic sums, draft, confidence, best draft, forced tokens."""
    monkeypatch.setattr(joint, "ENTRIES", entries)
    guides = [Keywords("storm", "old dog"), Words(6, 9), Forbid("sea", "ship")]
    language = Steering(guides, Scene(small_vocabulary(), torch.device("cpu"), 2, 14, 8)).language
    log_p = torch.randn(
        2 * 14, len(language.classes), generator=torch.Generator().manual_seed(0)
    ).log_softmax(-1)
    uniform = torch.rand(2, 14, dtype=torch.float64)
    every, able = torch.arange(2), torch.full((2, 14), -1)

    def step() -> torch.Tensor:
        made = masses._careful(language.segments, log_p)
        by_position = made.log.view(2, 14, -1).permute(1, 2, 0).contiguous()
        summed = sums._logarithmic(language, by_position, every)
        classes = summed.draw(uniform)
        tokens = masses.draw_tokens(
            language.segments, log_p, made.share, classes.flatten(), uniform.flatten()
        )
        messages.best_ahead(language, by_position)
        summed.ratios(language.classes[tokens.view(2, 14)])
        summed.log_z()
        reachable(language, able)
        return feasible(language, able)

    step()  # what is made once for a language may wait
    with _NoSync():
        assert step().shape == (2,)
