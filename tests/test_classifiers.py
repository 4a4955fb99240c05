"""Classifiers: known laws on tiny data, files, binding to other vocabularies, and the shipped data."""

from __future__ import annotations

import itertools
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.classifiers import (
    SHIPPED,
    Classifier,
    InvalidClassifierError,
    TokenScores,
    WordScores,
    measure,
    read_corpus,
    shipped,
    train_shipped,
)
from redraft.classifiers.linear import Linear
from redraft.classifiers.measure import figures
from redraft.classifiers.storage import write_table
from redraft.classifiers.training import examples
from redraft.denoiser import Vocabulary
from redraft.denoiser.models.embedded import HOME

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
SAD, GLAD, BOTH = ("grey", "cold", "lost"), ("warm", "sunny", "found"), ("the", "day")
WORDS = (*SAD, *GLAD, *BOTH)


def spaced(words: tuple[str, ...], *extra: bytes | None) -> Vocabulary:
    """Every word with a leading space, then `extra`; texts are split by longest match."""
    table: list[bytes | None] = [*(f" {word}".encode() for word in words), *extra]

    def encode(text: str) -> list[int]:
        raw, ids = text.encode(), []
        while raw:
            fits = [k for k, piece in enumerate(table) if piece and raw.startswith(piece)]
            if not fits:
                break
            ids.append(max(fits, key=lambda k: len(table[k] or b"")))
            raw = raw[len(table[ids[-1]] or b"") :]
        return ids

    return Vocabulary(table, encode)


VOCABULARY = spaced(WORDS, None)


def disjoint(seed: int, n: int = 120) -> tuple[list[str], list[str]]:
    """Texts of two labels that share only the words of BOTH."""
    draw = random.Random(seed)
    texts, labels = [], []
    for k in range(n):
        own = GLAD if k % 2 else SAD
        words = [draw.choice(own) for _ in range(2)] + [draw.choice(BOTH) for _ in range(2)]
        texts.append("".join(f" {word}" for word in words))
        labels.append("glad" if k % 2 else "sad")
    return texts, labels


def token_scores(seed: int = 0) -> TokenScores:
    return TokenScores("mood", ("sad", "glad"), vocabulary=VOCABULARY).fit(*disjoint(seed))


def word_scores(seed: int = 0) -> WordScores:
    return WordScores("mood", ("sad", "glad")).fit(*disjoint(seed))


FITTED: list[Linear] = [token_scores(), word_scores()]
each = pytest.mark.parametrize("fitted", FITTED, ids=lambda c: c.kind)


