"""Tiny random models saved to folders: native classes of `transformers`, and stand-ins for remote-code families.

A stand-in is no copy of a family's network. It reproduces how the network is called: argument names, the object
that comes back, the shift of the logits, what it does to padding, and what its code lacks under `transformers` 5.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import torch
from test_vocabulary import byte_level, word_piece
from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    EuroBertConfig,
    FNetConfig,
    GPT2Config,
    GPT2LMHeadModel,
    ModernBertConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

WIDTH, POSITIONS = 16, 96
SPECIAL = {
    "mask_token": "<mask>",
    "eos_token": "<eos>",
    "bos_token": "<s>",
    "pad_token": "<pad>",
}
CHAT = (
    "{{ '<s>' }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

BODY = """
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast, MaskedLMOutput


class Body(nn.Module):
    def __init__(self, size, width=16, heads=2, positions=96):
        super().__init__()
        self.heads = heads
        self.embed, self.place = nn.Embedding(size, width), nn.Embedding(positions, width)
        self.level = nn.Linear(1, width)
        self.mix = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.head = nn.Linear(width, size)

    def forward(self, ids, mask=None, position_ids=None, level=None):
        batch, length = ids.shape
        if position_ids is None:
            position_ids = torch.arange(length, device=ids.device)
        hidden = self.embed(ids) + self.place(position_ids)
        if level is not None:
            hidden = hidden + self.level(level[:, None, None].to(hidden.dtype))
        for mix, out in zip(self.mix, self.out):
            q, k, v = mix(hidden).reshape(batch, length, self.heads, -1).transpose(1, 2).chunk(3, -1)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            hidden = hidden + torch.tanh(out(seen.transpose(1, 2).reshape(batch, length, -1)))
        return self.head(hidden) * 4
"""

LLADA = (
    BODY
    + """

class LLaDAConfig(PretrainedConfig):
    model_type = "llada"

    def __init__(self, vocab_size=320, max_sequence_length=96, mask_token_id=0, **more):
        self.vocab_size, self.max_sequence_length, self.mask_token_id = vocab_size, max_sequence_length, mask_token_id
        super().__init__(**more)


class LLaDAModelLM(PreTrainedModel):  # as code for transformers 4: no post_init, tie_weights without arguments
    config_class = LLaDAConfig
    base_model_prefix = "model"

    def __init__(self, config, model=None, init_params=False):
        super().__init__(config)
        self.model = Body(config.vocab_size)

    def forward(self, input_ids=None, inputs_embeds=None, attention_mask=None, attention_bias=None,
                past_key_values=None, labels=None, use_cache=None, output_attentions=None,
                output_hidden_states=None, return_dict=None, cache_position=None):
        use_cache = self.config.use_cache if use_cache is None else use_cache
        return_dict = self.config.use_return_dict if return_dict is None else return_dict
        assert return_dict and not use_cache
        return CausalLMOutputWithPast(logits=self.model(input_ids))  # the attention mask is ignored

    def tie_weights(self):
        pass
"""
)

DREAM = (
    BODY
    + """

class DreamConfig(PretrainedConfig):
    model_type = "Dream"

    def __init__(self, vocab_size=320, max_position_embeddings=96, mask_token_id=0, **more):
        self.vocab_size, self.max_position_embeddings = vocab_size, max_position_embeddings
        self.mask_token_id = mask_token_id
        super().__init__(**more)


class DreamModel(PreTrainedModel):
    config_class = DreamConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = Body(config.vocab_size)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None,
                inputs_embeds=None, labels=None, use_cache=None, num_logits_to_keep=0):
        if isinstance(attention_mask, str):
            assert attention_mask == "full" and position_ids is None
            attention_mask = None
        else:
            batch, length = input_ids.shape
            assert attention_mask.dtype == torch.bool and attention_mask.shape == (batch, 1, length, length)
        return MaskedLMOutput(logits=self.model(input_ids, attention_mask, position_ids))
