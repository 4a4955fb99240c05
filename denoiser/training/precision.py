"""Which number format trains fastest here."""

from __future__ import annotations

import torch


def fast_bf16() -> bool:
    """Whether this CPU multiplies bfloat16 natively; emulated, it was 60 times slower than float32."""
    supported = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return bool(supported)