@given(st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
def test_disjoint_classes_give_the_signs(seed: int) -> None:
    scores = token_scores(seed)
    vector = dict(zip((*WORDS, None), scores.vector(VOCABULARY), strict=True))
    assert all(vector[word] < 0 for word in SAD)
    assert all(vector[word] > 0 for word in GLAD)
    assert all(abs(vector[word]) < min(vector[glad] for glad in GLAD) for word in BOTH)
    assert vector[None] == 0.0
    np.testing.assert_array_equal(scores.vector(VOCABULARY, "sad"), -scores.vector(VOCABULARY, "glad"))


def test_the_vector_has_mean_zero_over_the_training_tokens() -> None:
    texts, labels = disjoint(3)
    texts, labels = (
        texts[:90] + [t for t, m in zip(texts, labels, strict=True) if m == "glad"],
        labels[:90] + ["glad"] * 60,
    )
    scores = TokenScores("mood", ("sad", "glad"), vocabulary=VOCABULARY).fit(texts, labels)
    vector = scores.vector(VOCABULARY)
    counts = np.bincount(
        [token for text in texts for token in VOCABULARY.encode(text)], minlength=len(VOCABULARY)
    )
    assert scores.centre != 0.0
    assert abs(float(counts @ vector) / counts.sum()) < 1e-6


@given(st.floats(-4, 4), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_adding_the_vector_is_the_exact_tilt(scale: float, seed: int) -> None:
    """Enumerated p(x) exp(s S(x)) / Z against the product of tilted positions."""
    vector = FITTED[0].vector(VOCABULARY).astype(np.float64)  # type: ignore[attr-defined]
    length, size = 3, len(VOCABULARY)
    log_p = np.log(np.random.default_rng(seed).dirichlet(np.full(size, 0.3), size=length) + 1e-12)
    tilted = log_p + scale * vector
    tilted -= np.logaddexp.reduce(tilted, axis=1, keepdims=True)
    words = list(itertools.product(range(size), repeat=length))
    joint = np.array(
        [sum(log_p[i, v] for i, v in enumerate(x)) + scale * sum(vector[v] for v in x) for x in words]
    )
    joint -= np.logaddexp.reduce(joint)
    product = np.array([sum(tilted[i, v] for i, v in enumerate(x)) for x in words])
    np.testing.assert_allclose(np.exp(joint), np.exp(product), atol=1e-12)


@each
def test_fits_the_protocol_and_its_probabilities(fitted: Linear) -> None:
    assert isinstance(fitted, Classifier)
    texts, labels = disjoint(7)
    scores = fitted.score(texts)
    assert scores.shape == (len(texts), 2)
    np.testing.assert_allclose(scores.sum(axis=1), 1.0, atol=1e-12)
    assert measure(fitted, texts, labels).accuracy == 1.0
    logits = fitted.logits(texts)
    np.testing.assert_allclose(scores[:, 1], 1 / (1 + np.exp(-logits)), atol=1e-12)
    assert fitted.logits([""])[0] == fitted.intercept


def test_fitting_is_deterministic() -> None:
    assert token_scores(5) == token_scores(5)
    assert word_scores(5) == word_scores(5)


def test_probabilities_are_calibrated_where_the_law_is_known() -> None:
    """A word that stands in 80 % of the glad texts and 20 % of the sad ones: P(glad | word) = 0.8."""
    rows = [("glad", k % 5 != 0) for k in range(500)] + [("sad", k % 5 == 0) for k in range(500)]
    judge = WordScores("mood", ("sad", "glad")).fit(
        ["sun" if has else "day" for _, has in rows], [r[0] for r in rows]
    )
    np.testing.assert_allclose(judge.score(["sun", "day"])[:, 1], [0.8, 0.2], atol=0.01)


def test_pieces_of_words_say_nothing() -> None:
    letters = Vocabulary([bytes([b]) for b in range(256)], lambda text: list(text.encode()))
    texts, labels = disjoint(1)
    assert TokenScores("mood", ("sad", "glad"), vocabulary=letters).keys(" the warm day!") == {b" ", b"!"}
    blind = TokenScores("mood", ("sad", "glad"), vocabulary=letters).fit(texts, labels)
    assert not blind.vector(letters).any()
    assert blind.spread > 0


def test_rare_words_are_left_out() -> None:
    texts, labels = disjoint(1)
    assert (
        b"once"
        not in WordScores("mood", ("sad", "glad"))
        .fit([*texts, "once", "once"], [*labels, "sad", "sad"])
        .table
    )


def test_groups_stay_whole_in_cross_validation() -> None:
    """A word that only tells who writes is worth little when writers are held out."""
    draw = random.Random(0)
    texts, labels, hands = [], [], []
    for hand in range(8):
        for _ in range(40):
            glad = draw.random() < (0.9 if hand % 2 else 0.1)
            texts.append(f"hand{'abcdefgh'[hand]} {'sun' if glad == (draw.random() < 0.8) else 'rain'}")
            labels.append("glad" if glad else "sad")
            hands.append(str(hand))
    fit = WordScores("mood", ("sad", "glad")).fit
    alone, grouped = fit(texts, labels), fit(texts, labels, hands)
    assert abs(grouped.table[b"handb"]) < abs(alone.table[b"handb"])


@pytest.mark.parametrize(
    ("texts", "labels", "says"),
    [
        (["a"] * 9, ["glad"] * 9, "both labels"),
        (["a"] * 9, ["merry"] * 9, "merry"),
        (["a"] * 9, ["glad"] * 8, "9 texts, 8 labels"),
        (["a", "b"], ["sad", "glad"], "give more texts"),
    ],
)
def test_fit_refuses(texts: list[str], labels: list[str], says: str) -> None:
    with pytest.raises(InvalidClassifierError, match=says):
        WordScores("mood", ("sad", "glad")).fit(texts, labels)


def test_unknown_labels_are_refused() -> None:
    with pytest.raises(InvalidClassifierError, match="no label 'merry'"):
        token_scores().vector(VOCABULARY, "merry")
    with pytest.raises(InvalidClassifierError, match="two different names"):
        WordScores("mood", ("sad", "sad"))
    with pytest.raises(InvalidClassifierError, match="no vocabulary"):
        TokenScores("mood").score(["a"])


# ---- files ----------------------------------------------------------------------------------------------


@each
def test_save_and_load_round_trip(fitted: Linear, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    again = type(fitted).load(tmp_path)
    assert again == fitted
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors"]
    if isinstance(again, TokenScores):
        again = again.bind(VOCABULARY)
    texts, _ = disjoint(2)
    np.testing.assert_array_equal(again.score(texts), fitted.score(texts))


@each
@pytest.mark.parametrize(
    "change", [{"format": 2}, {"kind": "other"}, {"labels": ["one"]}, {"intercept": "x"}]
)
def test_load_refuses_another_format(fitted: Linear, change: dict[str, object], tmp_path: Path) -> None:
    fitted.save(tmp_path)
    path = tmp_path / f"{fitted.kind}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InvalidClassifierError, match=path.name):
        type(fitted).load(tmp_path)


@each
def test_load_refuses_broken_files(fitted: Linear, tmp_path: Path) -> None:
    with pytest.raises(InvalidClassifierError, match="cannot be read"):
        type(fitted).load(tmp_path)
    fitted.save(tmp_path)
    numbers = tmp_path / f"{fitted.kind}.safetensors"
    whole = numbers.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"\x80\x04pickle", whole[:8] + b"!" + whole[9:]):
        numbers.write_bytes(broken)
        with pytest.raises(InvalidClassifierError, match="cannot be read"):
            type(fitted).load(tmp_path)
    numbers.write_bytes(whole)
    (tmp_path / f"{fitted.kind}.json").write_text("{")
    with pytest.raises(InvalidClassifierError, match="cannot be read"):
        type(fitted).load(tmp_path)


@each
def test_load_refuses_weights_that_are_not_finite(fitted: Linear, tmp_path: Path) -> None:
    write_table(tmp_path, fitted.kind, fitted.meta(), dict(fitted.table) | {b"bad": math.nan})
    with pytest.raises(InvalidClassifierError, match="do not fit together"):
        type(fitted).load(tmp_path)


# ---- other vocabularies ---------------------------------------------------------------------------------


def scored(table: dict[bytes, float]) -> TokenScores:
    return TokenScores("mood", ("sad", "glad"), table, vocabulary=VOCABULARY)


def test_binding_takes_bytes_then_words_then_nothing() -> None:
    scores = scored(
        {b" glad": 1.0, b" Glad": 3.0, b"ness": -2.0, b" less": 4.0, b"Only": 5.0, b" sad": -1.0, b"sad": 7.0}
    )
    expected: dict[bytes | None, float] = {b" glad": 1, b" Glad": 3}  # the same bytes
    expected |= {b" GLAD": 1, b"Glad": 1, b" only": 5, b" SAD": -1}  # the plainest spelling of the same word
    expected |= {b"ness": -2, b" ness": -2, b"less": 0}  # what continues a word takes no word's weight
    expected |= {b" other": 0, b"\xc3": 0, None: 0}
    vector = scores.vector(Vocabulary(list(expected), lambda text: []))
    np.testing.assert_array_equal(vector, np.array(list(expected.values()), dtype=np.float32))


def test_binding_to_a_vocabulary_that_does_not_mark_word_starts() -> None:
    vector = scored({b" glad": 1.0, b" sad": -1.0}).vector(
        Vocabulary([b"glad", b"Sad", b" "], lambda text: [])
    )
    np.testing.assert_array_equal(vector, np.array([1, -1, 0], dtype=np.float32))


def test_binding_to_a_word_piece_vocabulary() -> None:
    pieces = ["[MASK]", "glad", "sad", "##glad", "##ness"]
    spec = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: k for k, piece in enumerate(pieces)}, unk_token="[MASK]")
    )
    spec.decoder = tokenizers.decoders.WordPiece()
    spec.add_special_tokens(["[MASK]"])
    vocabulary = Vocabulary.from_tokenizer(spec, mask_id=0)
    vector = scored({b" glad": 1.0, b" Sad": -1.0, b"ness": 0.5}).vector(vocabulary)
    np.testing.assert_array_equal(vector, np.array([0, 1, -1, 0, 0.5], dtype=np.float32))