"""
)

MDLM = (
    BODY
    + """

class MDLMConfig(PretrainedConfig):
    model_type = "mdlm"

    def __init__(self, vocab_size=320, model_length=96, time_conditioning=False, **more):
        self.vocab_size, self.model_length, self.time_conditioning = vocab_size, model_length, time_conditioning
        super().__init__(**more)


class MDLM(PreTrainedModel):
    config_class = MDLMConfig

    def __init__(self, config):
        super().__init__(config)
        self.backbone = Body(config.vocab_size)
        self.post_init()

    def forward(self, input_ids=None, timesteps=None, output_hidden_states=None, return_dict=None):
        sigma = timesteps if self.config.time_conditioning else torch.zeros_like(timesteps)
        logits = self.backbone(input_ids, level=sigma)
        return MaskedLMOutput(logits=logits) if return_dict else logits
"""
)


def fast(tokenizer: tokenizers.Tokenizer, folder: Path, *, chat: bool = False, **special: str) -> int:
    """Save a tokenizer for `transformers`; gives the size of its vocabulary."""
    tokenizer.add_special_tokens(
        [*special.values(), "<|im_end|>", "<|user|>", "<|assistant|>"][: None if chat else -3]
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    if chat:
        wrapped.chat_template = CHAT
    wrapped.save_pretrained(folder)
    return int(tokenizer.get_vocab_size())


def masked_lm(config: Callable[..., Any], folder: Path, **sizes: Any) -> Path:
    size = fast(
        byte_level(), folder, mask_token="<mask>", cls_token="<s>", sep_token="</s>", pad_token="<pad>"
    )
    ids = PreTrainedTokenizerFast.from_pretrained(folder)
    if config is RobertaConfig:  # it counts positions behind the padding id
        sizes["max_position_embeddings"] = ids.pad_token_id + 1 + POSITIONS
    own = config(vocab_size=size, pad_token_id=ids.pad_token_id, **sizes)
    _sharp(AutoModelForMaskedLM.from_config(own)).save_pretrained(folder)
    return folder


SMALL = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
ROTARY = SMALL | {"max_position_embeddings": POSITIONS}
ENDS = {"bos_token_id": 2, "eos_token_id": 3}


def bert(folder: Path) -> Path:
    special = {"mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    size = fast(word_piece(), folder, **special)
    _sharp(AutoModelForMaskedLM.from_config(BertConfig(vocab_size=size, **ROTARY))).save_pretrained(folder)
    return folder


def remote(folder: Path, code: str, model_type: str, name: str, auto: str, **values: Any) -> Path:
    """A folder whose network is code in the folder itself, as `trust_remote_code` loads it."""
    size = fast(byte_level(), folder, chat=True, **SPECIAL)
    module = f"modeling_{model_type.lower()}"
    space: dict[str, Any] = {"__name__": module}
    exec(compile(code, module, "exec"), space)
    config_name = next(key for key in space if key.endswith("Config") and key != "PretrainedConfig")
    network = _sharp(space[name](space[config_name](vocab_size=size + 5, **values)))
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    from safetensors.torch import save_file

    save_file(network.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": [name],
        "model_type": model_type,
        "vocab_size": size + 5,
        "auto_map": {"AutoConfig": f"{module}.{config_name}", auto: f"{module}.{name}"},
        **values,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


SLOW = """
import json
from transformers import PreTrainedTokenizer

class DreamTokenizer(PreTrainedTokenizer):
    vocab_files_names = {"vocab_file": "vocab.json", "merges_file": "merges.txt"}

    def __init__(self, vocab_file, merges_file, **more):
        with open(vocab_file, encoding="utf-8") as stream:
            self.encoder = json.load(stream)
        super().__init__(**more)

    @property
    def vocab_size(self):
        return len(self.encoder)

    def get_vocab(self):
        return dict(self.encoder)

    def _tokenize(self, text):
        return list(text)

    def _convert_token_to_id(self, token):
        return self.encoder.get(token)
