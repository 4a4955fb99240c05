"""Shared fixtures: devices, and property tests that run the same examples every time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # the tensors of tests are small, and other processes may share the cores
settings.register_profile("redraft", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("redraft")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Every device that this machine has."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device(request.param)
