"""What is kept is what would be built, and a file that is not sound is no file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from toys import small_vocabulary

from redraft.denoiser import Scene, Steering, cache, joint
from redraft.denoiser.automaton import Automaton
from redraft.denoiser.cache import cached, clear_cache, set_cache_dir
from redraft.denoiser.regex import compile_regex
from redraft.guidance import Forbid, Keywords, Words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(cache, "WORTH", 0.0)
    clear_cache()
    set_cache_dir(tmp_path / "kept")
    yield tmp_path / "kept"
    set_cache_dir(None)
    clear_cache()


class Builder:
    def __init__(self, made: Automaton) -> None:
        self.made, self.calls = made, 0

    def __call__(self) -> Automaton:
        self.calls += 1
        return self.made


def test_memory_is_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_cache()
    word = Automaton.of_word(b"storm")
    monkeypatch.setattr(cache, "MEMORY", 3 * cache._bytes(word))
    builders = [Builder(word) for _ in range(4)]
    for k in (0, 1, 2, 0, 3, 0, 1):
        cached("test", (k,), builders[k])
    assert [builder.calls for builder in builders] == [1, 2, 1, 1]
    assert cache._size <= 3 * cache._bytes(word)
    clear_cache()


@pytest.mark.long
def test_another_process_reads_what_this_one_wrote(folder: Path) -> None:
    language = compile_regex("(storm|ship)s?")
    assert len(list(folder.iterdir())) == 1
    program = (
        "from redraft.denoiser import regex; regex.compile_table = None\n"  # nothing may be compiled
        "print(regex.compile_regex('(storm|ship)s?').key)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"REDRAFT_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == language.key


SPOILT = ["empty", "truncated", "noise", "flipped bit", "directory", "symlink"]
SPOILT += ["format", "name", "range", "shape", "type", "missing"]


def _spoil(file: Path, how: str) -> None:
    arrays = load_file(file)
    if how == "empty":
        file.write_bytes(b"")
    elif how == "truncated":
        file.write_bytes(file.read_bytes()[:-9])
    elif how == "noise":
        file.write_bytes(bytes(range(256)) * 9)
    elif how == "flipped bit":
        raw = bytearray(file.read_bytes())
        raw[-3] ^= 4
        file.write_bytes(raw)
    elif how == "directory":
        file.unlink()
        file.mkdir()
    elif how == "symlink":
        file.rename(file.with_suffix(".other"))
        file.symlink_to(file.with_suffix(".other"))
    else:
        if how == "format":
            arrays["head"] = arrays["head"] + np.array([1, 0, 0])
        elif how == "name":
            arrays["name"] = arrays["name"][::-1].copy()
        elif how == "range":
            arrays["delta"] = arrays["delta"] + 1
        elif how == "shape":
            arrays["accept"] = arrays["accept"][:-1].copy()
        elif how == "type":
            arrays["delta"] = arrays["delta"].astype(np.int64)
        elif how == "missing":
            del arrays["classes"]
        if how != "missing":
            arrays["sum"] = cache._sum(arrays)  # a forger can count as well
        save_file(arrays, file)


@pytest.mark.parametrize(
    "how",
    [
        "empty",
        "truncated",
        "noise",
        "flipped bit",
        "directory",
        "symlink",
        "format",
        "name",
        "range",
        "shape",
        "type",
        "missing",
    ],
)
def test_a_file_that_is_not_sound_is_built_again(folder: Path, how: str) -> None:
    builder = Builder(Automaton.of_word(b"sea"))
    cached("test", ("word",), builder)
    (file,) = folder.iterdir()
    clear_cache()
    assert cached("test", ("word",), builder).same(builder.made)
    assert builder.calls == 1
    _spoil(file, how)
    clear_cache()
    assert cached("test", ("word",), builder).same(builder.made)
    assert builder.calls == 2


def test_errors_and_a_folder_that_cannot_be_written_cost_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    set_cache_dir(tmp_path / "file")
    try:
        assert cached("test", ("unwritable",), Builder(Automaton.all())).same(Automaton.all())
    finally:
        set_cache_dir(None)

    def broken() -> Automaton:
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            cached("test", ("error",), broken)


def test_old_files_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "FILES", 10)
    for k in range(25):
        cached("test", (k,), Builder(Automaton.all()))
    assert len(list(folder.iterdir())) <= 10


def test_binding_again_builds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller last batch, or the next run, takes the same language with other rows."""
    vocabulary = small_vocabulary()
    guides = [Keywords("storm"), Words(4, 9), Forbid("sea")]

    def steering(batch: int) -> Steering:
        return Steering(guides, Scene(vocabulary, torch.device("cpu"), batch, 20, 8))

    first = steering(4)
    monkeypatch.setattr(joint, "_factors", None)  # nothing may be intersected
    again = steering(3)
    assert again.language.start.tolist() == first.language.start[:3].tolist()
    assert again.language.edges is first.language.edges


@pytest.mark.parametrize("named", ["~nobody-of-that-name/kept", "a\0b"])
def test_a_folder_that_cannot_be_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setattr(cache, "WORTH", 0.0)
    monkeypatch.chdir(tmp_path)
    set_cache_dir(named)
    made = Automaton.of_word(b"storm")
    assert cached("test", (named,), Builder(made)) is made
    set_cache_dir(None)
