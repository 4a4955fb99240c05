"""Masked language models by folder: tiny random ones, byte-level and WordPiece; an autoregressive one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_vocabulary import byte_level, word_piece
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from redraft.denoiser import Canvas, UnsupportedModelError, UnwritableTextError, load
from redraft.guidance import Forbid, Keywords, Words

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roberta")
    tokenizer = byte_level()
    tokenizer.add_special_tokens(["<s>", "</s>", "<pad>"])
    size = tokenizer.get_vocab_size()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, mask_token="<mask>", cls_token="<s>", sep_token="</s>", pad_token="<pad>"
    ).save_pretrained(folder)
    torch.manual_seed(1)
    config = RobertaConfig(vocab_size=size + 3, max_position_embeddings=64, pad_token_id=1, **SMALL)
    RobertaForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = word_piece()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[PAD]"])
    size = tokenizer.get_vocab_size()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        mask_token="[MASK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
    ).save_pretrained(folder)
    torch.manual_seed(2)
    BertForMaskedLM(BertConfig(vocab_size=size, max_position_embeddings=64, **SMALL)).save_pretrained(folder)
    return folder


def test_byte_level_model_writes_exactly_its_canvas(roberta: Path) -> None:
    denoiser = load(roberta)
    assert denoiser.vocabulary.eos_id is None
    guides = [Keywords("storm", "old man"), Forbid("the")]
    for result in denoiser.write(guides, samples=3, seed=1, steps=5, length=40, prompt="<mask> the"):
        assert result.satisfied, result.text
        assert len([t for t in result.tokens if denoiser.vocabulary.token_bytes[t]]) == 40
    with pytest.raises(UnsupportedModelError, match="neither"):
        load(str(roberta / "missing"))


def test_logits_are_those_of_the_canvas_positions(roberta: Path) -> None:
    denoiser = load(roberta)
    canvas = Canvas.blank(2, 7, denoiser.noise.fill)
    prompt = denoiser.prepare("It was", 2)
    theirs = RobertaForMaskedLM.from_pretrained(roberta).eval()
    vocabulary = denoiser.vocabulary
    tokenizer = PreTrainedTokenizerFast.from_pretrained(roberta)
    row = [
        tokenizer.cls_token_id,
        *vocabulary.encode("It was"),
        *[denoiser.noise.fill] * 7,
        tokenizer.sep_token_id,
    ]
    with torch.inference_mode():
        want = theirs(torch.tensor([row])).logits[0, 1 + len(vocabulary.encode("It was")) : -1]
    got = denoiser(canvas, prompt)
    kept = got[0].isfinite()
    torch.testing.assert_close(got[0][kept], want[:, : got.shape[-1]][kept])
    assert not got[..., vocabulary.mask_id].isfinite().any()
    assert denoiser.longest(prompt) == 64 - 2 - 2 - len(vocabulary.encode("It was"))


def test_word_piece_model_writes_words(bert: Path) -> None:
    denoiser = load(bert)
    (result,) = denoiser.write([Keywords("old"), Words(2, 12)], seed=3, steps=4, length=12)
    assert result.satisfied, result.text
    assert not result.text.startswith(" ")
    with pytest.raises(UnwritableTextError, match="cannot write"):
        denoiser.write(Keywords("Ωmega"), seed=3)


def test_autoregressive_models_are_refused(tmp_path: Path) -> None:
    GPT2Config(n_embd=8, n_layer=1, n_head=1, architectures=["GPT2LMHeadModel"]).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match="is a 'gpt2' model"):
        load(tmp_path)