"""


def slow_tokenizer(folder: Path) -> Path:
    """A tokenizer as Dream's: Python code of its own over vocab.json and merges.txt, and no tokenizer.json."""
    model = json.loads(byte_level().to_str())["model"]
    pieces = {piece: k for k, piece in enumerate(p for p in model["vocab"] if p not in ("<mask>", "<eos>"))}
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]]
    plain = {"special": True, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    marks = ("<|endoftext|>", "<|mask|>", "<|im_end|>")
    config = {
        "tokenizer_class": "DreamTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_dream.DreamTokenizer", None]},
        "added_tokens_decoder": {
            str(len(pieces) + k): {"content": mark, **plain} for k, mark in enumerate(marks)
        },
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
        "mask_token": "<|mask|>",
        "bos_token": None,
        "unk_token": None,
        "chat_template": CHAT,
    }
    for name, text in (
        ("vocab.json", json.dumps(pieces)),
        ("merges.txt", "#version: 0.2\n" + "\n".join(merges) + "\n"),
        ("tokenizer_config.json", json.dumps(config)),
        ("tokenization_dream.py", SLOW),
        ("configuration_dream.py", DREAM),
        (
            "config.json",
            '{"model_type": "Dream", "auto_map": {"AutoConfig": "configuration_dream.DreamConfig"}}',
        ),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def diffugpt(folder: Path) -> Path:
    size = fast(byte_level(), folder, chat=True, **SPECIAL)
    config = GPT2Config(vocab_size=size, n_embd=WIDTH, n_layer=2, n_head=2, n_positions=POSITIONS)
    network = _sharp(GPT2LMHeadModel(config))
    stored = {}
    for key, value in network.state_dict().items():
        if key == "transformer.wte.weight":
            stored["embed_tokens.weight"] = value.clone()
        elif key.startswith("transformer."):
            stored["denoise_model." + key.removeprefix("transformer.")] = value.clone()
    from safetensors.torch import save_file

    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    plain = {**config.to_dict(), "architectures": ["DiscreteDiffusionModel"]}
    (folder / "config.json").write_text(json.dumps(plain), encoding="utf-8")
    return folder


def _sharp(network: Any) -> Any:
    """Seeded weights, large enough that tokens differ clearly and rounding decides no draw."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.copy_(
                    torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5
                )
    return network.eval()


MAKERS: dict[str, Callable[[Path], Path]] = {
    "bert": bert,
    "diffugpt": diffugpt,
    "distilbert": lambda folder: masked_lm(
        DistilBertConfig,
        folder,
        dim=WIDTH,
        n_layers=2,
        n_heads=2,
        hidden_dim=32,
        max_position_embeddings=POSITIONS,
    ),
    "dream": lambda folder: remote(folder, DREAM, "Dream", "DreamModel", "AutoModel", mask_token_id=0),
    "electra": lambda folder: masked_lm(ElectraConfig, folder, embedding_size=WIDTH, **ROTARY),
    "eurobert": lambda folder: masked_lm(EuroBertConfig, folder, **ROTARY, **ENDS),
    "fnet": lambda folder: masked_lm(
        FNetConfig,
        folder,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
    ),
    "llada": lambda folder: remote(folder, LLADA, "llada", "LLaDAModelLM", "AutoModel", mask_token_id=0),
    "mdlm": lambda folder: remote(folder, MDLM, "mdlm", "MDLM", "AutoModelForMaskedLM", mask_token_id=0),
    "modernbert": lambda folder: masked_lm(
        ModernBertConfig,
        folder,
        **ROTARY,
        global_attn_every_n_layers=2,
        local_attention=8,
        cls_token_id=2,
        sep_token_id=3,
        **ENDS,
    ),
    "roberta": lambda folder: masked_lm(RobertaConfig, folder, **ROTARY),
}
REMOTE = ("dream", "llada", "mdlm")
