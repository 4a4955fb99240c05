"""A table of weights on disk: `KIND.safetensors` for the numbers, `KIND.json` for what they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from redraft.classifiers.base import InvalidClassifierError

FORMAT = 1


def begun(folder: Path, kind: str) -> None:
    """A folder to save in, without the JSON of what was there: a save that is cut short must not pass for whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kind}.json").unlink(missing_ok=True)


def write_table(folder: Path, kind: str, meta: Mapping[str, Any], table: Mapping[bytes, float]) -> None:
    """Write `table` (keys as bytes, one after the other, with their lengths; weights float32) and `meta`."""
    begun(folder, kind)
    keys = sorted(table)
    arrays: dict[str, NDArray[Any]] = {
        "keys": np.frombuffer(b"".join(keys), dtype=np.uint8),
        "lengths": np.array([len(key) for key in keys], dtype=np.int32),
        "weights": np.array([table[key] for key in keys], dtype=np.float32),
    }
    save_file(arrays, folder / f"{kind}.safetensors")
    text = json.dumps({"format": FORMAT, "kind": kind, **meta}, indent=2)
    (folder / f"{kind}.json").write_text(text + "\n", encoding="utf-8")


def read_table(folder: Path, kind: str) -> tuple[dict[str, Any], dict[bytes, float]]:
    """(meta, table) of `write_table`; raises `InvalidClassifierError` for another format or a broken file."""
    meta = read_meta(folder / f"{kind}.json", kind)
    path = folder / f"{kind}.safetensors"
    try:
        arrays = load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise InvalidClassifierError(f"{path} cannot be read ({error}): copy or train it again") from error
    wanted = {"keys": np.uint8, "lengths": np.int32, "weights": np.float32}
    if {name: array.dtype for name, array in arrays.items()} != wanted:
        raise InvalidClassifierError(f"{path} holds {sorted(arrays)}, not {sorted(wanted)}: train it again")
    lengths, weights, raw = arrays["lengths"], arrays["weights"], arrays["keys"].tobytes()
    ends = np.cumsum(lengths, dtype=np.int64)
    sound = lengths.shape == weights.shape and bool((lengths > 0).all()) and int(lengths.sum()) == len(raw)
    if not sound or not bool(np.isfinite(weights).all()):
        raise InvalidClassifierError(
            f"{path}: its keys, lengths and weights do not fit together: train it again"
        )
    table = {
        raw[end - size : end]: float(weight)
        for end, size, weight in zip(ends.tolist(), lengths.tolist(), weights, strict=True)
    }
    return meta, table


def read_meta(path: Path, kind: str) -> dict[str, Any]:
    """A classifier's JSON; raises `InvalidClassifierError` for another format, kind or a broken file."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidClassifierError(f"{path} cannot be read ({error}): copy or train it again") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT or meta.get("kind") != kind:
        found = {key: meta.get(key) for key in ("format", "kind")} if isinstance(meta, dict) else meta
        raise InvalidClassifierError(
            f"{path} says {found} and this Redraft reads format {FORMAT} of kind {kind!r}: train it again"
        )
    return meta