# ---- the judge's evidence -------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([*WORDS, "not", "Warm", "!"]), max_size=12))
@settings(max_examples=50, deadline=None)
def test_evidence_adds_up_to_the_logit(words: list[str]) -> None:
    judge = FITTED[1]
    assert isinstance(judge, WordScores)
    text = " ".join(words)
    evidence = judge.evidence(text)
    assert [text[e.start : e.end] for e in evidence] == words
    assert math.isclose(
        sum(e.nats for e in evidence) + judge.intercept, judge.logits([text])[0], abs_tol=1e-9
    )


# ---- figures --------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=30))
def test_figures_against_counting(rows: list[tuple[int, bool]]) -> None:
    scores, truth = np.array([s / 4 for s, _ in rows]), np.array([t for _, t in rows])
    if truth.all() or not truth.any():
        return
    found = figures(scores, truth, 0.5)
    pairs = [(a > b) + (a == b) / 2 for a in scores[truth] for b in scores[~truth]]
    assert math.isclose(found.auc, sum(pairs) / len(pairs), abs_tol=6e-5)
    assert math.isclose(found.accuracy, np.mean((scores >= 0.5) == truth), abs_tol=6e-5)


# ---- corpus and shipped data ----------------------------------------------------------------------------


def test_the_corpus_reader(tmp_path: Path) -> None:
    (tmp_path / "tale-02.txt").write_text("+ Once upon a time.\n0 A day.\n")
    assert [(p.genre, p.hand, p.tone, p.text) for p in read_corpus(tmp_path)] == [
        ("tale", 2, "+", "Once upon a time."),
        ("tale", 2, "0", "A day."),
    ]
    (tmp_path / "tale-03.txt").write_text("no mark\n")
    with pytest.raises(InvalidClassifierError, match=r"tale-03\.txt line 1"):
        read_corpus(tmp_path)
    (tmp_path / "tale-03.txt").rename(tmp_path / "tale-x.txt")
    with pytest.raises(InvalidClassifierError, match="GENRE-HAND"):
        read_corpus(tmp_path)
    with pytest.raises(InvalidClassifierError, match="no file"):
        read_corpus(tmp_path / "none")


