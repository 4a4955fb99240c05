"""Training of small denoisers: corpus, tokenizer, warm start, masked-diffusion objective, checkpoints, export."""

from __future__ import annotations
