"""Find the adapter for a model by what its folder or its config says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from redraft.denoiser.base import Denoiser
from redraft.denoiser.errors import UnsupportedModelError


def load(
    model: str | Path = "embedded",
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    trust_remote_code: bool = False,
) -> Denoiser:
    """The denoiser of a name or folder: "embedded", a folder of `redraft train`, or any masked language model.

    Raises `UnsupportedModelError` for a model that no adapter serves (an autoregressive one, say) and where
    the name is no folder and cannot be fetched.
    """
    try:
        device = torch.device(device)
        if device.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UnsupportedModelError(f"device {str(device)!r} is not to be had here: {error}") from error
    if str(model) == "embedded":
        from redraft.denoiser.models.embedded import HOME, load_folder

        return load_folder(HOME, device, dtype)
    folder = Path(model)
    if (folder / "redraft.json").is_file():
        from redraft.denoiser.models.embedded import load_folder

        return load_folder(folder, device, dtype)
    options = {"device": device, "dtype": dtype, "trust_remote_code": trust_remote_code}
    return _from_plugin(str(model), options) or _masked_lm(str(model), device, dtype, trust_remote_code)


def _from_plugin(name: str, options: dict[str, Any]) -> Denoiser | None:
    """The denoiser that another distribution's adapter makes of a model, None where none serves it."""
    from redraft.denoiser.discovery import adapter_for, adapters

    if not adapters().entries:
        return None
    from transformers import PretrainedConfig

    try:
        config = PretrainedConfig.get_config_dict(name)[0]
    except (OSError, ValueError):
        return None  # the same question fails again, with the full message
    plugin = adapter_for(name, config)
    return None if plugin is None else plugin.value.from_pretrained(name, **options)


def _masked_lm(name: str, device: torch.device, dtype: torch.dtype, trust: bool) -> Denoiser:
    from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    from redraft.denoiser.discovery import failed_adapters
    from redraft.denoiser.models.masked_lm import MaskedLM
    from redraft.denoiser.vocabulary import Vocabulary

    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=trust)
    except (OSError, ValueError) as error:
        raise UnsupportedModelError(
            f"{name!r} is neither 'embedded', nor a folder with a model, nor a name that can be fetched: {error}"
        ) from error
    kind = getattr(config, "model_type", "?")
    heads = [str(head) for head in getattr(config, "architectures", None) or []]
    causal = any("CausalLM" in head or "LMHead" in head for head in heads) or bool(
        getattr(config, "is_decoder", False)
    )
    if kind not in MODEL_FOR_MASKED_LM_MAPPING_NAMES or causal:
        raise UnsupportedModelError(
            f"{name!r} is a {kind!r} model ({', '.join(heads) or 'no architecture named'}), which Redraft has no "
            f"adapter for{failed_adapters()}: use 'embedded', a folder of `redraft train`, or a masked language model "
            f"({', '.join(sorted(MODEL_FOR_MASKED_LM_MAPPING_NAMES)[:8])}, ...)"
        )
    tokenizer: Any = AutoTokenizer.from_pretrained(name, trust_remote_code=trust)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise UnsupportedModelError(
            f"{name!r} has no fast tokenizer, so its tokens' bytes are not known: convert it"
        )
    network: Any = AutoModelForMaskedLM.from_pretrained(name, dtype=dtype, trust_remote_code=trust)
    vocabulary = Vocabulary.from_tokenizer(
        tokenizer.backend_tokenizer, mask_id=tokenizer.mask_token_id, size=int(config.vocab_size)
    )
    before = [
        t
        for t in (tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id,)
        if t is not None
    ]
    after = [
        t
        for t in (tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id,)
        if t is not None
    ]
    positions = int(getattr(config, "max_position_embeddings", 512))
    pad = getattr(config, "pad_token_id", None)
    if kind in ("roberta", "xlm-roberta", "camembert") and pad is not None:
        positions -= int(pad) + 1  # their position ids start behind the padding id
    return MaskedLM(
        network.to(device), vocabulary, name=name, before=before, after=after, max_positions=positions
    )
