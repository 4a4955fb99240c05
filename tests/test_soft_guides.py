"""Soft guides: Bias and Repetition against plain loops, Sentiment and Style against their classifiers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from redraft.classifiers import SHIPPED, shipped
from redraft.denoiser import (
    Absorbing,
    Canvas,
    Denoiser,
    InvalidGuideError,
    Prompt,
    Scene,
    Settings,
    SoftGuide,
    Steering,
    Step,
    Vocabulary,
    load,
    refine,
)
from redraft.denoiser.randomness import Randomness
from redraft.guidance import Bias, Repetition, Sentiment, Style, during
from redraft.guidance.tilt import CLITIC, PUSH

WORDS = (
    *("the", "red", "fox", "was", "happy", "wonderful"),
    *("terrible", "dead", "upon", "king", "regret", "'t"),
)
MASK = 2 * len(WORDS)
PIECES: list[bytes | None] = (
    [f" {word}".encode() for word in WORDS] + [word.encode() for word in WORDS] + [None]
)
SIZE = len(PIECES)
GUIDES: list[SoftGuide] = [
    Sentiment("positive"),
    Sentiment("negative"),
    *(Style(name.removeprefix("style-")) for name in SHIPPED if name != "sentiment"),
]
tilts = pytest.mark.parametrize("guide", GUIDES, ids=str)


def _encode(text: str) -> list[int]:
    raw, ids = text.encode(), []
    while raw:
        fits = [k for k, piece in enumerate(PIECES) if piece and raw.startswith(piece)]
        if not fits:
            break
        ids.append(max(fits, key=lambda k: len(PIECES[k] or b"")))
        raw = raw[len(PIECES[ids[-1]] or b"") :]
    return ids


VOCABULARY = Vocabulary(PIECES, _encode, mask_id=MASK)


class Toy(Denoiser):
    """Independent positions with fixed logits [L, V], whatever stands on the canvas."""

    def __init__(self, logits: Tensor) -> None:
        self.name, self.vocabulary, self.noise = "toy", VOCABULARY, Absorbing(MASK)
        self.device, self.length, self.max_length = logits.device, len(logits), len(logits)
        self.settings = Settings(steps=4)
        self.logits = logits.clone()
        self.logits[:, MASK] = -torch.inf

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        return self.logits.expand(canvas.tokens.shape[0], -1, -1)


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> torch.device:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no accelerator here")
    return torch.device(request.param)


def noise(length: int, seed: int) -> Tensor:
    return 2 * torch.randn(length, SIZE, generator=torch.Generator().manual_seed(seed))


def a_step(tokens: list[list[int]], logits: Tensor) -> Step:
    """A step on a canvas where -1 is open; `logits` [L, V]."""
    held = torch.tensor(tokens, device=logits.device)
    canvas = Canvas.blank(held.shape[0], held.shape[1], MASK, logits.device)
    canvas = canvas.commit(held, held >= 0, torch.ones(held.shape, device=logits.device))
    toy = Toy(logits)
    prompt = toy.prepare("", len(tokens))
    own = toy(canvas, prompt)
    return Step(0, 4, canvas, own, prompt, toy, Randomness([0] * len(tokens), logits.device))


def biased(guide: SoftGuide, step: Step) -> Tensor:
    """[B, L, V] on the host; nothing is all zeros."""
    batch, length = step.canvas.tokens.shape
    scene = Scene(VOCABULARY, step.logits.device, batch, length, step.steps)
    bias = guide.bind(scene).bias(step)
    if bias is None:
        return torch.zeros(batch, length, SIZE)
    assert bias.dtype == torch.float32
    assert bias.device.type == step.logits.device.type
    assert bool(bias.isfinite().all())
    return bias.expand(batch, length, SIZE).cpu()


canvases = st.lists(st.lists(st.integers(-1, MASK - 1), min_size=6, max_size=6), min_size=1, max_size=3)


# ---- Bias -----------------------------------------------------------------------------------------------


@given(canvases, st.floats(-5, 5), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_bias_on_one_token_adds_exactly_its_strength(
    tokens: list[list[int]], strength: float, seed: int
) -> None:
    bias = biased(Bias({"fox": strength}), a_step(tokens, noise(6, seed)))
    expected = torch.zeros(SIZE)
    expected[[WORDS.index("fox"), len(WORDS) + WORDS.index("fox")]] = strength
    assert torch.equal(bias, expected.expand_as(bias))


@given(canvases, st.floats(-5, 5), st.integers(0, 99), st.sampled_from(["red fox", "the red fox"]))
@settings(max_examples=25, deadline=None)
def test_bias_on_a_phrase_is_the_mean_field(
    tokens: list[list[int]], strength: float, seed: int, phrase: str
) -> None:
    """strength * geometric mean over the phrase's other tokens, for every place it can stand."""
    step = a_step(tokens, noise(6, seed))
    probability = step.logits.softmax(-1)
    numbers = [WORDS.index(word) for word in phrase.split()]
    expected = torch.zeros_like(step.logits)
    for own in (numbers, [len(WORDS) + numbers[0], *numbers[1:]]):
        n = len(own)
        for row, held in enumerate(tokens):
            for start in range(len(held) - n + 1):
                chance = [
                    float(probability[row, start + k, own[k]])
                    if held[start + k] < 0
                    else float(held[start + k] == own[k])
                    for k in range(n)
                ]
                for j in range(n):
                    others = math.prod(chance[:j] + chance[j + 1 :])
                    expected[row, start + j, own[j]] += strength * others ** (1 / (n - 1))
    torch.testing.assert_close(biased(Bias({phrase: strength}), step), expected, atol=1e-4, rtol=1e-4)


