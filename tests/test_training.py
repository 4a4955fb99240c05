"""Laws of the trainer: exact resumption, text that is only text, a fixed held-out set, a loss by hand."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers
from torch.nn import functional as F
from transformers import BertForMaskedLM

from redraft.denoiser import UnsupportedModelError
from redraft.denoiser.training.corpus import Corpus, CorpusError, Passage, read_corpus
from redraft.denoiser.training.export import export
from redraft.denoiser.training.masking import TAGS, Masking, lay_out, loss_of, mask_batch
from redraft.denoiser.training.rows import CANVAS, Mixture, Position, Row, RowStream
from redraft.denoiser.training.schedule import Budget, Rate
from redraft.denoiser.training.settings import Progress, Settings
from redraft.denoiser.training.state import LAST, read_state
from redraft.denoiser.training.streams import stream_batch
from redraft.denoiser.training.tokenizer import SPECIALS, TextCodec, train_tokenizer
from redraft.denoiser.training.train import train
from redraft.denoiser.training.transplant import config_for, fresh

TINY = Settings(
    vocabulary=400,
    layers=1,
    width=16,
    heads=2,
    tokens=256,
    warmup=2,
    bf16=False,
    checkpoint_every=1e9,
    report_every=1e9,
    evaluate_every=1e9,
)
NOUNS = ("dog", "cat", "bird", "boat", "tree", "door", "lamp", "road", "hill", "fish", "girl", "king")
VERBS = ("saw", "found", "liked", "lost", "took", "kept", "drew", "sold", "hid", "held", "met")


def sentences(count: int) -> list[str]:
    return [
        f"The {NOUNS[i % 12]} {VERBS[i % 11]} the old {NOUNS[(i // 11) % 12]} {'again ' * (i % 5)}by day {i}."
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("corpus")
    lines = sentences(400)
    marks = "+-0"
    for name, part in {
        "story-01": lines[:150],
        "story-12": lines[150:250],
        "tale-02": lines[250:320],
    }.items():
        marked = [f"{marks[i % 3]} {line}" for i, line in enumerate(part)]
        (place / f"{name}.txt").write_text("\n".join(marked) + "\n", encoding="utf-8")
    (place / "chat-real.txt").write_text("\n".join(lines[320:]) + "\n", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Corpus:
    return read_corpus(folder)


@pytest.fixture(scope="module")
def codec(corpus: Corpus) -> TextCodec:
    return train_tokenizer(corpus.train, size=400)


# corpus


def test_marks_and_file_names_become_tags(corpus: Corpus) -> None:
    passages = [*corpus.train, *corpus.held]
    assert {p.genre for p in passages} == {"story", "tale", "chat"}
    assert {p.tone for p in passages if p.genre == "story"} == {"positive", "negative", "neutral"}
    assert {p.tone for p in passages if p.genre == "chat"} == {"none"}
    assert {p.hand for p in passages} == {0, 1, 2, 12}
    assert not any(p.text.startswith(("+", "-", "0 ")) for p in passages)


def test_plain_text_is_read_by_paragraph_or_line(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("one two\nthree\n\nfour - five\n", encoding="utf-8")
    (tmp_path / "lines.txt").write_text("+ not a mark, the file has no genre\nsecond\n", encoding="utf-8")
    texts = {p.text for p in _all(read_corpus(tmp_path, min_words=0))}
    assert texts == {"one two three", "four - five", "+ not a mark, the file has no genre", "second"}


def test_duplicates_go_and_held_out_does_not_move(tmp_path: Path, corpus: Corpus) -> None:
    lines = sentences(3000)
    (tmp_path / "a.txt").write_text("\n".join(lines + lines), encoding="utf-8")
    first = read_corpus(tmp_path)
    assert len(_all(first)) == 3000
    assert 10 <= len(first.held) <= 60  # 1 %
    (tmp_path / "b.txt").write_text("\n".join(s.replace("day", "night") for s in lines), encoding="utf-8")
    assert {p.text for p in first.held} <= {p.text for p in read_corpus(tmp_path).held}


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), ("", "0 words"), ("one two three\n", r"3 words .* at least 200 words")],
)
def test_unusable_corpora_are_refused(tmp_path: Path, content: str | None, message: str) -> None:
    place = tmp_path / "text"
    if content is not None:
        place.mkdir()
        (place / "a.txt").write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        train(place, tmp_path / "out", budget=Budget.steps(1), settings=TINY)


def test_a_folder_without_text_and_a_file_in_another_encoding_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no \.txt file"):
        read_corpus(tmp_path)
    (tmp_path / "a.txt").write_bytes("café".encode("latin-1"))
    with pytest.raises(CorpusError, match="byte 3 is not UTF-8"):
        read_corpus(tmp_path)


# tokenizer


@given(text=st.text(max_size=60))
@settings(deadline=None, max_examples=200)
def test_any_text_round_trips_and_makes_no_special(codec: TextCodec, text: str) -> None:
    ids = codec.encode(text)
    assert codec.decode(ids) == text
    assert not codec.special & set(ids)


@pytest.mark.parametrize("special", SPECIALS)
def test_a_literal_special_is_text(codec: TextCodec, special: str) -> None:
    text = f"before {special}{special} after"
    assert not codec.special & set(codec.encode(text))
    assert codec.decode(codec.encode_all([text])[0]) == text


def test_a_reloaded_tokenizer_keeps_literal_specials_text(codec: TextCodec, tmp_path: Path) -> None:
    codec.save(tmp_path / "t.json")
    again = TextCodec.load(tmp_path / "t.json")
    assert again.encode("a <mask> b") == codec.encode("a <mask> b")
    assert again.special == codec.special == frozenset(range(len(SPECIALS)))


def test_every_byte_has_a_token(codec: TextCodec) -> None:
    assert set(pre_tokenizers.ByteLevel.alphabet()) <= set(codec.tokenizer.get_vocab())


# rows


def _stream(corpus: Corpus, codec: TextCodec, mixture: Mixture | None = None) -> RowStream:
    return RowStream(corpus.train, codec, mixture or Mixture(), tokens=512, seed=3)


def test_the_stream_goes_on_from_any_position(corpus: Corpus, codec: TextCodec) -> None:
    whole = _stream(corpus, codec).batches(Position())
    seen = [next(whole) for _ in range(120)]  # several pools
    assert seen[-1][0].pool >= 1
    later = _stream(corpus, codec).batches(seen[59][0])
    assert [next(later) for _ in range(60)] == seen[60:]


def test_batches_fit_the_budget_and_the_canvas(corpus: Corpus, codec: TextCodec) -> None:
    stream = _stream(corpus, codec).batches(Position())
    widths = []
    for _ in range(200):
        _, rows, width = next(stream)
        longest = max(len(row) for row in rows)
        assert min(CANVAS, longest + 1) <= width <= CANVAS
        assert len(rows) == 1 or len(rows) * (width + TAGS) <= 512
        widths.append(width - longest - 1)
    assert 0.05 < np.mean([slack > 10 for slack in widths]) < 0.5
    tight = _stream(corpus, codec, Mixture(roomy=0.0)).batches(Position())
    assert all(width - max(map(len, rows)) <= 9 for _, rows, width in (next(tight) for _ in range(200)))


@pytest.mark.parametrize(("hand", "weight"), [(0, 1), (9, 1), (10, 3), (22, 3), (23, 8), (40, 8)])
def test_hands_count_from_their_number_on(hand: int, weight: float) -> None:
    assert Mixture(hands=((23, 8.0), (10, 3.0))).weight(hand) == weight
    assert Mixture(hands=()).weight(hand) == 1


def test_shares_of_the_rows(corpus: Corpus, codec: TextCodec) -> None:
    shares = _stream(corpus, codec).shares
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["chat-real"] == pytest.approx(0.15)
    by_file = Counter(p.source for p in corpus.train)
    each = {source: share / by_file[source] for source, share in shares.items()}
    assert each["story-12"] == pytest.approx(2 * each["story-01"])
    story, tale = shares["story-01"] + shares["story-12"], shares["tale-02"]
    stories = by_file["story-01"] + by_file["story-12"]
    assert story / tale == pytest.approx((stories / by_file["tale-02"]) ** 0.5)


def test_every_text_of_a_source_comes_equally_often(corpus: Corpus, codec: TextCodec) -> None:
    stream = _stream(corpus, codec, Mixture(joined=0.0))
    counts = Counter(stream.passages[i].text for pool in range(4) for i in stream._indices(pool))
    for source in ("story-01", "tale-02"):
        times = {counts[p.text] for p in corpus.train if p.source == source}
        assert max(times) - min(times) <= 1


def test_tags_are_dropped_and_passages_joined_at_the_stated_rates(corpus: Corpus, codec: TextCodec) -> None:
    stream = _stream(corpus, codec).batches(Position())
    rows = [row for _ in range(600) for row in next(stream)[1]]
    own = [row for row in rows if not row.real]
    newline = codec.encode("\n")[0]
    dropped = np.mean([row.genre == codec.genres["none"] for row in own])
    assert dropped == pytest.approx(0.15, abs=0.03)
    assert np.mean([newline in row.text for row in own]) == pytest.approx(0.08, abs=0.02)
    assert not any(newline in row.text for row in rows if row.real)


# masking


def _rows(codec: TextCodec, count: int = 64) -> list[Row]:
    rng = np.random.default_rng(0)
    first = len(SPECIALS)
    return [
        Row(
            codec.genres["story"],
            codec.tones["none"],
            tuple(rng.integers(first, codec.size, 5 + i % 20).tolist()),
            False,
        )
        for i in range(count)
    ]


def test_layout_is_tags_text_eos_padding(codec: TextCodec) -> None:
    row = Row(codec.genres["tale"], codec.tones["positive"], (300, 301), False)
    line = lay_out([row], 5, codec)[0].tolist()
    assert line == [row.genre, row.tone, 300, 301, codec.eos, codec.pad, codec.pad]
    assert lay_out([row], 2, codec)[0].tolist() == [row.genre, row.tone, 300, 301]  # cut: no EOS


def test_masking_hides_only_the_canvas_and_scores_only_what_is_hidden(codec: TextCodec) -> None:
    rows = _rows(codec)
    full = lay_out(rows, 40, codec)
    batch = mask_batch(rows, 40, codec, Masking(leaning=0.0), np.random.default_rng(1))
    inputs = batch.inputs.numpy()
    assert (inputs[:, :TAGS] == full[:, :TAGS]).all()
    hidden = inputs == codec.mask
    assert (inputs[~hidden] == full[~hidden]).all()
    assert hidden.any(axis=1).all()
    assert hidden.reshape(-1)[batch.places.numpy()].all()
    assert (full.reshape(-1)[batch.places.numpy()] == batch.targets.numpy()).all()
    text = hidden & (full != codec.pad)
    assert (batch.targets != codec.pad).sum() == text.sum()  # every hidden text token is scored


def test_rates_are_stratified_and_padding_weighs_a_tenth(codec: TextCodec) -> None:
    rows = _rows(codec, 256)
    rule = Masking(spans=0.0, prompts=0.0, leaning=0.0)
    batch = mask_batch(rows, 100, codec, rule, np.random.default_rng(2))
    share = np.sort((batch.inputs[:, TAGS:] == codec.mask).float().mean(1).numpy())
    assert np.abs(share - (np.arange(256) + 0.5) / 256).max() < 0.12
    pads = batch.targets == codec.pad
    hidden = batch.inputs.numpy() == codec.mask
    hidden_pads = (hidden & (lay_out(rows, 100, codec) == codec.pad)).sum()
    assert float(batch.weights[pads].sum()) == pytest.approx(0.1 * hidden_pads, rel=0.05)
    assert (batch.weights[~pads] == 1).all()


def test_prompts_stay_and_spans_hold_together(codec: TextCodec) -> None:
    rows = _rows(codec, 256)
    prompted = mask_batch(
        rows, 40, codec, Masking(prompts=1.0, leaning=0.0), np.random.default_rng(3)
    ).inputs[:, TAGS:]
    assert (prompted[:, 0] == codec.mask).float().mean() < 0.2
    runs = {}
    for spans in (0.0, 1.0):
        rule = Masking(spans=spans, prompts=0.0, leaning=0.0)
        hidden = mask_batch(rows, 100, codec, rule, np.random.default_rng(4)).inputs[:, TAGS:] == codec.mask
        changes = (hidden[:, 1:] != hidden[:, :-1]).sum()
        runs[spans] = float(hidden.sum() / changes)
    assert runs[1.0] > 3 * runs[0.0]


@pytest.mark.parametrize("edge", [0.0, 16.0])
def test_leaning_rows_are_seen_to_an_edge_and_scored_near_it(codec: TextCodec, edge: float) -> None:
    rows, width = _rows(codec, 256), 40
    rule = Masking(prompts=0.0, leaning=1.0, edge=edge, reach=5, anchored=0.0)
    batch = mask_batch(rows, width, codec, rule, np.random.default_rng(6))
    hidden = batch.inputs[:, TAGS:].numpy() == codec.mask
    ragged = width - hidden.argmax(axis=1) - hidden.sum(axis=1)  # tokens seen to the right of the first hole
    assert (ragged == 0).all() if edge == 0 else (ragged > 0).mean() > 0.3 and ragged.max() < edge
    assert np.abs(np.sort(hidden.mean(1)) - (np.arange(256) + 0.5) / 256).max() < 0.2
    scored = np.zeros(batch.inputs.shape, bool)
    scored.reshape(-1)[batch.places.numpy()] = True
    text = hidden & (lay_out(rows, width, codec)[:, TAGS:] != codec.pad)
    assert (scored[:, TAGS:] & text == text & (hidden.cumsum(1) <= 5)).all()


def test_the_loss_is_the_weighted_cross_entropy_of_the_full_model(codec: TextCodec) -> None:
    model = fresh(codec, config_for(codec, layers=1, width=16, heads=2, inner=32))
    batch = mask_batch(_rows(codec, 8), 30, codec, Masking(), np.random.default_rng(5))
    logits = model(input_ids=batch.inputs).logits.flatten(0, 1)[batch.places]
    each = F.cross_entropy(logits, batch.targets, reduction="none")
    expected = (each * batch.weights).sum() / batch.weights.sum()
    torch.testing.assert_close(loss_of(model, batch), expected)


def test_anchored_tokens_are_seen_from_the_start(codec: TextCodec) -> None:
    rows, width = _rows(codec, 256), 40
    rule = Masking(prompts=0.0, leaning=1.0, edge=0.0, anchored=0.5)
    hidden = mask_batch(rows, width, codec, rule, np.random.default_rng(6)).inputs[:, TAGS:] == codec.mask
    first = hidden.int().argmax(1)
    behind = torch.arange(width) > first[:, None]
    seen = (behind & ~hidden).sum(1) / behind.sum(1).clamp_min(1)  # share of the rows' tails that stands
    assert 0.25 < float((seen > 0).float().mean()) < 0.5
    assert float(seen.mean()) == pytest.approx(0.5 / 8, rel=0.35)


@pytest.mark.parametrize(("edge", "anchored"), [(0.0, 0.0), (16.0, 0.0), (0.0, 1.0), (16.0, 0.4)])
def test_two_streams_predict_every_token_once_from_what_comes_before_it(
    codec: TextCodec, edge: float, anchored: float
) -> None:
    rows, width = _rows(codec, 6), 24
    rule = Masking(edge=edge, pad_kept=1.0, anchored=anchored)
    batch = stream_batch(rows, width, codec, rule, np.random.default_rng(7))
    assert batch.inputs.shape == (6, TAGS + 2 * width)
    assert (batch.inputs[:, TAGS + width :] == codec.mask).all()
    assert torch.equal(batch.targets.reshape(6, width), batch.inputs[:, TAGS : TAGS + width])
    model = fresh(codec, config_for(codec, layers=2, width=16, heads=2, inner=32)).eval().double()
    model.set_attn_implementation("eager")
    assert batch.seen is not None
    before = batch.seen[:, TAGS + width :, TAGS : TAGS + width]  # [B, place, token]
    ranks = before.sum(-1)
    assert torch.equal(ranks.sort(-1).values, torch.arange(width).expand(6, -1))  # an order in each row
    assert torch.equal(ranks, torch.arange(width).expand(6, -1)) == (edge == anchored == 0)
    if anchored == 0:
        assert (ranks - torch.arange(width)).abs().max() <= edge
    elif edge == 0:  # an anchored place comes before some place on its left, and those keep their order
        early = (ranks < torch.arange(width)).float().mean()
        assert 0 < float(early) < 0.25

    def each(
        cls: torch.nn.Module, hidden: torch.Tensor, targets: torch.Tensor, _: torch.Tensor
    ) -> torch.Tensor:
        return F.cross_entropy(cls(hidden), targets, reduction="none").reshape(6, width)

    def losses(inputs: torch.Tensor) -> torch.Tensor:
        return loss_of(model, dataclasses.replace(batch, inputs=inputs), each)

    with torch.no_grad():
        plain = losses(batch.inputs)
        token = 5
        other = batch.inputs.clone()
        other[:, TAGS + token] = len(SPECIALS) + (other[:, TAGS + token] + 7) % 200
        moved = losses(other) != plain
    assert torch.equal(moved, before[:, :, token])  # it changes what comes after it in the row's order, alone


# schedule


def test_the_rate_warms_up_stays_and_decays() -> None:
    budget = Budget.steps(100)
    rate = Rate(1.0, warmup=10)
    values = [rate.at(step, budget, step) for step in range(101)]
    assert values[0] == pytest.approx(0.1)
    assert values[10:80] == [1.0] * 70
    assert all(a > b for a, b in pairwise(values[80:]))
    assert values[100] == pytest.approx(0.05)


def test_a_file_makes_the_run_decay_now(tmp_path: Path) -> None:
    budget = Budget.until(10_000.0, now=0.0)
    assert budget.hurried(tmp_path, now=100.0) == budget
    (tmp_path / "decay-now").write_text("5\n")
    hurried = budget.hurried(tmp_path, now=100.0)
    assert (hurried.end, hurried.decay) == (400.0, 300.0)
    assert not (tmp_path / "decay-now").exists()


@pytest.mark.parametrize(
    "make", [lambda: Budget.minutes(0, now=0), lambda: Budget.until(1, now=2), lambda: Budget.steps(0)]
)
def test_empty_budgets_are_refused(make: Callable[[], Budget]) -> None:
    with pytest.raises(ValueError, match="give"):
        make()


# runs


def test_a_resumed_run_equals_an_uninterrupted_one(folder: Path, tmp_path: Path) -> None:
    whole = train(folder, tmp_path / "whole", budget=Budget.steps(12), settings=TINY)
    asked = iter(range(100))
    halted = train(
        folder, tmp_path / "halves", budget=Budget.steps(12), settings=TINY, stop=lambda: next(asked) >= 5
    )
    assert halted is None
    assert read_state(tmp_path / "halves" / LAST)["step"] == 5
    train(folder, tmp_path / "halves", budget=Budget.steps(12), settings=TINY)
    one, two = (read_state(tmp_path / name / LAST) for name in ("whole", "halves"))
    assert one["step"] == two["step"] == 12
    assert one["position"] == two["position"]
    for name, value in one["model"].items():
        assert torch.equal(value, two["model"][name]), name
    for mean, other in zip(one["ema"], two["ema"], strict=True):
        assert torch.equal(mean, other)
    assert whole is not None
    assert (whole / "redraft.json").exists()


def test_a_run_trains_where_it_is_told_and_goes_on_elsewhere(
    folder: Path, tmp_path: Path, device: torch.device
) -> None:
    """Three steps on the device, three more on the CPU, as six on the CPU (but for the order of sums on a GPU)."""
    there = dataclasses.replace(TINY, device=str(device))
    out, asked = tmp_path / "run", iter(range(100))
    halted = train(folder, out, budget=Budget.steps(6), settings=there, stop=lambda: next(asked) >= 3)
    assert halted is None
    assert train(folder, out, budget=Budget.steps(6), settings=TINY) is not None
    train(folder, tmp_path / "whole", budget=Budget.steps(6), settings=TINY)
    one, two = (read_state(path / LAST) for path in (out, tmp_path / "whole"))
    assert one["step"] == two["step"] == 6
    for name, value in two["model"].items():
        torch.testing.assert_close(one["model"][name], value, atol=1e-4, rtol=1e-3)
    assert train(folder, out, budget=Budget.steps(7), settings=there) is not None
    assert read_state(out / LAST)["step"] == 7


def test_a_device_that_is_not_there_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedModelError, match="'cuda:99' is not to be had here"):
        train(
            folder,
            tmp_path / "run",
            budget=Budget.steps(1),
            settings=dataclasses.replace(TINY, device="cuda:99"),
        )
    assert not (tmp_path / "run").exists()


def test_a_release_loads_in_plain_transformers_and_can_be_fine_tuned(
    codec: TextCodec, folder: Path, tmp_path: Path
) -> None:
    model = fresh(codec, config_for(codec, layers=1, width=16, heads=2, inner=32)).eval()
    release = export(model, codec, tmp_path / "release")
    loaded, report = BertForMaskedLM.from_pretrained(release, dtype=torch.float32, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ids = torch.tensor(lay_out(_rows(codec, 4), 20, codec))
    torch.testing.assert_close(loaded.eval()(ids).logits, model(ids).logits, atol=2e-3, rtol=2e-3)
    card = json.loads((release / "redraft.json").read_text())
    assert card["special"] == {"pad": codec.pad, "eos": codec.eos, "mask": codec.mask}
    assert {i for part in ("genres", "tones", "special") for i in card[part].values()} == codec.special
    seen: list[Progress] = []
    tuned = train(
        folder, tmp_path / "tuned", budget=Budget.steps(2), start_from=release, progress=seen.append
    )
    assert tuned is not None
    assert (tuned / "tokenizer.json").read_bytes() == (release / "tokenizer.json").read_bytes()
    assert seen[-1].raw is not None


def _all(corpus: Corpus) -> list[Passage]:
    return [*corpus.train, *corpus.held]
