"""The command `redraft`: what it writes, where it writes it, how it fails."""

from __future__ import annotations

import importlib
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import redraft.denoiser
from redraft.denoiser import Denoiser, load
from redraft.recipes import Recipe, cli, registry

Run = Callable[..., tuple[int, str, str]]
COMMAND = [sys.executable, "-m", "redraft.recipes"]


@pytest.fixture(scope="module")
def embedded() -> Denoiser:
    return load("embedded")


@pytest.fixture
def run(embedded: Denoiser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command here, on a denoiser that is loaded once; gives exit code, output and errors."""
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: embedded)
    return runner(monkeypatch, capsys)


@pytest.fixture
def run_without_model(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command here; loading a model fails the test."""

    def refuse(*_: object, **__: object) -> Denoiser:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(redraft.denoiser, "load", refuse)
    return runner(monkeypatch, capsys)


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str, given: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        capsys.readouterr()
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


# -- write ---------------------------------------------------------------------------------------------------


def test_write_gives_what_was_asked_and_the_seed_decides(run: Run) -> None:
    asked = (
        "write",
        "--keyword",
        "lighthouse",
        "--keyword",
        "storm",
        "--words",
        "8-20",
        "--steps",
        "8",
        "--seed",
    )
    code, out, _ = run(*asked, "7")
    assert code == 0
    words = out.lower().replace(",", " ").replace(".", " ").split()
    assert {"lighthouse", "storm"} <= set(words)
    assert 8 <= len(out.split()) <= 20
    assert run(*asked, "7")[1] == out
    assert run(*asked, "8")[1] != out


def test_json_and_choices(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "array", "items": {"enum": ["é", 3]}, "minItems": 2}', encoding="utf-8")
    code, out, _ = run("write", "--json-schema", str(file), "--seed", "1", "--steps", "2", "--length", "24")
    assert code == 0
    assert set(json.loads(out)) <= {"é", 3}
    assert len(json.loads(out)) >= 2
    code, out, _ = run("write", "--one-of", "storm", "--one-of", "a calm sea", "--seed", "1", "--steps", "2")
    assert code == 0
    assert out.strip() in ("storm", "a calm sea")


def test_plain_output_is_the_texts_and_nothing_else(run: Run) -> None:
    code, out, err = run("write", "--pattern", "[a-z]{3,9}", "--samples", "3", "--seed", "4", "--steps", "4")
    assert (code, err) == (0, "")
    assert [bool(block.strip()) for block in out.rstrip("\n").split("\n\n")] == [True] * 3
    assert "seed" not in out


def test_a_random_seed_is_said(run: Run) -> None:
    code, out, err = run("write", "--pattern", "[a-z]{3,9}", "--steps", "2")
    assert code == 0
    seed = err.removeprefix("seed ").strip()
    assert run("write", "--pattern", "[a-z]{3,9}", "--steps", "2", "--seed", seed)[1] == out


def test_json_is_complete_and_feeds_back(run: Run, embedded: Denoiser, tmp_path: Path) -> None:
    code, out, err = run(
        "write", "two-sentence-story", "--keyword", "ship|ships", "--samples", "2", "--steps", "6",
        "--seed", "3", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["seed"] for line in lines] == [3, 4]
    for line in lines:
        assert list(line) == [
            "text", "seed", "recipe", "verdicts", "steps", "forward_passes", "pressure", "timing", "particles",
        ]  # fmt: skip
        assert line["steps"] == len(line["pressure"])
        assert set(line["timing"]) == {"denoiser_ms", "guidance_ms", "total_ms"}
        for verdict in line["verdicts"]:
            assert verdict["strength"] in ("guaranteed", "encouraged", "searched")
            assert verdict["status"] in ("satisfied", "violated", "unknown")
        (keywords,) = [v for v in line["verdicts"] if v["guide"].startswith("Keywords")]
        spans = [line["text"][span["start"] : span["end"]].lower() for span in keywords["spans"]]
        assert spans
        assert set(spans) <= {"ship", "ships"}
        (again,) = Recipe.from_dict(line["recipe"]).run(embedded)
        assert again.text == line["text"]


def test_the_best_of_eight_drafts_is_written_where_nothing_else_is_said(run: Run, tmp_path: Path) -> None:
    common = ("write", "--words", "5-9", "--steps", "3", "--seed", "4", "--json")

    def particles(*options: str) -> dict[str, Any] | None:
        code, out, err = run(*common, *options)
        assert (code, err) == (0, "")
        (line,) = map(json.loads, out.splitlines())
        population = line.get("particles")
        assert line["forward_passes"] == line["steps"] * (len(population["texts"]) if population else 1)
        if population:
            assert line["text"] == max(population["texts"], key=lambda one: one["score"])["text"]
        return population

    eight = particles()
    assert eight is not None
    assert len(eight["texts"]) == 8
    three = particles("--drafts", "3")
    assert three is not None
    assert [one["text"] for one in three["texts"]] == [one["text"] for one in eight["texts"][:3]]
    assert particles("--drafts", "1") is None
    assert particles("--temperature", "0") is None  # all drafts were the same
    file = tmp_path / "r.toml"
    file.write_text('version = 1\n[settings]\nparticles = "off"\n')
    assert particles(str(file)) is None
    for wrong in ("0", "-3"):
        code, _, err = run(*common, "--drafts", wrong)
        assert code == 2
        assert f"--drafts is {wrong}" in err
    code, _, err = run(*common, "--drafts", "2", "--temperature", "0")
    assert code == 2
    assert "temperature 0" in err


def test_json_tells_pushes_and_particles_where_there_are_any(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    text = (
        "version = 1\nlength = 6\nseed = 3\n[settings]\nsteps = 2\nparticles = {count = 3}\n"
        "[[guides]]\nguide = 'style'\nstyle = 'formal'\ntarget = 0.9\n"
    )
    file.write_text(text)
    line = json.loads(run("write", str(file), "--json")[1])
    (result,) = Recipe.parse(text).run(redraft.denoiser.load("embedded"))
    population = result.particles
    assert population is not None
    assert {name: pytest.approx(list(pushes), abs=1e-4) for name, pushes in result.pushes.items()} == line[
        "pushes"
    ]
    assert [len(pushes) for pushes in line["pushes"].values()] == [line["steps"]]
    told = line["particles"]
    assert list(told) == ["texts", "chosen", "log_z", "ess", "resampled"]
    assert [one["text"] for one in told["texts"]] == list(population.texts)
    assert [one["weight"] for one in told["texts"]] == pytest.approx(population.weights, abs=1e-6)
    assert [one["score"] for one in told["texts"]] == pytest.approx(population.scores, abs=1e-6)
    assert told["texts"][told["chosen"]]["text"] == line["text"]
    assert [told["log_z"], *told["ess"]] == pytest.approx([population.log_z, *population.ess], abs=1e-4)
    assert told["resampled"] == list(population.resampled)


def test_a_saved_recipe_writes_all_its_texts_again(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "saved.toml"
    asked = ("write", "two-sentence-story", "--samples", "2", "--steps", "5")
    code, out, _ = run(*asked, "--save-recipe", str(file))
    assert code == 0
    assert tomllib.loads(file.read_text())["title"] == "A story in two sentences"
    assert run("write", str(file))[1] == out
    assert run("write", "-", given=file.read_text())[1] == out
    code, out, err = run("write", "-", given="version = 1\nsede = 3")
    assert (code, out) == (2, "")
    assert err == 'redraft: standard input: unknown key "sede" in the recipe: did you mean "seed"?\n'


def test_options_are_added_to_a_recipe_or_take_the_place_of_its_own(run: Run) -> None:
    code, out, _ = run(
        "write", "two-sentence-story", "--words", "20-", "--keyword", "storm", "--temperature", "0.5",
        "--condition", "genre=tale", "--condition", "tone=positive", "--steps", "4", "--json", "--seed", "1",
    )  # fmt: skip
    assert code == 0
    recipe = json.loads(out)["recipe"]
    named = [guide["guide"] for guide in recipe["guides"]]
    assert named == ["sentences", "repetition", "keywords", "words"]
    assert recipe["guides"][-1] == {"guide": "words", "least": 20}
    assert recipe["condition"] == {"genre": "tale", "tone": "positive"}
    assert (recipe["settings"]["temperature"], recipe["settings"]["steps"]) == (0.5, 4)


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("5-9", 5, 9), ("5", 5, 5), ("5-", 5, None), (" 5 - 9 ", 5, 9), ("0-0", 0, 0)],
)
def test_ranges(value: str, least: int, most: int | None) -> None:
    from redraft.recipes.options import parse_range

    assert parse_range("--words", value) == {"least": least} | ({} if most is None else {"most": most})


REFUSED: list[tuple[list[str], str]] = [
    (["--words", "30-15"], "--words: the number of words runs from 30 to 15: put the smaller number first"),
    (
        ["--words", "-5-3"],
        "--words is '-5-3': write A-B, A for exactly A, or A- for at least A, such as 15-30",
    ),
    (
        ["--sentences", "x"],
        "--sentences is 'x': write A-B, A for exactly A, or A- for at least A, such as 15-30",
    ),
    (["--sentences", "0-2"], "--sentences: the number of sentences is 0: use a whole number from 1"),
    (["--keyword", " "], "--keyword: a keyword is ' ': give a word or phrase that is not empty"),
    (["--keyword", "ship|"], "--keyword: an alternative of a keyword is '': give a word or phrase"),
    (["--forbid", ""], "--forbid: a forbidden phrase is '': give a word or phrase that is not empty"),
    (["--pattern", "a\\q"], "unknown escape \\q at position 1"),
    (["--json-schema", "no-such-file"], "--json-schema: no-such-file cannot be read"),
    (["--pattern", "(a"], "--pattern: regex '(a': missing ), unterminated subpattern at position 0"),
    (["--template", "no blank"], "--template: the template 'no blank' has no blank"),
    (["--style", "formall"], "--style: the style of Style is 'formall'"),
    (["--sentiment", "good"], "--sentiment: the tone of Sentiment is 'good'"),
    (["--temperature", "nan"], "settings: temperature is nan: use a finite number"),
    (["--temperature", "inf"], "settings: temperature is inf: use a finite number"),
    (["--temperature=-1"], "settings: temperature is -1.0: use a number from 0"),
    (["--steps", "0"], "settings: steps is 0: use a number from 1"),
    (["--selection", "rando"], "settings: unknown selection 'rando': did you mean \"random\"?"),
    (["--seed=-1"], "the recipe: seed is -1: use a number from 0"),
    (["--samples", "0"], "the recipe: samples is 0: use a number from 1"),
    (["--length", "0"], "the recipe: length is 0: use a number from 1"),
    (["--condition", "genre"], "--condition is 'genre': write KIND=VALUE, such as genre=tale"),
    (["cheerful-noet"], 'no recipe "cheerful-noet", shipped or in a file: did you mean "cheerful-note"?'),
    (["./none.toml"], "none.toml cannot be read: No such file or directory"),
    (
        ["--save-recipe", "no/such/folder/r.toml"],
        "--save-recipe is 'no/such/folder/r.toml': make its folder first",
    ),
    (["--nosuch"], "No such option: --nosuch"),
    (["--keyword", "\udcff"], "'\\udcff' is not text in UTF-8: write it in UTF-8"),
    (["--temperature", "warm"], "Invalid value for '--temperature'"),
    (["one", "two"], "unexpected extra argument"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), REFUSED, ids=[ascii(" ".join(case[0])) for case in REFUSED]
)
def test_bad_input_is_refused_before_a_model_is_loaded(
    arguments: list[str], message: str, run_without_model: Run
) -> None:
    code, out, err = run_without_model("write", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--keyword", "storm", "--forbid", "storm"], 3, "Keywords('storm') and Forbid('storm') contradict"),
        (["--keyword", "ship", "--keyword", "storm", "--keyword", "sea", "--words", "1-2"], 3, "contradict"),
        (["--template", "word " * 200 + "___"], 3, "cannot fit a canvas of"),
        (["--condition", "genre=tael"], 2, "genre is 'tael': use one of"),
        (["--condition", "gnre=tale"], 2, "has no condition 'gnre'"),
        (["--length", "5000"], 2, "length is 5000"),
    ],
)
def test_what_the_denoiser_must_judge_is_refused_before_it_runs(
    arguments: list[str],
    code: int,
    message: str,
    run: Run,
    embedded: Denoiser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a forward pass was made")

    monkeypatch.setattr(type(embedded), "__call__", refuse)
    got, out, err = run("write", *arguments)
    assert (got, out) == (code, "")
    assert message in err
    assert err.startswith("redraft: ")
    assert err.count("\n") == 1


def test_many_texts_come_a_batch_at_a_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from redraft.recipes import writing

    asked = ("write", "--pattern", "[a-z]{3,9}", "--samples", "5", "--seed", "8", "--steps", "3", "--json")
    whole = [json.loads(line) for line in run(*asked)[1].splitlines()]
    monkeypatch.setattr(writing, "BATCH", 2)
    cut = [json.loads(line) for line in run(*asked)[1].splitlines()]
    assert [(line["seed"], line["text"]) for line in cut] == [(line["seed"], line["text"]) for line in whole]
    code, out, err = run("write", "--samples", "9", "--seed", str(2**63 - 5))
    assert (code, out) == (2, "")
    assert "use a number up to 9223372036854775807" in err


# -- check ---------------------------------------------------------------------------------------------------

RECIPE = """
version = 1
[[guides]]
guide = "keywords"
words = ["storm"]
[[guides]]
guide = "words"
least = 2
most = 4
[[guides]]
guide = "repetition"
"""


def test_check_judges_each_line_without_a_model(run_without_model: Run, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPE)
    good, bad = "A storm came.\n\nStorm on storm on.\r\n", "A storm came.\nNothing at all came of it.\n"
    code, out, err = run_without_model("check", str(recipe), given=good)
    assert code == 0
    assert "2 of 2 texts hold" in err
    code, out, err = run_without_model("check", str(recipe), "-", given=bad)
    assert code == 1
    assert "Keywords('storm')  missing: storm" in out
    assert "1 of 2 texts hold" in err
    (tmp_path / "t.txt").write_text(bad)
    code, out, _ = run_without_model("check", str(recipe), str(tmp_path / "t.txt"), "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [line["holds"] for line in lines] == [True, False]
    assert [v["status"] for v in lines[1]["verdicts"]] == ["violated", "violated", "satisfied"]


def test_a_soft_guide_does_not_fail_a_check(run_without_model: Run, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPE)
    code, out, _ = run_without_model("check", str(recipe), given="Storm storm storm.\n")
    assert code == 0
    assert "Repetition" in out


def test_check_loads_a_model_for_what_only_its_vocabulary_knows(run: Run, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text("version = 1\n[[guides]]\nguide = 'tokens'\nleast = 1\nmost = 3\n")
    assert run("check", str(recipe), given="the\n")[0] == 0
    assert run("check", str(recipe), given="the " * 20 + "\n")[0] == 1


@pytest.mark.parametrize("given", ["", "\n \n"])
def test_nothing_to_check_is_an_error(given: str, run_without_model: Run) -> None:
    code, out, err = run_without_model("check", "two-sentence-story", given=given)
    assert (code, out) == (2, "")
    assert "standard input has no text" in err


def test_check_takes_what_write_gives(run: Run) -> None:
    _, out, _ = run("write", "fill-the-blanks", "--samples", "2", "--steps", "6", "--seed", "2")
    assert run("check", "fill-the-blanks", given=out)[0] == 0


# -- recipes, guides, doctor ---------------------------------------------------------------------------------


def test_recipes_are_listed_and_shown(run_without_model: Run) -> None:
    code, out, _ = run_without_model("recipes")
    assert code == 0
    names = [line.split()[0] for line in out.splitlines() if not line.startswith(" ")]
    assert len(names) == 8
    assert run_without_model("recipes", "list")[1] == out
    for name in names:
        assert Recipe.parse(run_without_model("recipes", "show", name)[1]).title in out
    code, out, err = run_without_model("recipes", "show", "fairy-tail-opening")
    assert (code, out) == (2, "")
    assert 'did you mean "fairy-tale-opening"?' in err
    assert json.loads(run_without_model("recipes", "schema")[1])["title"] == "Redraft recipe"


def test_guides_are_described(run_without_model: Run) -> None:
    code, out, err = run_without_model("guides")
    assert (code, err) == (0, "")
    assert "keywords (guaranteed) from redraft" in out
    assert "    words: list of (string or list of string)\n" in out
    assert "    phrases: table of number by string\n    and scale, during\n" in out


def test_doctor_finds_all_well(run: Run) -> None:
    code, out, _ = run("doctor")
    assert code == 0, out
    for what in ("redraft", "torch", "device", "embedded denoiser", "model cache", "guides"):
        assert any(line.startswith("ok") and what in line for line in out.splitlines())


# -- plugins -------------------------------------------------------------------------------------------------

PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import SoftGuide
from redraft.guidance import Words


@dataclass(frozen=True)
class Loud(SoftGuide):
    name: ClassVar[str] = "loud"
    level: int = 1

    def bind(self, scene):
        return 1 / (self.level - 1)

    def check(self, text):
        return self.verdict(True)


class NoName(Words):
    pass


class Words2(Words):
    pass
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution `redraft-loud 2.5`: one guide that works until it is bound, four that never do."""
    (tmp_path / "redraft_loud.py").write_text(PLUGIN)
    info = tmp_path / "redraft_loud-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: redraft-loud\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(
        textwrap.dedent(
            """
            [redraft.guides]
            loud = redraft_loud:Loud
            gone = redraft_gone:Gone
            mute = redraft_loud:Mute
            other = redraft_loud:NoName
            words = redraft_loud:Words2
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry.discover.cache_clear()
    yield
    registry.discover.cache_clear()
    sys.modules.pop("redraft_loud", None)


@pytest.mark.usefixtures("plugin")
def test_plugins_are_listed_and_what_fails_is_named(run: Run) -> None:
    code, out, err = run("guides")
    assert code == 0
    assert "loud (encouraged) from redraft-loud 2.5" in out
    said = {line.split('"')[1]: line for line in err.splitlines()}
    assert set(said) == {"gone", "mute", "other", "words"}
    assert "redraft-loud 2.5: redraft_gone:Gone does not load: ModuleNotFoundError" in said["gone"]
    assert "AttributeError" in said["mute"]
    assert 'calls itself "words": set name = "other"' in said["other"]
    assert "redraft (source tree) and redraft-loud 2.5: the name is claimed twice" in said["words"] or (
        "claimed twice" in said["words"] and "redraft-loud 2.5" in said["words"]
    )
    code, out, err = run("doctor")
    assert code == 1
    assert "redraft_gone" in out


@pytest.mark.usefixtures("plugin")
def test_a_failed_plugin_is_an_error_only_for_who_asks_for_it(run: Run, tmp_path: Path) -> None:
    assert run("write", "--keyword", "storm", "--steps", "2", "--seed", "1")[0] == 0
    file = tmp_path / "r.toml"
    for name, said in (("gone", "ModuleNotFoundError"), ("words", "claimed twice")):
        file.write_text(f"version = 1\n[[guides]]\nguide = '{name}'\nleast = 3\n")
        code, out, err = run("write", str(file))
        assert (code, out) == (2, "")
        assert "redraft-loud 2.5" in err
        assert said in err


@pytest.mark.usefixtures("plugin")
def test_a_plugin_that_crashes_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text("version = 1\n[[guides]]\nguide = 'loud'\nlevel = 1\n")
    code, out, err = run("write", str(file))
    assert (code, out) == (2, "")
    assert err.startswith(
        'redraft: guide "loud" of redraft-loud 2.5 failed: ZeroDivisionError: division by zero'
    )


# -- the terminal --------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("samples", [1, 3])
def test_on_a_terminal_the_draft_is_live_and_verdicts_follow(
    samples: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    asked = ["write", "--keyword", "storm", "--words", "5-9", "--steps", "3", "--seed", "41"]
    assert run(*asked, "--samples", str(samples))[0] == 0
    shown = terminal.getvalue()
    assert "step 3 of 3" in shown
    assert "\x1b[2m" in shown  # open positions are dim
    assert "\x1b[1;97m" in shown  # commits are bright
    last = shown[shown.rindex("step 3 of 3") :]
    assert shown.count("\u2713") == 2 * samples
    assert "guaranteed" in last
    assert f"seed {41 + samples - 1}," in last


# -- the process ---------------------------------------------------------------------------------------------


def spawn(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300, **options)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["write", "--help"], ["recipes"], ["recipes", "show", "x"]]
)
def test_light_commands_load_no_model_library(arguments: list[str]) -> None:
    trace = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    loaded = {line.rsplit("|", 1)[-1].strip() for line in trace.stderr.splitlines() if "import time" in line}
    assert "redraft.recipes.cli" in loaded
    assert not loaded & {"torch", "transformers", "numpy", "redraft.denoiser"}


def test_the_whole_process_writes_checks_and_says_what_is_wrong(tmp_path: Path) -> None:
    written = spawn("write", "two-sentence-story", "--steps", "3", "--seed", "1")
    assert written.returncode == 0, written.stderr
    assert spawn("check", "two-sentence-story", input=written.stdout).returncode == 0
    refused = spawn("write", "--words", "9-3")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "redraft: --words: the number of words runs from 9 to 3: put the smaller number first\n"
    )
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    narrow = spawn("write", "--template", "Caf\u00e9 ___", "--steps", "1", "--seed", "1", env=ascii_only)
    assert narrow.returncode == 0
    assert narrow.stdout.startswith("Caf? ")


def test_nobody_reading_on_is_quiet(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("One. Two.\n" * 20_000)
    process = subprocess.Popen(
        [*COMMAND, "check", "two-sentence-story", str(texts)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), err) == (cli.UNREAD, b"")


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_ctrl_c_leaves_cleanly() -> None:
    # A child inherits "ignored", as behind nohup.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*COMMAND, "check", "two-sentence-story"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    assert process.stdin
    assert process.stdout
    process.stdin.write("One. Two.\n")
    process.stdin.flush()
    process.stdout.readline()  # it is up and waits for the next line
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED
    assert "Traceback" not in err
