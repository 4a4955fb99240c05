"""What this machine has: versions, extras, devices, the embedded weights, a cache that can be written, plugins."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

from redraft.recipes.registry import discover

_DISTRIBUTIONS = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "outlines-core",
    "pydantic",
    "typer",
    "rich",
)
_WEIGHTS = ("redraft.json", "config.json", "tokenizer.json", "model.safetensors")


@dataclass(frozen=True)
class Finding:
    """One thing looked at, and whether it is as it should be."""

    what: str
    found: str
    fine: bool = True


def examine() -> list[Finding]:
    """All findings, in the order to read them."""
    return [*_versions(), *extras(), *_devices(), _embedded(), _cache(), *_plugins()]


def _versions() -> Iterator[Finding]:
    yield Finding("redraft", _version("redraft") or "from a source tree, not installed")
    yield Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in _DISTRIBUTIONS:
        found = _version(name)
        yield Finding(name, found or f"missing: install {name}", found is not None)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def extras() -> Iterator[Finding]:
    """Each optional extra of the installed redraft and which of its packages are there; a missing one is no fault.

    What is installed is read from the packages' metadata; none is imported.
    """
    try:
        own = metadata("redraft")
    except PackageNotFoundError:
        return
    needs: dict[str, list[str]] = {extra: [] for extra in own.get_all("Provides-Extra") or ()}
    for requirement in own.get_all("Requires-Dist") or ():
        if asked := re.search(r"""extra\s*==\s*["']([^"']+)""", requirement):
            needs.setdefault(asked[1], []).append(requirement.partition(";")[0])
    for extra in needs:
        names = _packages(extra, needs)
        missing = [name for name in names if _version(name) is None]
        there = ", ".join(f"{name} {_version(name)}" for name in names if name not in missing)
        hint = f"{', '.join(missing)} not installed: pip install 'redraft[{extra}]'" if missing else ""
        yield Finding(f"extra {extra}", "; ".join(part for part in (there, hint) if part) or "nothing more")


def _packages(extra: str, needs: Mapping[str, Sequence[str]]) -> list[str]:
    """The distributions of an extra, those of the extras that it names as `redraft[a,b]` included."""
    found: dict[str, None] = {}
    for requirement in needs.get(extra, ()):
        name, _, inner = requirement.partition("[")
        if name.strip() == "redraft":
            for other in inner.partition("]")[0].split(","):
                found |= dict.fromkeys(_packages(other.strip(), needs))
        elif parsed := re.match(r"[\w.-]+", requirement.strip()):
            found[parsed[0]] = None
    return list(found)


def _devices() -> Iterator[Finding]:
    import torch

    yield Finding("device", f"cpu, {torch.get_num_threads()} threads")
    for k in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(k)
        yield Finding(
            "device",
            f"cuda:{k}, {torch.cuda.get_device_name(k)}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free",
        )
    if torch.backends.mps.is_available():
        yield Finding("device", "mps")


def _embedded() -> Finding:
    from redraft.denoiser.models.embedded import HOME

    missing = [name for name in _WEIGHTS if not (HOME / name).is_file()]
    if missing:
        return Finding(
            "embedded denoiser",
            f"{', '.join(missing)} not there: install redraft again, or use --model",
            False,
        )
    digest = hashlib.sha256()
    for name in _WEIGHTS:
        digest.update((HOME / name).read_bytes())
    size = sum((HOME / name).stat().st_size for name in _WEIGHTS)
    return Finding("embedded denoiser", f"{size / 1e6:.1f} MB, sha256 {digest.hexdigest()[:16]}")


def _cache() -> Finding:
    """Where models named by --model are kept: the Hugging Face cache."""
    home = (
        os.environ.get("HF_HOME")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    )
    folder = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            return Finding("model cache", f"{folder}, writable")
    except OSError as error:
        return Finding("model cache", f"{folder} cannot be written ({error.strerror}): set HF_HOME", False)


def _plugins() -> Iterator[Finding]:
    from redraft.classifiers.discovery import classifiers
    from redraft.denoiser.discovery import adapters

    registry = discover()
    by_origin: dict[str, list[str]] = {}
    for entry in registry.entries.values():
        by_origin.setdefault(entry.origin, []).append(entry.name)
    for origin, names in by_origin.items():
        yield Finding("guides", f"{', '.join(names)} from {origin}")
    for failure in registry.failures:
        yield Finding("guides", str(failure), False)
    for what, found in (("classifiers", classifiers()), ("adapters", adapters())):
        for plugin in found.entries.values():
            yield Finding(what, f"{plugin.name} from {plugin.origin}")
        for failure in found.failures:
            yield Finding(what, str(failure), False)
