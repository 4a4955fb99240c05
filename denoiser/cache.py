"""Compiled automata are kept: in memory always (least recently used go), on disk where a folder is given.

The folder is `REDRAFT_CACHE_DIR`, or what `set_cache_dir` says. A file is a safetensors file that holds arrays and
nothing that runs; it is read only if it is a plain file of this user's, has this format's version, the full name of
what was asked for and its own checksum, and its arrays make a valid automaton. Anything else is ignored and built
again. Files are written beside and moved into place, so that processes may share a folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from redraft.denoiser.automaton import Automaton

#: Raised by one whenever a builder or the layout of a file changes: older files are then ignored.
FORMAT = 2
#: Bytes of automata kept in memory, and files and bytes kept on disk.
MEMORY = 256 * 2**20
FILES, LARGEST = 2_000, 2**29
#: Seconds of building from which a result is worth a file.
WORTH = 0.02

_ENV = "REDRAFT_CACHE_DIR"
_folder: Path | None = None
_kept: OrderedDict[str, Automaton] = OrderedDict()
_size = 0
_lock = threading.RLock()


def set_cache_dir(folder: str | os.PathLike[str] | None) -> None:
    """Keep compiled automata in `folder` (made where missing); None: whatever `REDRAFT_CACHE_DIR` says."""
    global _folder
    _folder = None if folder is None else _home(folder)


def cache_dir() -> Path | None:
    """The folder in use, or None: memory only."""
    return _folder or (_home(named) if (named := os.environ.get(_ENV)) else None)


def _home(folder: str | os.PathLike[str]) -> Path:
    return Path(
        os.path.expanduser(folder)
    )  # a user that is not known stays as it is; Path.expanduser would raise


def clear_cache() -> None:
    """Forget what is kept in memory; files stay."""
    global _size
    with _lock:
        _kept.clear()
        _size = 0


def cached(kind: str, parts: tuple[object, ...], build: Callable[[], Automaton]) -> Automaton:
    """What `build()` makes, or made before under the same `kind` and `parts`.

    `parts` are plain values (strings, bytes, numbers, tuples of these) that decide the result; their repr is the
    name. Errors of `build` are not kept.
    """
    name = hashlib.blake2b(repr((FORMAT, kind, parts)).encode(), digest_size=32).hexdigest()
    with _lock:
        if (found := _kept.get(name)) is not None:
            _kept.move_to_end(name)
            return found
    folder = cache_dir()
    made = None if folder is None else _read(folder / f"{name}.safetensors", name)
    if made is None:
        begun = time.perf_counter()
        made = build()
        if folder is not None and time.perf_counter() - begun >= WORTH:
            _write(folder, name, made)
    _keep(name, made)
    return made


def _keep(name: str, made: Automaton) -> None:
    global _size
    with _lock:
        if name not in _kept:
            _kept[name] = made
            _size += _bytes(made)
        while _size > MEMORY and len(_kept) > 1:
            _size -= _bytes(_kept.popitem(last=False)[1])


def _bytes(a: Automaton) -> int:
    return a.classes.nbytes + a.delta.nbytes + a.accept.nbytes


def _pack(name: str, a: Automaton) -> dict[str, NDArray[np.generic]]:
    arrays: dict[str, NDArray[np.generic]] = {
        "head": np.array([FORMAT, a.start, a.is_minimal], dtype=np.int64),
        "name": np.frombuffer(bytes.fromhex(name), dtype=np.uint8),
        "classes": a.classes,
        "delta": a.delta,
        "accept": a.accept.astype(np.uint8),
    }
    return arrays | {"sum": _sum(arrays)}


def _sum(arrays: dict[str, NDArray[np.generic]]) -> NDArray[np.uint8]:
    digest = hashlib.blake2b(digest_size=16)
    for key in ("head", "name", "classes", "delta", "accept"):
        digest.update(repr((arrays[key].dtype.str, arrays[key].shape)).encode())
        digest.update(arrays[key].tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _write(folder: Path, name: str, a: Automaton) -> None:
    """Best effort: a full or read-only disk costs the next process a compilation, not this one its result."""
    with contextlib.suppress(OSError, ValueError):
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder)
        handle, beside = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(save(_pack(name, a)))
            os.replace(beside, folder / f"{name}.safetensors")
        except OSError:
            os.unlink(beside)


def _make_room(folder: Path) -> None:
    files = [file for file in folder.iterdir() if file.suffix in (".safetensors", ".part")]
    if len(files) >= FILES:
        for file in sorted(files, key=lambda f: f.lstat().st_mtime)[: FILES // 10]:
            file.unlink(missing_ok=True)


def _read(file: Path, name: str) -> Automaton | None:
    """The automaton in a file, or None where there is none or it is not what was asked for."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as opened:
            about = os.fstat(opened.fileno())
            own = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
            if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST or not own:
                return None
            arrays = load(opened.read(LARGEST + 1))
        head = arrays["head"]
        if head.shape != (3,) or head.dtype != np.int64 or int(head[0]) != FORMAT:
            return None
        if arrays["name"].tobytes().hex() != name or not np.array_equal(arrays["sum"], _sum(arrays)):
            return None
        kinds = {"classes": np.int32, "delta": np.int32, "accept": np.uint8}
        if any(arrays[key].dtype != kind for key, kind in kinds.items()):
            return None
        a = Automaton(arrays["classes"], arrays["delta"], int(head[1]), arrays["accept"] != 0)
        return a.marked_minimal() if head[2] else a
    except Exception:  # whatever a broken file does to its reader, building again is the answer
        return None
