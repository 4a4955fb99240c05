"""A real byte-level BPE vocabulary at any size, without a network, for benchmarks.

`mistral-common` ships the ranks of Tekken (131,072 entries, most languages and code; `pip install --no-deps
mistral-common`). BPE merges are ordered by rank, so that its first n ranks are themselves a BPE vocabulary: one
tokenizer gives 16k, 32k and 128k tokens. The package is only looked up for its data file and never imported.
"""

from __future__ import annotations

import base64
import importlib.util
import json
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import regex

from redraft.denoiser import Vocabulary

_FILE = "data/tekken_240911.json"
_SPECIAL = 4  # mask, EOS, padding and one spare in front of the ranks


def available() -> bool:
    """Whether the package that ships the ranks is installed."""
    return importlib.util.find_spec("mistral_common") is not None


@lru_cache(maxsize=1)
def _ranks() -> tuple[list[bytes], str]:
    spec = importlib.util.find_spec("mistral_common")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("this benchmark needs a tokenizer: pip install --no-deps mistral-common")
    with (Path(spec.submodule_search_locations[0]) / _FILE).open(encoding="utf-8") as file:
        data = json.load(file)
    entries = sorted(data["vocab"], key=lambda entry: entry["rank"])
    return [base64.b64decode(entry["token_bytes"]) for entry in entries], data["config"]["pattern"]


@lru_cache(maxsize=4)
def vocabulary(size: int) -> Vocabulary:
    """The vocabulary of the first `size` entries (four specials, then ranks), with its own encoder."""
    tokens, pattern = _ranks()
    if not 512 <= size <= len(tokens) + _SPECIAL:
        raise SystemExit(f"a vocabulary of {size:,} tokens: use 512 to {len(tokens) + _SPECIAL:,}")
    kept = tokens[: size - _SPECIAL]
    rank = {raw: k for k, raw in enumerate(kept)}
    split = regex.compile(pattern)

    def encoder(text: str) -> list[int]:
        return [token + _SPECIAL for piece in split.findall(text) for token in _merge(piece.encode(), rank)]

    table: list[bytes | None] = [*[None] * _SPECIAL, *kept]
    return Vocabulary(table, encoder, mask_id=0, eos_id=1, pad_id=2)


def _merge(raw: bytes, rank: dict[bytes, int]) -> list[int]:
    """Byte-pair encoding of one piece: join the neighbours of lowest rank until none can be joined."""
    parts = [raw[k : k + 1] for k in range(len(raw))]
    while len(parts) > 1:
        ranked = [(rank[a + b], k) for k, (a, b) in enumerate(pairwise(parts)) if a + b in rank]
        if not ranked:
            break
        at = min(ranked)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [rank[part] for part in parts]
