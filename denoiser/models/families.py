"""Which adapter serves a config, and why: told from the file alone, before any code or weights are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redraft.denoiser.errors import UnsupportedModelError


@dataclass(frozen=True)
class Family:
    """`module` of this package with its `from_pretrained`; `remote`: runs on code from the checkpoint itself."""

    name: str
    module: str
    why: str
    remote: bool = False


#: model_type, in lower case -> (family, module, whether it needs the checkpoint's own code)
BY_TYPE = {
    "llada": ("LLaDA", "llada", True),
    "lladamoe": ("LLaDA", "llada", True),
    "dream": ("Dream", "dream", True),
    "mdlm": ("MDLM", "mdlm", True),
    "diffusion_gemma": ("DiffusionGemma", "open_blocks", False),
    "llada2_moe": ("LLaDA2", "open_blocks", True),
    "sdar": ("SDAR", "open_blocks", True),
    "sdar_moe": ("SDAR", "open_blocks", True),
}
#: the same by architecture, where the model_type says less
BY_HEAD = {
    "DiscreteDiffusionModel": ("DiffuGPT", "diffugpt", False),
    "LLaDAModelLM": ("LLaDA", "llada", True),
    "LLaDAMoEModelLM": ("LLaDA", "llada", True),
    "DreamModel": ("Dream", "dream", True),
    "MDLM": ("MDLM", "mdlm", True),
}


def supported() -> str:
    """One line for error messages: what `load` takes."""
    return (
        "'embedded', a folder of `redraft train`, LLaDA, Dream or DiffuCoder, MDLM, DiffuGPT, LLaDA2, SDAR, "
        "DiffusionGemma, or a masked language model (BERT, RoBERTa, DistilBERT, ELECTRA, ModernBERT, EuroBERT, ...)"
    )


def recognise(name: str, config: Mapping[str, Any]) -> Family:
    """The family of a config; raises `UnsupportedModelError` with the list of what there is."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    from redraft.denoiser.discovery import failed_adapters

    kind = str(config.get("model_type") or "")
    heads = [str(head) for head in config.get("architectures") or []]
    for head in heads:
        if head in BY_HEAD and not (head == "DiscreteDiffusionModel" and kind != "gpt2"):
            family, module, remote = BY_HEAD[head]
            return Family(family, module, f"its architecture is {head}", remote)
    if kind.lower() in BY_TYPE:
        family, module, remote = BY_TYPE[kind.lower()]
        return Family(family, module, f"its model_type is {kind!r}", remote)
    causal = any("CausalLM" in head or "LMHead" in head for head in heads) or bool(config.get("is_decoder"))
    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not causal:
        return Family("masked-lm", "masked_lm", f"transformers has a masked language model for {kind!r}")
    if "AutoModelForMaskedLM" in (config.get("auto_map") or {}):
        return Family("masked-lm", "masked_lm", "its own code is a masked language model", remote=True)
    raise UnsupportedModelError(
        f"{name!r} is a {kind or 'nameless'!r} model ({', '.join(heads) or 'no architecture named'}), which Redraft "
        f"has no adapter for{_instead(causal)}{failed_adapters()}: use {supported()}"
    )


def _instead(causal: bool) -> str:
    return (
        " (it writes left to right: `as_logits_processor` steers such a model's generate())" if causal else ""
    )
