"""Training of small denoisers: corpus, tokenizer, warm start, objective, checkpoints, export."""

from __future__ import annotations
