"""`redraft recipes explain` and `diff`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from toys import Chaos, small_vocabulary

import redraft.denoiser
from redraft.denoiser import Denoiser, Scene, Steering
from redraft.guidance import Forbid, Keywords, Pattern, Words
from redraft.recipes import Recipe, cli, explaining
from redraft.recipes.explaining import explained, told

Run = Callable[..., tuple[int, str, str]]

RECIPE = """
version = 2
title = "A storm"
seed = 3
[parameters]
word = { type = "string", default = "storm", description = "What it is about." }
spare = 3
[settings]
steps = 4
[[guides]]
guide = "keywords"
words = [{ parameter = "word" }]
[[guides]]
guide = "words"
least = 2
most = 6
[[guides]]
guide = "repetition"
"""


@pytest.fixture
def toy() -> Denoiser:
    return Chaos(small_vocabulary())


@pytest.fixture
def run(
    toy: Denoiser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Run:
    monkeypatch.setattr(explaining, "load", lambda *_, **__: toy)
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: toy)
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(RECIPE)
    Path("b.toml").write_text('version = 2\nextends = "a.toml"\nseed = 4\nwithout = ["repetition"]\n')

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.run(["recipes", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_what_a_recipe_comes_to(run: Run, toy: Denoiser) -> None:
    code, out, _ = run("explain", "b.toml", "--json", "--set", "word=sea")
    table = json.loads(out)
    assert code == 0
    assert table["extends"] == ["a.toml"]
    assert [(p["name"], p["value"], p["default"], p["places"]) for p in table["parameters"]] == [
        ("word", "sea", "storm", ["guides[0].words[0]"]),
        ("spare", 3, 3, []),
    ]
    assert table["settings"]["steps"] == {"value": 4, "from": "recipe"}
    assert table["settings"]["temperature"] == {"value": toy.settings.temperature, "from": "denoiser"}
    assert [guide["guide"] for guide in table["guides"]] == ["Keywords('sea')", "Words(2-6)"]
    assert table["conflict"] is None
    length = table["canvas"]["length"]
    scene = Scene(toy.vocabulary, toy.device, 1, length, 4)
    alone = [guide.bind(scene).language() for guide in (Keywords("sea"), Words(2, 6))]
    assert [guide["states"] for guide in table["guides"]] == [
        language.states for language in alone if language
    ]
    whole = Steering((Keywords("sea"), Words(2, 6)), scene).automaton
    assert (table["together"]["states"], table["together"]["classes"]) == whole.delta.shape
    assert table["together"]["operations"] == length * whole.delta.size
    assert table["together"]["step_guides_ms"] > 0


def test_the_length_is_the_one_that_write_chooses(run: Run, toy: Denoiser) -> None:
    for guides in ((), (Keywords("storm"),), (Words(20, 24), Keywords("storm")), (Pattern("[0-9]{40}"),)):
        recipe = Recipe(seed=1, settings={"steps": 1}, guides=guides)
        assert explained(recipe, toy, measure=False)["canvas"]["length"] == recipe.run(toy)[0].length
    assert explained(Recipe(length=9), toy, measure=False)["canvas"] == {"length": 9, "why": "recipe"}


def test_it_is_told_in_words(run: Run) -> None:
    code, out, _ = run("explain", "a.toml")
    assert code == 0
    for said in (
        "A storm\n",
        '  word = "storm"  string (in guides[0].words[0])  What it is about.\n',
        "  spare = 3  integer (not used)\n",
        "  steps = 4  recipe\n",
        "  Keywords('storm')\n    guarantees: Every keyword",
        "  Repetition(strength_nats=2.0)\n    encourages: ",
        "no conflict: texts exist that keep to every guarantee\n",
    ):
        assert said in out
    assert "together " in out


def test_conflicts_are_found_and_named(run: Run, toy: Denoiser) -> None:
    Path("c.toml").write_text(
        'version = 2\nextends = "a.toml"\n[[guides]]\nguide = "forbid"\nphrases = [{ parameter = "word" }]\n'
    )
    code, out, _ = run("explain", "c.toml")
    assert code == 3
    assert "CONFLICT Keywords('storm') and Forbid('storm') contradict" in out
    table = explained(Recipe(guides=(Keywords("sea"), Words(2), Forbid("sea"))), toy)
    assert table["conflict"]["guides"] == ["Keywords('sea')", "Forbid('sea')"]
    assert table["together"] is None
    assert any(line.startswith("\nCONFLICT") for line in told(table))


def test_an_unfinished_recipe_says_what_it_lacks(run: Run) -> None:
    Path("u.toml").write_text(
        'version = 2\nprompt = { parameter = "x" }\n[parameters]\nx = { type = "string" }\n'
    )
    code, out, err = run("explain", "u.toml")
    assert (code, out) == (2, "")
    assert "--set x=VALUE" in err
    assert run("explain", "u.toml", "--set", "x=Hello")[0] == 0


def test_recipes_are_compared(run: Run) -> None:
    code, out, _ = run("diff", "a.toml", "b.toml")
    assert code == 1
    assert out == '~ seed: 3 -> 4\n- { guide = "repetition", strength_nats = 2.0 }\n'
    assert run("diff", "a.toml", "a.toml") == (0, "", "")
    assert run("diff", "a.toml", "c.toml")[0] == 2
