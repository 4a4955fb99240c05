"""Rewriting: what is kept stays, what is protected is pinned, guides choose what opens, hard guides hold."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_soft_guides import VOCABULARY, Toy, noise
from torch import Tensor
from toys import WORDS, Chaos, small_vocabulary, uniform

import redraft.denoiser
from redraft.denoiser import (
    Canvas,
    InvalidGuideError,
    Particles,
    Prompt,
    RedraftError,
    Scene,
    Settings,
    UnsatisfiableError,
)
from redraft.denoiser.protected import Protected
from redraft.denoiser.rewrite import _opened, _opinions, _stretched, _words, overlap
from redraft.guidance import Bias, Forbid, Keywords, Reward, Style, Words
from redraft.recipes.cli import run
from redraft.recipes.rewriting import Wishes

DENOISER = Chaos(small_vocabulary(whole_first=True), sharpness=1.0)
texts = st.lists(st.sampled_from(WORDS), min_size=3, max_size=12).map(" ".join)


def outside(made: object) -> list[str]:
    """The original without what was reopened."""
    pieces, at = [], 0
    for span in made.reopened:  # type: ignore[attr-defined]
        pieces.append(made.original[at : span.start])  # type: ignore[attr-defined]
        at = span.end
    return [*pieces, made.original[at:]]  # type: ignore[attr-defined]


@given(texts, st.floats(0, 0.95), st.integers(0, 99), st.floats(0, 1))
def test_what_is_kept_stands_in_order(text: str, keep: float, seed: int, stretch: float) -> None:
    made = DENOISER.rewrite(
        text, [Bias({"sea": 3.0})], keep=keep, seed=seed, stretch=stretch, tries=2, steps=3
    )
    at = 0
    for piece in outside(made):
        found = made.text.find(piece, at)
        assert found >= 0, (text, made.text)
        at = found + len(piece)
    assert made.text.startswith(outside(made)[0])
    assert made.text.endswith(outside(made)[-1])
    assert made.reopened
    n = len(DENOISER.vocabulary.encode(text))
    opened = round((1 - made.kept) * n)
    assert opened <= max(1, round((1 - keep) * n)) or len(made.reopened) == 1
    length = len(DENOISER.vocabulary.encode(made.text))
    assert length <= n + len(made.reopened) + stretch * opened + 1


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda text, others: 1 / 0, "similarity failed: ZeroDivisionError"),
        (lambda text, others: None, "similarity failed: TypeError"),
        (lambda text, others: [1.0], "similarity gave"),
        (lambda text, others: [float("nan")] * len(others), "similarity gave"),
    ],
)
def test_a_broken_similarity_is_named(measure: Any, message: str) -> None:
    with pytest.raises(RedraftError, match=message):
        DENOISER.rewrite("the old dog", [Bias({"sea": 3.0})], similarity=measure, seed=1, steps=2)


@given(texts, st.data())
def test_protected_words_stay_and_others_open(text: str, data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(text.split()))
    rest = [w for w in text.split() if word not in w and w not in word]
    if not rest:
        return
    made = DENOISER.rewrite(text, [Bias({word: -9.0})], protect=[word], keep=0.0, seed=1, tries=1, steps=2)
    kept = "".join(outside(made))
    assert kept.count(word) == text.count(word)


def test_the_word_the_guide_dislikes_is_the_one_that_opens() -> None:
    text = "the old dog ran home and the cat sat"
    for word in ("dog", "cat", "old"):
        made = DENOISER.rewrite(text, [Bias({word: -30.0})], keep=0.88, seed=3, steps=4, similarity=alike)
        assert [text[s.start : s.end].strip() for s in made.reopened] == [word]
        assert word not in made.text.split()


def test_the_word_that_means_most_is_kept() -> None:
    text = "the old dog ran home"

    def measure(original: str, others: Sequence[str]) -> list[float]:
        return [0.2 * ("dog" in o) + 0.2 * ("home" in o) + 0.1 * ("old" in o) + 0.1 for o in others]

    made = DENOISER.rewrite(text, [Bias({"sea": 0.0})], keep=0.5, seed=3, steps=4, similarity=measure)
    kept = "".join(outside(made))
    assert "dog" in kept
    assert "home" in kept
    assert "the" not in kept


def alike(original: str, others: Sequence[str]) -> list[float]:
    return [0.5] * len(others)


def test_style_is_what_the_guide_would_gain() -> None:
    """E_q[bias] - bias(token), q the guided distribution at a masked token; surprise is -log p."""
    toy = Toy(noise(6, 2))
    tokens = [0, 1, 2, 3, 4, 5]
    strength = 2.5
    style, surprise = _opinions(toy, tokens, [Bias({"fox": strength})], Settings(), None)
    log_p = toy.logits.log_softmax(-1)
    fox = [2, 2 + len(VOCABULARY) // 2]
    for i, token in enumerate(tokens):
        lifted = log_p[i].exp().clone()
        lifted[fox] *= torch.tensor(strength).exp()
        q = lifted / lifted.sum()
        gain = strength * float(q[fox].sum()) - strength * (token in fox)
        assert float(style[i]) == pytest.approx(gain, abs=1e-5)
        assert float(surprise[i]) == pytest.approx(-float(log_p[i, token]), abs=1e-5)


@pytest.mark.parametrize("kind", ["blocks", "noise", "noise in blocks", "no end"])
def test_every_kind_of_denoiser_rewrites(kind: str) -> None:
    vocabulary = small_vocabulary(whole_first=True, eos=kind != "no end")
    seen: list[Canvas] = []

    class Watched(Chaos):
        def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
            seen.append(canvas)
            return super().__call__(canvas, prompt)

    denoiser = Watched(
        vocabulary,
        noise=uniform(vocabulary) if "noise" in kind else None,
        block=4 if "blocks" in kind else None,
    )
    text = "the old storm hit the dark house and the dog ran home"
    made = denoiser.rewrite(text, Forbid("house"), keep=0.6, protect=["the"], seed=3, steps=8)
    assert "house" not in made.text.lower().split()
    assert made.text.count("the") >= 3
    assert made.result.satisfied
    if denoiser.block:  # it is asked for its own block alone, behind finished text
        for canvas in seen:
            start = (canvas.tokens.shape[1] - 1) // denoiser.block * denoiser.block
            assert not canvas.open[:, :start].any()


def test_hard_guides_hold_and_contradictions_are_named() -> None:
    text = "the old dog ran home and the cat sat by the sea"
    made = DENOISER.rewrite(text, [Keywords("storm"), Words(10, 14)], seed=1, keep=0.6, steps=4)
    assert made.result.satisfied
    assert re.search(r"\bstorm\b", made.text.lower())
    with pytest.raises(UnsatisfiableError, match="contradict"):
        DENOISER.rewrite(text, [Forbid("dog")], protect=["dog"], seed=1)


def test_the_seed_is_the_rewriting_and_tries_keep_the_most_similar() -> None:
    text = "the old dog ran home and the cat sat by the sea"
    one, again = (DENOISER.rewrite(text, seed=5, keep=0.5, steps=3) for _ in range(2))
    assert one == again or (one.text, one.similarity) == (again.text, again.similarity)
    single = DENOISER.rewrite(text, seed=5, keep=0.5, steps=3, tries=1)
    assert one.similarity >= single.similarity
    assert one.similarity == pytest.approx(overlap(text, [one.text])[0])


def test_particles_rewrite_too() -> None:
    text = "the old dog ran home and the cat sat by the sea"
    guide = Reward(lambda texts: [3.0 * t.count("s") for t in texts])
    made = DENOISER.rewrite(text, [guide], seed=5, keep=0.5, steps=3, tries=2, particles=Particles(6))
    assert made.result.particles is not None
    assert len(made.result.particles.texts) == 6
    with pytest.raises(InvalidGuideError, match="Particles"):
        DENOISER.rewrite(text, [guide], seed=5)


def test_words_are_grouped_and_opened_whole() -> None:
    pieces = [b"the", b" light", b"house", b"'", b"s", b" sea", b",", b" ", b"dog"]
    assert _words(pieces) == [0, 1, 1, 2, 2, 3, 4, 5, 6]
    score = torch.tensor([0.0, 5.0, 4.0, 1.0, 0.5, 0.1, 0.2])
    words = _words(pieces)
    assert _opened(score, words, [False] * 9, 0.78) == [False, True, True, *[False] * 6]
    assert _opened(score, words, [False, True, *[False] * 7], 0.78) == [False] * 3 + [True] * 2 + [False] * 4


def test_blanks_keep_within_their_range() -> None:
    opened = [False, True, True, True, False, True, False]
    widths = set()
    for seed in range(60):
        row = _stretched(opened, 0.34, seed, 20)
        assert [k for k in row if k >= 0] == [0, 4, 6]
        first = row.index(4) - 1
        widths.add(first)
        assert 1 <= len(row) - 3 - first <= 2
    assert widths == {2, 3, 4}
    assert len(_stretched(opened, 1.0, 1, 7)) <= 7
    assert _stretched(opened, 0.0, 1, 7) == [0, -1, -1, -1, 4, -1, 6]


WRONG: list[dict[str, object]] = [
    {"keep": 1.0}, {"keep": -0.1}, {"keep": "x"}, {"stretch": 2.0}, {"tries": 0}, {"protect": ["fox"]},
    {"protect": 3}, {"settings": 3}, {"guides": "x"}, {"similarity": 3}, {"seed": 2**63 - 1},
    {"similarity": lambda text, others: [1.0]}, {"similarity": lambda text, others: [float("nan")] * len(others)},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidGuideError):
        DENOISER.rewrite("the old dog", **wrong)
    for text in ("", "  "):
        with pytest.raises(InvalidGuideError, match="no text"):
            DENOISER.rewrite(text)
    with pytest.raises(InvalidGuideError, match="cut it"):
        DENOISER.rewrite("the " * 200)
    with pytest.raises(InvalidGuideError, match="nothing is left"):
        DENOISER.rewrite("the dog", protect=["the dog"])


def test_overlap_is_a_cosine_of_words() -> None:
    assert overlap("a b", ["A, b!", "a c", "x", ""]) == pytest.approx([1.0, 0.5, 0.0, 0.0])
    assert overlap("", [""]) == [1.0]


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # without the extra
    file = tmp_path / "notes.txt"
    file.write_text("I was tired and the food was cold.\n\nWe met Anna at the lake.\n", encoding="utf-8")
    options = ["--tries", "1", "--steps", "2", "--seed", "3", "--json"]
    assert run(["rewrite", str(file), "--sentiment", "positive", "--protect", "Anna", *options]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["original"][:4] for row in rows] == ["I wa", "We m"]
    assert "Anna" in rows[1]["text"]
    assert all(0.3 < row["kept"] <= 1 and row["reopened"] and row["verdicts"] for row in rows)
    assert run(["rewrite", str(file)]) == 2
    assert "--style" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--keyword", "sea", "--target", "0.9"], "--target is for --style"),
        (["--forbid", "sea", "--scale", "3"], "--scale is for --style"),
        (["--style", "formal"], "no text"),
    ],
)
def test_an_option_or_a_file_without_effect_is_refused(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("\n" if said == "no text" else "The sea.\n", encoding="utf-8")
    assert run(["rewrite", str(file), *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--keep", "1.5"], "keep is 1.5: use a share from 0, below 1"),
        (["--keep", "nan"], "keep is nan"),
        (["--stretch", "2"], "stretch is 2.0: use a share"),
        (["--tries", "0"], "tries is 0: use a whole number from 1"),
        (["--steps", "0"], "steps is 0"),
        (["--seed=-1"], "seed is -1, and 5 seeds are used"),
        # two lines of four runs each: seeds N to N + 4
        (["--seed", f"{2**63 - 4}"], f"seed is {2**63 - 4}, and 5 seeds .* 0 to {2**63 - 5}\n"),
    ],
)
def test_bad_options_are_refused_before_a_model_is_loaded(
    options: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(redraft.denoiser, "load", refuse)
    file = tmp_path / "notes.txt"
    file.write_text("The sea.\nThe storm.\n", encoding="utf-8")
    assert run(["rewrite", str(file), "--style", "formal", *options]) == 2
    assert re.search(said, capsys.readouterr().err)


def test_a_seed_too_high_for_all_runs_is_named_as_given() -> None:
    with pytest.raises(InvalidGuideError, match=f"seed is {2**63 - 1}, and 4 seeds"):
        DENOISER.rewrite("the old dog", seed=2**63 - 1)


def test_a_scale_multiplies_a_target() -> None:
    assert Wishes(style="formal", target=0.9).guides() == [Style("formal", 0.9)]
    assert Wishes(style="formal", target=0.9, scale=3.0).guides() == [3.0 * Style("formal", 0.9)]
    assert Wishes(style="formal").guides() == [2.0 * Style("formal")]


def test_characters_without_a_token_are_kept() -> None:
    """The vocabulary keeps to whole characters where it can; what is kept says that it cannot."""
    made = DENOISER.rewrite("the dog ñ ran home", [Words(3, 9)], protect=["ñ"], seed=1, steps=2)
    assert "ñ" in made.text
    assert made.result.satisfied


def test_the_line_that_cannot_be_rewritten_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("\n" + "word " * 400, encoding="utf-8")
    assert run(["rewrite", str(file), "--style", "formal", "--tries", "1"]) == 2
    assert f"{file}, line 2: the text has" in capsys.readouterr().err


def test_nothing_grows_onto_a_protected_word() -> None:
    made = DENOISER.rewrite(
        "the dog ran home", [Bias({"sea": 9.0})], protect=["dog"], keep=0.0, tries=4, seed=1
    )
    assert re.search(r"\bdog\b", made.text), made.text
    assert [v.status for v in made.result.verdicts if v.guide.startswith("Protected")] == ["satisfied"]
    with pytest.raises(UnsatisfiableError, match="contradict"):
        DENOISER.rewrite("the dog ran home", [Forbid("dog")], protect=["dog"], seed=1)


@given(st.lists(st.sampled_from(["late", "lat", "e", "r", " ", ".", "\u00e9", "_"]), max_size=8).map("".join))
def test_the_language_of_a_protected_phrase_is_its_check(text: str) -> None:
    scene = Scene(small_vocabulary(), torch.device("cpu"), 1, 8, 1)
    for guide in (
        Protected("late"),
        Protected("late", 2),
        Protected("late", right=False),
        Protected("late", 2, left=False),
        Protected("late", left=False, right=False),
    ):
        written = guide.language(scene).accepts(
            [4 + byte for byte in text.encode()]
        )  # its bytes follow four specials
        assert written == (guide.check(text).status == "satisfied"), (guide, text)


def test_a_phrase_is_protected_as_it_stood() -> None:
    assert Protected.of("late", "late, later") == Protected("late", 2, left=True, right=False)
    assert Protected.of("lat", "a late slate") is None
    assert Protected.of("(late)", "was (late) x") is None  # nothing can grow onto a bracket
    assert Protected.of("Mr Holt", "Mr Holt's dog") == Protected("Mr Holt", 1)
