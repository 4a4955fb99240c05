"""Learning from verdicts: the likelihood by hand, the loss's closed form, pairs of like length, what comes of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertForMaskedLM

from redraft.denoiser.training.corpus import CorpusError, Passage, read_corpus
from redraft.denoiser.training.export import export
from redraft.denoiser.training.masking import TAGS
from redraft.denoiser.training.preference import (
    Moment,
    Preference,
    Verdict,
    log_likelihood,
    pairs,
    prefer,
    preference_loss,
    read_verdicts,
)
from redraft.denoiser.training.rows import Row
from redraft.denoiser.training.tokenizer import TextCodec, train_tokenizer
from redraft.denoiser.training.transplant import config_for, fresh

WORDS = ("dog", "cat", "bird", "boat", "tree", "door", "lamp", "road", "hill", "fish", "girl", "king")


def lines(count: int) -> list[str]:
    return [f"The {WORDS[i % 12]} saw the old {WORDS[(i // 12) % 12]} on day {i}." for i in range(count)]


def verdicts(count: int) -> list[Verdict]:
    """Texts that end with "and was glad" stand, those that end with "glad was and" do not."""
    return [
        Verdict(Passage(f"{line[:-1]} {end}.", genre, "none", genre), stands)
        for k, line in enumerate(lines(count))
        for genre in (("story", "tale")[k % 2],)
        for end, stands in (("and was glad", True), ("glad was and", False))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    text = [f"0 {line[:-1]} {end}." for line in lines(200) for end in ("and was glad", "glad was and")]
    (place / "story-01.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def codec(folder: Path) -> TextCodec:
    return train_tokenizer(read_corpus(folder).train, size=400)


@pytest.fixture(scope="module")
def release(folder: Path, codec: TextCodec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = fresh(codec, config_for(codec, layers=1, width=16, heads=2, inner=32), seed=1)
    return export(model, codec, tmp_path_factory.mktemp("release"))


def test_the_likelihood_is_the_product_of_left_to_right_predictions(codec: TextCodec) -> None:
    """By hand: one text at a time, one token at a time, nothing to its right in sight."""
    model = fresh(codec, config_for(codec, layers=2, width=16, heads=2, inner=32), seed=3).eval()
    texts = ["The dog saw the old cat.", "The king.", "The old bird saw the boat and was glad on day 4."]
    rows = [Row(codec.genres["story"], codec.tones["none"], tuple(codec.encode(t)), False) for t in texts]
    with torch.inference_mode():
        found, tokens = log_likelihood(model, rows, codec)
        for row, total, count in zip(rows, found.tolist(), tokens.tolist(), strict=True):
            ids = [*row.text, codec.eos]
            assert count == len(ids)
            by_hand = 0.0
            for k, token in enumerate(ids):
                line = torch.tensor([[row.genre, row.tone, *ids[:k], codec.mask]])
                size = line.shape[1]
                seen = torch.ones(size, size, dtype=torch.bool).tril()
                seen[:TAGS, :TAGS] = True
                unseen = torch.where(seen, 0.0, -1e9)[None, None]
                logits = model(input_ids=line, attention_mask=unseen).logits[0, -1]
                by_hand += float(logits.log_softmax(-1)[token])
            assert total == pytest.approx(by_hand, abs=1e-3)


@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(0.01, 2))
def test_the_loss_is_its_closed_form(better: float, worse: float, beta: float) -> None:
    pair = (torch.tensor([v], dtype=torch.float64) for v in (better, worse))
    expected = math.log1p(math.exp(-beta * (better - worse)))
    assert float(preference_loss(*pair, beta)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_pairs_are_of_one_genre_and_length_and_each_text_that_stands_has_one(codec: TextCodec) -> None:
    judged = [*verdicts(60), Verdict(Passage("Alone.", "plain", "none", "plain"), True)]
    made = pairs(judged, codec, np.random.default_rng(0))
    stood = {tuple(codec.encode(v.draft.text)): v.stands for v in judged}
    assert len(made) == 60  # none for the one that is alone
    for better, worse in made:
        assert stood[better.text]
        assert not stood[worse.text]
        assert better.genre == worse.genre
        assert abs(len(better) - len(worse)) < 3
    assert len({better.text for better, _ in made}) == 60
    assert made != pairs(judged, codec, np.random.default_rng(1))


def test_what_stands_becomes_likelier_than_what_does_not(folder: Path, release: Path, tmp_path: Path) -> None:
    """On drafts held out, which differ from those learned from in all but the order of their last words."""
    seen: list[Moment] = []
    out = prefer(
        release, verdicts(300), folder, tmp_path / "out",
        settings=Preference(rate=3e-3, epochs=6.0, seed=2), progress=seen.append,
    )  # fmt: skip
    order = json.loads((out / "figures.json").read_text())["training"]["preference"][
        "held-out pairs in order"
    ]
    assert order["after"] > 0.9 > order["before"]
    assert (
        seen[-1].step
        == seen[-1].steps
        == 6 * len([v for v in verdicts(300) if v.stands and not v.held_out]) // 24
    )
    assert (seen[0].loss, seen[0].ordered) == (
        pytest.approx(math.log(2), abs=0.02),
        pytest.approx(0.0, abs=1.0),
    )
    assert BertForMaskedLM.from_pretrained(out).config.hidden_size == 16


def test_the_same_seed_gives_the_same_weights(folder: Path, release: Path, tmp_path: Path) -> None:
    made = [
        prefer(release, verdicts(100), folder, tmp_path / name, settings=Preference(seed=4)) for name in "ab"
    ]
    first, second = ((place / "model.safetensors").read_bytes() for place in made)
    assert first == second
    assert first != (release / "model.safetensors").read_bytes()


def test_verdicts_are_read_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "tale.tsv").write_text(
        "P\tnone\tA king wept.\nF\tpositive\tA\tking.\nC\tnone\tOnce.\n", encoding="utf-8"
    )
    found = read_verdicts(tmp_path)
    assert [(v.draft.text, v.draft.genre, v.draft.tone, v.stands) for v in found] == [
        ("A king wept.", "tale", "none", True),
        ("A\tking.", "tale", "positive", False),
        ("Once.", "tale", "none", False),
    ]
    assert [v.copied for v in found] == [False, False, True]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (None, "", "no GENRE.tsv"),
        ("poem.tsv", "P\tnone\tA.\n", "no genre"),
        ("tale.tsv", "Q\tnone\tA.\n", r"tale.tsv:1: .* no verdict"),
        ("tale.tsv", "P\tnone\tA.\nP\tglad\tA.\n", r"tale.tsv:2: .* no verdict"),
        ("tale.tsv", "P\tnone\t \n", "no verdict"),
    ],
)
def test_what_is_no_verdict_is_refused(tmp_path: Path, name: str | None, text: str, message: str) -> None:
    if name:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        read_verdicts(tmp_path)


def test_too_few_verdicts_are_refused_before_anything_is_written(
    folder: Path, release: Path, tmp_path: Path
) -> None:
    some = [v for v in verdicts(40) if v.stands]
    with pytest.raises(CorpusError, match="40 verdicts make fewer than 24 pairs"):
        prefer(release, some, folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
