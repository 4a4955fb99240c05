"""`redraft train`: what it hands to the trainer, and how it stops."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import redraft.denoiser.training.train as trainer
from redraft.denoiser.models.embedded import HOME
from redraft.denoiser.training.settings import Progress, Settings
from redraft.recipes import cli


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []

    def train(corpus: list[Path], out: Path, **options: Any) -> Path:
        made.append({"corpus": corpus, "out": out, **options})
        options["progress"](Progress(3, 100, 50.0, 4.5, 1e-4, 0.5, False))
        return out / "release"

    monkeypatch.setattr(trainer, "train", train)
    return made


def test_train_hands_on_what_was_asked(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    assert cli.run(["train", "a.txt", "b", "--out", out, "--steps", "40", "--seed", "5"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{Path(out) / 'release'}\n"
    assert shown.err == " 50%  step 3, loss 4.500, 50 tokens/s\n"
    (call,) = calls
    assert call["corpus"] == [Path("a.txt"), Path("b")]
    assert (call["start_from"], call["settings"]) == (None, Settings(seed=5))
    assert (call["budget"].end, call["budget"].timed) == (40, False)


def test_going_on_from_a_denoiser_is_fine_tuning(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "run" / "release").mkdir(parents=True)
    (tmp_path / "run" / "release" / "redraft.json").write_text("{}")
    for name, folder in (("embedded", HOME), (str(tmp_path / "run"), tmp_path / "run" / "release")):
        assert cli.run(["train", "a.txt", "--out", "o", "--from", name, "--minutes", "2"]) == 0
        assert calls[-1]["start_from"] == folder
        assert calls[-1]["settings"] == Settings.fine_tuning()
        assert calls[-1]["budget"].timed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--minutes", "nan"], "--minutes is nan: use a finite number above 0"),
        (["--minutes", "0"], "--minutes is 0.0: use a finite number above 0"),
        (["--steps", "0"], "--steps is 0: use a whole number from 1"),
        (["--steps", "1", "--minutes", "1"], "--minutes and --steps are both given: use one of them"),
        (["--seed=-1"], "--seed is -1: use a whole number from 0"),
        (["--from", "nowhere"], "--from is 'nowhere', where no denoiser is: use embedded, or a folder"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], message: str, calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["train", "a.txt", "--out", "o", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not calls


def test_a_corpus_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["train", str(tmp_path / "no.txt"), "--out", str(tmp_path / "o"), "--steps", "1"]) == 2
    assert "no.txt" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_ctrl_c_saves_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(corpus: list[Path], out: Path, *, stop: Callable[[], bool], **_: Any) -> None:
        assert not stop()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(trainer, "train", train)
    assert cli.run(["train", "a.txt", "--out", str(tmp_path)]) == cli.INTERRUPTED
    assert f"stopped and saved in {tmp_path}: the same command goes on" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) == before
