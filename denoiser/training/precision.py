"""Which number format trains fastest here."""

from __future__ import annotations

import torch


def fast_bf16() -> bool:
    """Whether this CPU multiplies bfloat16 natively; emulated, it was 60 times slower than float32."""
    there: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