def test_training_what_ships_is_deterministic(tmp_path: Path) -> None:
    for hand, genres in ((1, "formal casual"), (2, "tale plain"), (11, "formal casual"), (12, "tale plain")):
        for genre in genres.split():
            texts, labels = disjoint(hand, 60)
            lines = [
                f"{'+' if label == 'glad' else '-'} {text.strip()} {genre}"
                for text, label in zip(texts, labels, strict=True)
            ]
            (tmp_path / f"{genre}-{hand:02}.txt").write_text("\n".join(lines))
    vocabulary = spaced(WORDS, *(bytes([b]) for b in range(256)))
    cards = [train_shipped(tmp_path, tmp_path / out, vocabulary) for out in ("a", "b")]
    assert cards[0] == cards[1]
    assert sorted(cards[0]) == sorted(SHIPPED)
    for path in (tmp_path / "a").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_pairs_share_no_writer(name: str) -> None:
    card = shipped(name).card
    tokens, judge = card["token-scores"], card["words"]
    assert not set(tokens["hands"]) & set(judge["hands"])
    assert tokens["held_out_hands"] == judge["hands"]
    assert judge["held_out_hands"] == tokens["hands"]
    assert card["licence"] == "CC0-1.0"
    assert shipped(name).tokens.labels == shipped(name).judge.labels == SHIPPED[name]


def lower_bound(right: np.ndarray, truth: np.ndarray, doubt: float = 1e-3) -> float:
    """Balanced accuracy that the texts support with probability 1 - doubt (Hoeffding, for each label)."""
    sides = [right[truth], right[~truth]]
    return float(np.mean([side.mean() - math.sqrt(math.log(2 / doubt) / (2 * len(side))) for side in sides]))


@pytest.mark.long
@pytest.mark.parametrize("judge", [True, False], ids=["words", "token-scores"])
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_accuracy_on_unseen_writers(name: str, judge: bool) -> None:
    pair = shipped(name)
    classifier: Linear = pair.judge
    if not judge:
        tokenizer = tokenizers.Tokenizer.from_file(str(HOME / "tokenizer.json"))
        classifier = pair.tokens.bind(Vocabulary.from_tokenizer(tokenizer))
    texts, labels = examples(read_corpus(CORPUS), name, judge=not judge)
    truth = np.array([label == classifier.labels[1] for label in labels])
    right = (classifier.score(texts)[:, 1] >= 0.5) == truth
    held_out = pair.card[classifier.kind]["held_out"]
    assert held_out["texts"] == len(texts), "the corpus has changed: run tools/train_classifiers.py"
    assert math.isclose(held_out["accuracy"], right.mean(), abs_tol=1e-4)
    assert lower_bound(right, truth) > (0.8 if judge else 0.7)


def test_loading_and_scoring_need_no_training_library() -> None:
    code = (
        "import sys; from redraft.classifiers import shipped\n"
        "shipped('sentiment').judge.score(['a fine day'])\n"
        "assert not {'sklearn', 'scipy'} & set(sys.modules), 'imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
