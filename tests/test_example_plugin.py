"""The example plugin is built, installed and used through the command, as its readers would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from redraft.denoiser.testing import Bench, check_guide

SOURCE = Path(__file__).resolve().parent.parent / "docs" / "example-plugin"


def test_its_guides_keep_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SOURCE / "src"))
    from redraft_example import Brevity, TongueTwister

    for guide in (TongueTwister("st"), Brevity(3)):
        check_guide(guide, bench=Bench(examples=15))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the distribution is installed, from a wheel that is built of a copy of its sources."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(
        SOURCE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    offline = ["--no-deps", "--no-index"]
    built = ["wheel", *offline, "--no-build-isolation", "--wheel-dir", str(folder), str(folder / "source")]
    subprocess.run([*pip, *built], check=True, timeout=240)
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [*pip, "install", *offline, "--target", str(folder / "site"), str(wheel)], check=True, timeout=240
    )
    return folder / "site"


def run(site: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "100"},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.long
def test_the_command_knows_its_guides(site: Path) -> None:
    done = run(site, "redraft.recipes", "guides")
    assert (done.returncode, done.stderr) == (0, "")
    assert "tongue-twister (guaranteed) from redraft-example 0.1.0\n" in done.stdout
    assert "brevity (encouraged) from redraft-example 0.1.0\n" in done.stdout
    assert "    letters: string\n" in done.stdout


@pytest.mark.long
def test_a_recipe_that_names_them_writes(site: Path) -> None:
    done = run(
        site,
        "redraft.recipes",
        "write",
        str(SOURCE / "twister.toml"),
        "--seed",
        "1",
        "--steps",
        "6",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    guides = [table["guide"] for table in line["recipe"]["guides"]]
    assert guides == ["tongue-twister", "words", "brevity"]
    verdicts = {v["guide"]: v for v in line["verdicts"]}
    assert verdicts["TongueTwister(letters='st')"]["status"] == "satisfied"
    assert all(word.strip("\"'.,!?-")[:1].lower() in ("s", "t", "") for word in line["text"].split())


@pytest.mark.long
def test_its_own_tests_pass(site: Path, tmp_path: Path) -> None:
    shutil.copytree(SOURCE / "tests", tmp_path / "tests")
    done = run(
        site, "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(tmp_path / "tests"), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " failed" not in done.stdout
