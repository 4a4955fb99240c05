"""Adapters and classifiers of other distributions: found, told by name where they fail, never swallowed."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from redraft.classifiers import InvalidClassifierError, WordScores
from redraft.classifiers.discovery import classifier, classifiers
from redraft.denoiser import UnsupportedModelError, load
from redraft.denoiser.discovery import adapter_for, adapters
from redraft.denoiser.testing import ToyDenoiser
from redraft.recipes.doctor import examine, extras

SOURCE = """
from redraft.classifiers import WordScores
from redraft.denoiser.testing import ToyDenoiser


class Serves:
    def __init__(self, *kinds):
        self.kinds = kinds

    def supports(self, config):
        if config.get("model_type") == "cursed":
            return config["no such key"]
        return config.get("model_type") in self.kinds

    def from_pretrained(self, name, **options):
        made = ToyDenoiser()
        made.name = f"{name} on {options['device']}"
        return made


class Mine(WordScores):
    pass


class Half:
    def supports(self, config):
        return True


one, two, half = Serves("toy", "both"), Serves("both"), Half()
"""
POINTS = """
[redraft.denoisers]
one = redraft_kinds:one
two = redraft_kinds:two
half = redraft_kinds:half
gone = redraft_nowhere:x

[redraft.classifiers]
mine = redraft_kinds:Mine
thing = redraft_kinds:one
gone = redraft_nowhere:y
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "redraft_kinds.py").write_text(SOURCE)
    for name, points in (
        ("redraft_kinds-1.5", POINTS),
        ("redraft_again-2", "[redraft.classifiers]\ntwin = redraft_kinds:Mine\n"),
    ):
        info = tmp_path / f"{name}.dist-info"
        info.mkdir()
        title, version = name.replace("_", "-").rsplit("-", 1)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {title}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(points)
    other = tmp_path / "redraft_clash-3.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: redraft-clash\nVersion: 3\n")
    (other / "entry_points.txt").write_text("[redraft.classifiers]\ntwin = redraft_kinds:Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    for cached in (adapters, classifiers):
        cached.cache_clear()
    yield tmp_path
    for cached in (adapters, classifiers):
        cached.cache_clear()
    sys.modules.pop("redraft_kinds", None)


def model(folder: Path, kind: str) -> Path:
    made = folder / kind
    made.mkdir()
    (made / "config.json").write_text(json.dumps({"model_type": kind}))
    return made


def test_adapters_are_found_and_failures_told(plugin: Path) -> None:
    assert {name: p.origin for name, p in adapters().entries.items()} == {
        "one": "redraft-kinds 1.5",
        "two": "redraft-kinds 1.5",
    }
    said = {failure.name: str(failure) for failure in adapters().failures}
    assert said["half"] == (
        'adapter "half" of redraft-kinds 1.5: redraft_kinds:half lacks from_pretrained: see docs/plugins.md'
    )
    assert "redraft_nowhere:x does not load: ModuleNotFoundError" in said["gone"]


def test_load_asks_the_adapters(plugin: Path) -> None:
    folder = model(plugin, "toy")
    denoiser = load(folder)
    assert isinstance(denoiser, ToyDenoiser)
    assert denoiser.name == f"{folder} on cpu"
    with pytest.raises(UnsupportedModelError, match=r'"one" of redraft-kinds 1.5 and "two" .*uninstall one'):
        load(model(plugin, "both"))
    with pytest.raises(UnsupportedModelError, match=r'adapter "one" .*fails at the config of .*KeyError'):
        load(model(plugin, "cursed"))
    gpt = model(plugin, "gpt2")
    with pytest.raises(
        UnsupportedModelError, match=r"is a 'gpt2' model .*adapter \"gone\" of redraft-kinds 1.5"
    ):
        load(gpt)
    assert adapter_for("x", {"model_type": "bert"}) is None


def test_classifiers_are_found_and_failures_told(plugin: Path) -> None:
    assert issubclass(classifier("mine"), WordScores)
    with pytest.raises(InvalidClassifierError, match="did you mean 'mine'"):
        classifier("mien")
    with pytest.raises(InvalidClassifierError, match="redraft_nowhere:y does not load: ModuleNotFoundError"):
        classifier("gone")
    with pytest.raises(InvalidClassifierError, match=r"redraft_kinds:one is .*, not a class"):
        classifier("thing")
    with pytest.raises(InvalidClassifierError, match="claimed twice") as caught:
        classifier("twin")
    assert "redraft-again 2" in str(caught.value)
    assert "redraft-clash 3" in str(caught.value)


def test_doctor_tells_them(plugin: Path) -> None:
    found = {(f.what, f.fine): f.found for f in examine() if f.what in ("adapters", "classifiers")}
    assert {what for what, fine in found if not fine} == {"adapters", "classifiers"}
    assert found["classifiers", True] == "mine from redraft-kinds 1.5"


def test_without_plugins_there_are_none() -> None:
    assert not adapters().failures
    assert not classifiers().failures


def test_doctor_tells_what_each_extra_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "redraft-9.9.dist-info"
    info.mkdir()
    lines = [
        "Metadata-Version: 2.4", "Name: redraft", "Version: 9.9", "Requires-Dist: torch",
        "Provides-Extra: numbers", 'Requires-Dist: numpy>=1.26; extra == "numbers"',
        "Provides-Extra: gone", "Requires-Dist: redraft-gone<3,>=2 ; extra == 'gone'",
        "Provides-Extra: both", 'Requires-Dist: redraft[gone,numbers]; extra == "both"',
        "Provides-Extra: none", "",
    ]  # fmt: skip
    (info / "METADATA").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {finding.what: finding for finding in extras()}
    assert list(found) == ["extra numbers", "extra gone", "extra both", "extra none"]
    assert all(finding.fine for finding in found.values())
    assert found["extra numbers"].found == f"numpy {version('numpy')}"
    assert found["extra gone"].found == "redraft-gone not installed: pip install 'redraft[gone]'"
    assert found["extra both"].found == (
        f"numpy {version('numpy')}; redraft-gone not installed: pip install 'redraft[both]'"
    )
    assert found["extra none"].found == "nothing more"