def test_bias_longer_than_the_canvas_adds_nothing() -> None:
    assert not biased(Bias({"the red fox": 3.0}), a_step([[-1, -1]], noise(2, 0))).any()


def test_bias_checks_phrases_by_sign() -> None:
    guide = Bias({"red fox": 1.0, "king": -1.0})
    assert guide.check("A red fox was here.").status == "satisfied"
    assert guide.check("A red fox and a king.").score == 0.5
    assert guide.check("A redfox.").status == "violated"


# ---- Repetition -----------------------------------------------------------------------------------------


def plain_repetition(held: list[int], strength: float) -> Tensor:
    """What the docstring says, one canvas, in plain Python."""
    bias = torch.zeros(len(held), SIZE)
    for i, token in enumerate(held):
        if token >= 0:
            continue
        lowered = set()
        for side in (-1, 1):
            if not 0 <= i + side < len(held) or held[i + side] < 0:
                continue
            near = held[i + side]
            lowered.add(near)
            for j, other in enumerate(held):
                beyond = j - side
                if other == near and 0 <= beyond < len(held) and held[beyond] >= 0:
                    lowered.add(held[beyond])
        for v in lowered:
            bias[i, v] = -strength
    return bias


few = st.lists(st.lists(st.sampled_from([-1, -1, 0, 1, 2]), min_size=8, max_size=8), min_size=1, max_size=4)


@given(few, st.floats(0, 6))
@settings(max_examples=60, deadline=None)
def test_repetition_lowers_exactly_what_it_says(tokens: list[list[int]], strength: float) -> None:
    bias = biased(Repetition(strength), a_step(tokens, noise(8, 0)))
    torch.testing.assert_close(bias, torch.stack([plain_repetition(held, strength) for held in tokens]))


def test_repetition_counts_no_special_token() -> None:
    assert not biased(Repetition(2.0), a_step([[MASK, -1, MASK, MASK, -1]], noise(5, 0))).any()


# ---- Sentiment and Style --------------------------------------------------------------------------------


@tilts
def test_bias_is_the_label_s_vector(guide: Sentiment | Style, device: torch.device) -> None:
    bias = biased(guide, a_step([[-1, MASK, -1]] * 2, noise(3, 0).to(device)))
    name, label = guide.wanted()
    tokens = shipped(name).tokens
    vector = PUSH / tokens.spread * tokens.vector(VOCABULARY, label)
    clitic = PIECES.index(b"'t")
    assert vector[clitic] != 0.0
    vector[clitic] = vector[clitic].clip(-CLITIC, CLITIC)
    vector[len(WORDS) : clitic] = vector[len(WORDS) : clitic].clip(max=0.0)  # would stick to the word before
    np.testing.assert_allclose(bias[0, 0].numpy(), vector, rtol=1e-6)
    assert torch.equal(bias, bias[0, 0].expand_as(bias))
    assert float(bias[0, 0, MASK]) == 0.0
    assert bool(bias.any())


