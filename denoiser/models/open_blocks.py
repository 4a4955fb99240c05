"""Open the checkpoints of models that write block by block: DiffusionGemma, LLaDA2 and SDAR.

Facts: LLaDA2 takes additive masks, blocks of 32 and the mask token `<|mask|>`; SDAR boolean masks, a `store_kv`
flag, blocks of `block_size` (4) and `<|MASK|>`. Their head is in the class that `AutoModelForCausalLM` names.
"""

from __future__ import annotations

from typing import Any

from redraft.denoiser.base import Denoiser
from redraft.denoiser.chat import ChatTemplate
from redraft.denoiser.models.pretrained import open_pretrained, read_config


def from_pretrained(name: str, **options: Any) -> Denoiser:
    """A block-by-block model by name or folder; the options are those of `redraft.denoiser.load`."""
    kind = str(read_config(name).get("model_type"))
    if kind == "diffusion_gemma":
        return _diffusion_gemma(name, options)
    return _block_causal(name, kind, options)


def _diffusion_gemma(name: str, options: dict[str, Any]) -> Denoiser:
    from redraft.denoiser.models.diffusion_gemma import DiffusionGemma

    opened = open_pretrained(name, "DiffusionGemmaForBlockDiffusion", **options)
    begin = opened.begin()
    denoiser: Denoiser = DiffusionGemma(
        opened.network, opened.vocabulary(mask_id=None, eos=True), name=name, before=begin
    )
    denoiser.template = ChatTemplate(opened.tokenizer, skip=begin[0] if begin else None)
    return denoiser


def _block_causal(name: str, kind: str, options: dict[str, Any]) -> Denoiser:
    from redraft.denoiser.models.block_causal import BlockCausal

    sdar = kind.startswith("sdar")
    opened = open_pretrained(name, "AutoModelForCausalLM", slow="Qwen2Tokenizer" if sdar else None, **options)
    begin = opened.begin()
    mask = opened.token("mask_token_id", "<|MASK|>" if sdar else "<|mask|>")
    denoiser: Denoiser = BlockCausal(
        opened.network,
        opened.vocabulary(mask_id=mask, eos=True),
        name=name,
        block=opened.number("block_size", "block_length", default=4 if sdar else 32),
        before=begin,
        mask="boolean" if sdar else "additive",
        store_kv=sdar,
        max_positions=opened.number("max_position_embeddings", default=4096),
    )
    denoiser.template = ChatTemplate(opened.tokenizer, skip=begin[0] if begin else None)
    return denoiser
