"""Which number format trains fastest here."""

from __future__ import annotations

import torch


def fast_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 natively; emulated on a CPU, it was 60 times slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type != "cpu":
        return False
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