def test_marks_are_rewarded_little_and_penalised_in_full() -> None:
    """Only a sentence's end can carry a mark: three nats for "!" put it behind "the"."""
    scene = Scene(load().vocabulary, torch.device("cpu"), 1, 8, 4)
    mark = scene.vocabulary.token_bytes.index(b"!")
    tokens = shipped("sentiment").tokens
    own = PUSH / tokens.spread * tokens.vector(scene.vocabulary, "positive")[mark]
    assert own > 2 * CLITIC
    assert float(Sentiment("positive").bind(scene).vector[mark]) == CLITIC  # type: ignore[attr-defined]
    assert float(Sentiment("negative").bind(scene).vector[mark]) == pytest.approx(-own)  # type: ignore[attr-defined]


@given(canvases)
@settings(max_examples=25, deadline=None)
def test_a_word_on_the_canvas_is_rewarded_no_more(tokens: list[list[int]]) -> None:
    """Row by row, whatever its case and space; a penalty stays."""
    vector = biased(Sentiment("positive"), a_step([[-1] * 6], noise(6, 0)))[0, 0]
    expected = vector.repeat(len(tokens), 6, 1)
    for row, held in enumerate(tokens):
        for token in held:
            if token >= 0:
                same = [token, (token + len(WORDS)) % MASK]
                expected[row, :, same] = vector[same].clamp_max(0.0)
    assert torch.equal(biased(Sentiment("positive"), a_step(tokens, noise(6, 0))), expected)


def test_the_tones_are_opposites_and_have_the_signs() -> None:
    step = a_step([[-1]], noise(1, 0))
    good, bad = (
        dict(zip(WORDS, biased(Sentiment(tone), step)[0, 0].tolist(), strict=False))
        for tone in ("positive", "negative")
    )
    assert good["happy"] > 0.5
    assert good["wonderful"] > 0.5
    assert good["dead"] < -0.5
    assert all(math.isclose(good[word], -bad[word], abs_tol=1e-6) for word in WORDS)
    style = {
        name: dict(zip(WORDS, biased(Style(name), step)[0, 0].tolist(), strict=False))
        for name in ("old-fashioned", "formal")
    }
    assert style["old-fashioned"]["upon"] > 0 < style["formal"]["regret"]
    assert style["old-fashioned"]["king"] > 0 > style["formal"]["king"]


@tilts
def test_the_guided_distribution_is_the_closed_form(guide: SoftGuide) -> None:
    """p(v) exp(s w_v) / Z, and s = 0 is bit for bit no guide."""
    step = a_step([[-1, -1]], noise(2, 1))
    vector = biased(guide, step)[0, 0].double()
    guided = (step.logits.log_softmax(-1) + biased(1.7 * guide, step)).softmax(-1)
    p = step.logits.double().softmax(-1)
    tilted = p * (1.7 * vector).exp()
    torch.testing.assert_close(guided.double(), tilted / tilted.sum(-1, keepdim=True), atol=1e-6, rtol=1e-5)
    scene = Scene(VOCABULARY, step.logits.device, 1, 2, 4)
    assert (0.0 * guide).bind(scene).bias(step) is None
    assert during(0.5, 1.0, guide).bind(scene).bias(step) is None


def written(guides: list[SoftGuide], pinned: dict[int, int]) -> Canvas:
    toy = Toy(noise(6, 4))
    scene = Scene(VOCABULARY, toy.device, 3, 6, 4)
    held = torch.full((3, 6), MASK)
    where = torch.zeros(3, 6, dtype=torch.bool)
    for place, token in pinned.items():
        held[:, place], where[:, place] = token, True
    canvas = Canvas.blank(3, 6, MASK).pin(held, where)
    run = refine(
        toy,
        canvas,
        Steering(guides, scene),
        prompt=toy.prepare("", 3),
        settings=toy.settings,
        random=Randomness([5, 6, 7]),
    )
    return list(run)[-1].canvas


