"""Targets: the smallest push, against an independent root finder; classifier log-odds of a canvas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import tokenizers
import torch
from scipy.optimize import brentq
from test_soft_guides import MASK, SIZE, VOCABULARY, WORDS, Toy, a_step, noise

from redraft.classifiers import shipped
from redraft.denoiser import Canvas, InvalidGuideError, Scene, Vocabulary, during
from redraft.denoiser.models.embedded import HOME
from redraft.guidance import Sentiment, Style
from redraft.guidance.push import MOST, Draft, smallest_push
from redraft.guidance.tilt import Tilt, _Scores

LENGTH = 5


def plain_probability(
    guide: Tilt, push: float, logits: torch.Tensor, held: dict[int, int], temperature: float
) -> float:
    """The classifier's probability of the expected draft under a push, in plain numpy."""
    name, label = guide.wanted()
    tokens = shipped(name).tokens
    weights, total = tokens.weights(VOCABULARY, label).astype(float), tokens.offset(label)
    unit = guide.__class__(label).bind(Scene(VOCABULARY, logits.device, 1, LENGTH, 4))
    step = a_step([[held.get(i, -1) for i in range(LENGTH)]], logits)
    bias = unit.bias(step)
    assert bias is not None
    vector = bias[0, 0].double().numpy()
    said = {t % len(WORDS) for t in held.values()}
    total += sum(weights[t] for t in set(held.values()))
    for i in range(LENGTH):
        if i in held:
            continue
        p = np.exp(logits[i].double().numpy() / temperature + push * vector)
        p /= p.sum()
        total += sum(p[v] * weights[v] for v in range(MASK) if v % len(WORDS) not in said)
    return 1 / (1 + math.exp(-total))


@pytest.mark.parametrize(
    "guide", [Sentiment("positive", 0.9), Sentiment("negative", 0.7), Style("formal", 0.8)], ids=str
)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("held", [{}, {1: WORDS.index("king")}], ids=["open", "held"])
def test_the_push_is_the_root_of_the_expected_draft(
    guide: Tilt, temperature: float, held: dict[int, int]
) -> None:
    assert guide.target is not None
    logits = noise(LENGTH, 3)
    logits[:, MASK] = -torch.inf
    step = replace(a_step([[held.get(i, -1) for i in range(LENGTH)]], logits), temperature=temperature)
    bound = guide.bind(Scene(VOCABULARY, logits.device, 1, LENGTH, 4))
    bias, push = bound.bias(step), bound.push(step)
    assert bias is not None
    assert push is not None

    def gap(s: float) -> float:
        return plain_probability(guide, s, logits, held, temperature) - (guide.target or 0)

    expected = 0.0 if gap(0) >= 0 else brentq(gap, 0, MOST) if gap(MOST) > 0 else MOST
    assert float(push) == pytest.approx(expected, abs=2e-3)
    unit = guide.__class__(guide.wanted()[1]).bind(bound.scene).bias(step)
    assert unit is not None
    torch.testing.assert_close(bias, push[:, None, None] * unit)


def test_a_target_that_is_met_pushes_nothing_and_one_out_of_reach_pushes_most() -> None:
    """Row by row: what stands on the canvas decides."""
    happy, dead = WORDS.index("happy"), WORDS.index("dead")
    step = a_step([[happy, WORDS.index("wonderful"), -1], [dead, WORDS.index("terrible"), dead]], noise(3, 1))
    bound = Sentiment("positive", 0.6).bind(Scene(VOCABULARY, step.logits.device, 2, 3, 4))
    bound.bias(step)
    push = bound.push(step)
    assert push is not None
    assert push.tolist() == [0.0, MOST]


def test_pushes_are_traced_scaled_and_rest() -> None:
    toy = Toy(noise(6, 4))
    guide = Sentiment("positive", 0.95)
    (plain,) = toy.write(guide, seed=1)
    (part,) = toy.write(during(0.5, 1.0, 2.0 * guide), seed=1)
    assert len(plain.pushes[str(guide)]) == plain.steps
    assert all(push >= 0 for push in plain.pushes[str(guide)])
    assert plain.pushes[str(guide)][0] > 0
    (pushes,) = part.pushes.values()
    early, late = pushes[:2], pushes[2:]
    assert early == (0.0, 0.0)
    assert len(late) == part.steps - 2
    (fixed,) = toy.write(1.5 * Style("formal"), seed=1)
    assert set(fixed.pushes["1.5 * Style('formal')"]) == {1.5}


def test_the_same_push_by_vector_and_by_position() -> None:
    """A score that differs by position takes the other road to the same sum."""
    step = a_step([[-1] * 4, [0, -1, -1, -1]], noise(4, 2))
    draft = Draft.of(step)
    bias = torch.randn(2, 1, SIZE, generator=torch.Generator().manual_seed(0))
    start = torch.tensor([-2.0, -1.0])
    one = smallest_push(draft, bias, bias, start, 1.0)
    other = smallest_push(draft, bias.expand(-1, 4, -1), bias.expand(-1, 4, -1), start, 1.0)
    torch.testing.assert_close(one, other, atol=2e-3, rtol=0)
    assert bool((start + draft.expected(one[:, None], bias, bias)[:, 0] >= 1.0 - 1e-4).all())


def test_log_odds_of_a_finished_canvas_are_the_classifier_s() -> None:
    vocabulary = Vocabulary.from_tokenizer(
        tokenizers.Tokenizer.from_file(str(HOME / "tokenizer.json")), mask_id=2, eos_id=1, pad_id=0
    )
    texts = [
        "The happiness of a wonderful, wonderful day.",
        "It was terrible and I hated it; unlovely rooms!",
    ]
    rows = [vocabulary.encode(text) for text in texts]
    width = max(map(len, rows)) + 1
    ids = torch.tensor([[*row, 1, *[0] * (width - len(row) - 1)] for row in rows])
    canvas = Canvas.blank(2, width, 2).commit(ids, ids >= 0, torch.ones(ids.shape))
    step = a_step([[0, 0]], noise(2, 0))
    scores = _Scores(
        shipped("sentiment").tokens, "positive", Scene(vocabulary, torch.device("cpu"), 2, width, 1)
    )
    found = scores.log_odds(replace(step, canvas=canvas))
    tokens = shipped("sentiment").tokens.bind(vocabulary)
    spelled = [  # words that the table has in another case count for the bias, not for the classifier
        sum(float(scores.weights[t]) for t in set(row) if vocabulary.token_bytes[t] not in tokens.table)
        for row in rows
    ]
    np.testing.assert_allclose(found.numpy() - spelled, tokens.logits(texts), atol=1e-4)


@pytest.mark.parametrize("target", [0.0, 1.0, -0.5, math.nan])
def test_a_target_is_a_probability(target: float) -> None:
    with pytest.raises(InvalidGuideError, match=r"0\.9"):
        Sentiment("positive", target)
