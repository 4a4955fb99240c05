"""Vocabularies: exact bytes, exact decoding, refusal of what cannot be exact."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from redraft.denoiser import UnsupportedModelError, UnwritableTextError, Vocabulary

TEXTS = [
    "the old man went home.",
    "The storm hit the lighthouse!",
    "It was dark, and they saw it.",
    "don't",
    "a b c 1 2 3",
] * 8
LETTERS = "".join(sorted(set("".join(TEXTS)) - {" "}))


def byte_level() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(vocab_size=320, special_tokens=["<mask>", "<eos>"], initial_alphabet=alphabet),
    )
    return tokenizer


def sentence_piece() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=400, special_tokens=special[:2]))
    state = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    state.add_tokens(special[2:])
    return state


def word_piece() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]", "[MASK]"])
    )
    return tokenizer


BYTES = Vocabulary.from_tokenizer(byte_level(), mask_id=0, eos_id=1)


@given(st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_unicode_goes_through_byte_level(text: str) -> None:
    ids = BYTES.encode(text)
    assert BYTES.decode(ids) == text
    assert b"".join(BYTES.token_bytes[token] or b"" for token in ids) == text.encode()


def test_markers_in_a_text_are_text() -> None:
    ids = BYTES.encode("a <mask> and <eos>")
    assert BYTES.decode(ids) == "a <mask> and <eos>"
    assert not {0, 1} & set(ids)
    assert BYTES.token_bytes[0] is None


@given(st.text(alphabet=LETTERS + " éqß😀\n", max_size=20))
@settings(max_examples=200, deadline=None)
def test_sentence_piece_gives_the_text_back_or_says_what_it_cannot_write(text: str) -> None:
    vocabulary = Vocabulary.from_tokenizer(sentence_piece_once(), mask_id=1)
    writable = set(text) <= set(LETTERS + " ")
    if writable:
        assert vocabulary.decode(vocabulary.encode(text)) == text
    else:
        with pytest.raises(UnwritableTextError, match="cannot write"):
            vocabulary.encode(text)


_CACHE: dict[str, tokenizers.Tokenizer] = {}


def sentence_piece_once() -> tokenizers.Tokenizer:
    return _CACHE.setdefault("sp", sentence_piece())


def test_word_piece_is_wrapped() -> None:
    vocabulary = Vocabulary.from_tokenizer(word_piece(), mask_id=1)
    assert vocabulary.prefix == b" "
    assert vocabulary.decode(vocabulary.encode("the old man")) == "the old man"
    with pytest.raises(UnwritableTextError, match="cannot write 'T'"):
        vocabulary.encode("The old man")
    with pytest.raises(UnwritableTextError, match="cannot write"):
        vocabulary.encode("the  old")


def test_covering_names_the_tokens_of_a_span() -> None:
    text = "The storm hit — é the lighthouse!"
    ids = BYTES.encode(text)
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            own = BYTES.covering(ids, text, start, end)
            raw = b"".join(BYTES.token_bytes[ids[k]] or b"" for k in own)
            assert text[start:end].encode() in raw
            assert own == list(range(own[0], own[-1] + 1))


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(UnwritableTextError, match="character 2 of the text is half a surrogate pair"):
        BYTES.encode("ab\ud83d")


def test_the_tokenizer_is_left_alone() -> None:
    tokenizer = byte_level()
    before = tokenizer.to_str()
    Vocabulary.from_tokenizer(tokenizer, mask_id=0).encode("<mask>")
    assert tokenizer.to_str() == before
    assert tokenizer.encode("<mask>").ids == [0]


def test_what_cannot_be_exact_is_refused() -> None:
    tokenizer = tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    with pytest.raises(UnsupportedModelError, match="does not say the bytes"):
        Vocabulary.from_tokenizer(tokenizer)
    with pytest.raises(UnsupportedModelError, match="mask id 9 lies outside"):
        Vocabulary([b"a"], lambda text: [0], mask_id=9)


def test_keys_tell_vocabularies_apart() -> None:
    first = Vocabulary([b"a", b"b", None], lambda t: [0], mask_id=2)
    assert first.key == Vocabulary([b"a", b"b", None], lambda t: [1], mask_id=2).key
    assert first.key != Vocabulary([b"a", b"c", None], lambda t: [0], mask_id=2).key
    assert first.key != Vocabulary([b"ab", None, None], lambda t: [0], mask_id=2).key