@pytest.mark.parametrize("guide", [*GUIDES, Bias({"fox": 9.0, "red fox": 9.0}), Repetition(9.0)], ids=str)
def test_pins_stay_and_scale_zero_is_no_guide(guide: SoftGuide) -> None:
    pinned = {0: WORDS.index("dead"), 1: WORDS.index("dead"), 4: WORDS.index("king")}
    canvas = written([50.0 * guide], pinned)
    assert all((canvas.tokens[:, place] == token).all() for place, token in pinned.items())
    assert torch.equal(written([0.0 * guide], pinned).tokens, written([], pinned).tokens)
    assert not canvas.open.any()


def test_a_strong_tilt_writes_its_words() -> None:
    canvas = written([60.0 * Sentiment("positive")], {})
    texts = [VOCABULARY.decode(row) for row in canvas.tokens.tolist()]
    assert all("happy" in text or "wonderful" in text for text in texts)


# ---- checks ---------------------------------------------------------------------------------------------

GOOD, BAD = (
    "The room was warm and lovely, and we had a wonderful evening.",
    "The food was awful and the staff were rude.",
)


def test_sentiment_checks_by_the_judge() -> None:
    held, failed = Sentiment("positive").check(GOOD), Sentiment("positive").check(BAD)
    assert (held.status, failed.status) == ("satisfied", "violated")
    score = float(shipped("sentiment").judge.score([GOOD])[0, 1])
    assert held.score == score
    assert f"{score:.2f}" in held.note
    assert Sentiment("negative").check(GOOD).score == pytest.approx(1 - score)
    assert "wonderful" in [GOOD[span.start : span.end] for span in held.spans]
    assert "awful" in [BAD[span.start : span.end] for span in failed.spans]
    assert [span.start for span in held.spans] == sorted(span.start for span in held.spans)


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (
            "formal",
            "Dear Sir, we regret to inform you that your request was refused. Please contact our office.",
        ),
        ("casual", "I'm so tired today, I can't wait to see you tonight! It's been ages."),
        (
            "old-fashioned",
            "Upon a time a poor king had a daughter, and she dwelt beneath the mountain with the prince.",
        ),
        ("plain", "Water turns to ice when it gets very cold. The ice can melt again when the air is warm."),
    ],
)
def test_each_style_is_known_from_the_others(style: str, text: str) -> None:
    assert Style(style).check(text).status == "satisfied"
    assert (2.0 * Style(style)).check(text).score == Style(style).check(text).score


@tilts
@pytest.mark.parametrize("text", ["", "   ", "Zzyzx qwxz", "\U0001f642 42"])
def test_a_text_without_known_words_is_unknown(guide: SoftGuide, text: str) -> None:
    verdict = guide.check(text)
    assert (verdict.status, verdict.score, verdict.spans) == ("unknown", None, ())


@given(st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_checks_hold_for_any_text(text: str) -> None:
    for guide in GUIDES[:3]:
        verdict = guide.check(text)
        assert all(0 <= span.start < span.end <= len(text) for span in verdict.spans)
        assert verdict.score is None or 0 <= verdict.score <= 1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Sentiment("postive"), "did you mean 'positive'"),
        (lambda: Sentiment(""), "use one of positive, negative"),
        (lambda: Sentiment(cast(Any, None)), "tone is None: use a string"),
        (lambda: Style("Formal"), "did you mean 'formal'"),
        (lambda: Style("oldfashioned"), "did you mean 'old-fashioned'"),
        (lambda: Style("zzz"), "use one of formal, casual, old-fashioned, plain"),
        (lambda: math.nan * Sentiment("positive"), "finite"),
        (lambda: Repetition(-1.0), "from 0"),
        (lambda: Bias({"fox": math.inf}), "finite"),
    ],
)
def test_what_is_refused(make: Any, says: str) -> None:
    with pytest.raises(InvalidGuideError, match=says):
        make()


def test_guides_are_values() -> None:
    assert Sentiment("positive") == Sentiment("positive") != Sentiment("negative")
    assert hash(Style("plain")) == hash(Style("plain"))
    assert Sentiment("positive").fields() == {"tone": "positive"}
    assert Style("formal").fields() == {"style": "formal"}
    assert replace(Style("plain"), style="formal") == Style("formal")
    assert str(2.0 * Sentiment("negative")) == "2 * Sentiment('negative')"
