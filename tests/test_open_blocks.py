"""Checkpoints of block-by-block models, opened by `load`: a tiny native DiffusionGemma, stand-ins for the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from stand_ins import BODY, POSITIONS, SPECIAL, fast, remote
from test_vocabulary import byte_level

from redraft.denoiser import load
from redraft.guidance import Keywords, Pattern, Words

pytest.importorskip("redraft.denoiser.models.block_causal")
pytest.importorskip("redraft.denoiser.models.diffusion_gemma")
GUIDES: list[Any] = [[Keywords("storm"), Words(2, 6)], [Pattern("[a-z ]{3,30}")]]

CAUSAL = (
    BODY
    + """

class TinyConfig(PretrainedConfig):
    model_type = "KIND"

    def __init__(self, vocab_size=320, max_position_embeddings=96, block_size=4, mask_token_id=0, **more):
        self.vocab_size, self.max_position_embeddings = vocab_size, max_position_embeddings
        self.block_size, self.mask_token_id = block_size, mask_token_id
        super().__init__(**more)


class TinyModel(PreTrainedModel):
    config_class = TinyConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = Body(config.vocab_size)
        self.post_init()

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None,
                use_cache=None, **more):
        assert ("store_kv" in more) == ("KIND" == "sdar") or past_key_values is None
        mask = attention_mask if attention_mask.ndim == 4 else attention_mask[:, None]
        assert (mask.dtype == torch.bool) == ("KIND" == "sdar")
        return CausalLMOutputWithPast(logits=self.model(input_ids, mask, position_ids))
"""
)


@pytest.mark.parametrize("kind", ["llada2_moe", "sdar"])
def test_block_causal_checkpoints(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(modules))
    monkeypatch.syspath_prepend(str(modules))
    folder = tmp_path / kind
    folder.mkdir()
    code = CAUSAL.replace("KIND", kind)
    remote(folder, code, kind, "TinyModel", "AutoModelForCausalLM", mask_token_id=0, block_size=4)
    denoiser: Any = load(folder, trust_remote_code=True)
    assert denoiser.block == 4
    assert denoiser.max_length == POSITIONS - 1
    denoiser._cached = False  # the stand-in keeps no keys
    for guides in GUIDES:
        (result,) = denoiser.write(guides, prompt="it was", seed=1, steps=8, length=16)
        assert result.satisfied, result.text
    ids = denoiser.prepare("it", 1, chat=True).tokens[0].tolist()
    assert ids[0] != denoiser.template.skip


def test_diffusion_gemma_checkpoint(tmp_path: Path) -> None:
    native = pytest.importorskip("transformers.models.diffusion_gemma")
    from test_denoising_processor import tiny_config

    size = fast(byte_level(), tmp_path, chat=True, **SPECIAL)
    torch.manual_seed(0)
    config = tiny_config(size, bos_token_id=2, eos_token_id=1, pad_token_id=3)
    native.DiffusionGemmaForBlockDiffusion(config).save_pretrained(tmp_path)
    denoiser = load(tmp_path)
    assert denoiser.adapter == "DiffusionGemma"
    for guides in GUIDES:
        (result,) = denoiser.write(guides, prompt="it was", seed=1, steps=6, length=12)
        assert result.satisfied, result.text
