"""Find the adapter for a model by what its folder or its config says."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from redraft.denoiser.base import Denoiser
from redraft.denoiser.errors import UnsupportedModelError


def load(
    model: str | Path = "embedded",
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | str = torch.float32,
    trust_remote_code: bool = False,
    quantization: str | None = None,
    device_map: Any = None,
    compile: bool | str = False,
) -> Denoiser:
    """The denoiser of a name or folder; its `adapter` and `why` say which adapter was taken and why.

    "embedded", a folder of `redraft train`, or any model of the families in docs/models.md. `dtype` is the
    network's ("bfloat16" or torch.bfloat16); what it hands the loop is float32 always. `trust_remote_code`
    runs code that comes with the checkpoint. `quantization` is "8bit" or "4bit" (bitsandbytes), `device_map`
    as `transformers` takes it. `compile` runs the network through `torch.compile` (True, or a backend's
    name). Raises `UnsupportedModelError` for a model that no adapter serves (an autoregressive one, say) and
    where the name is no folder and cannot be fetched.
    """
    device, dtype = available_device(device), _dtype(dtype)
    home = _home(model)
    if home is not None:
        from redraft.denoiser.models.embedded import load_folder

        if quantization is not None or device_map is not None:
            raise UnsupportedModelError(
                f"{str(model)!r} is small and is loaded whole: leave quantization and device_map out"
            )
        denoiser: Denoiser = load_folder(home, device, dtype)
        denoiser.adapter, denoiser.why = "embedded", "its folder holds redraft.json"
    else:
        denoiser = _fetched(
            str(model),
            device=device,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            quantization=quantization,
            device_map=device_map,
        )
    return _compiled(denoiser, compile) if compile else denoiser


def _fetched(name: str, **options: Any) -> Denoiser:
    from redraft.denoiser.discovery import adapter_for, adapters
    from redraft.denoiser.models.families import recognise
    from redraft.denoiser.models.pretrained import read_config

    config = read_config(name)
    plugin = adapter_for(name, config) if adapters().entries else None
    if plugin is not None:  # another distribution's adapter is asked before Redraft's own
        given = {key: value for key, value in options.items() if value is not None}
        served: Denoiser = plugin.value.from_pretrained(name, **given)
        served.adapter, served.why = plugin.name, f"the adapter of {plugin.origin} serves it"
        return served
    family = recognise(name, config)
    if family.remote and not options["trust_remote_code"]:
        raise UnsupportedModelError(
            f"{name!r} is a {family.name} ({family.why}), which runs on code that comes with the checkpoint: "
            "read that code, and then pass trust_remote_code=True; pass it for no code that you have not read"
        )
    module: Any = importlib.import_module(f"redraft.denoiser.models.{family.module}")
    denoiser: Denoiser = module.from_pretrained(name, **options)
    denoiser.adapter, denoiser.why = family.name, family.why
    return denoiser


def _home(model: str | Path) -> Path | None:
    """The folder of `redraft train` that is meant, if one is."""
    if str(model) == "embedded":
        from redraft.denoiser.models.embedded import HOME

        return HOME
    folder = Path(model)
    return folder if (folder / "redraft.json").is_file() else None


def available_device(device: str | torch.device) -> torch.device:
    """The device of a name; raises `UnsupportedModelError` where it is not to be had."""
    try:
        found = torch.device(device)
        if found.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise UnsupportedModelError(f"device {str(device)!r} is not to be had here: {error}") from error
    return found


def _dtype(dtype: torch.dtype | str) -> torch.dtype:
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise UnsupportedModelError(f"dtype is {dtype!r}: use 'float32', 'bfloat16' or 'float16'")
    return found


def _compiled(denoiser: Denoiser, backend: bool | str) -> Denoiser:
    network: Any = getattr(denoiser, "model", None)
    if not isinstance(network, torch.nn.Module):
        raise UnsupportedModelError(f"{denoiser.name} has no network to compile: leave compile out")
    network.compile(dynamic=True, **({"backend": backend} if isinstance(backend, str) else {}))
    return denoiser
