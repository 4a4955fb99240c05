"""Recipes: round trips without loss, every error in one sentence, the shipped recipes."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from guide_strategies import COMPOUND, SIMPLE, make, recipes
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st
from toys import Chaos, small_vocabulary

import redraft.denoiser
from redraft.denoiser import (
    Confidence,
    Denoiser,
    Drafts,
    Guide,
    HardGuide,
    InvalidGuideError,
    Settings,
    load,
)
from redraft.guidance import (
    All,
    Bias,
    Keywords,
    Pattern,
    Repetition,
    Scaled,
    Sentences,
    Tokens,
    Words,
    during,
)
from redraft.recipes import InvalidRecipeError, Recipe, discover, find, from_dict, schema, shipped, to_dict
from redraft.recipes.settings import complete, effective, over

QUICK = profile(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = sorted(discover().entries)


@pytest.fixture(scope="module")
def embedded() -> Denoiser:
    return load("embedded")


@pytest.mark.parametrize("name", NAMES)
@QUICK
@given(data=st.data())
def test_every_guide_survives_its_table(name: str, data: st.DataObject) -> None:
    guide = data.draw(make(name, SIMPLE[name]) if name in SIMPLE else COMPOUND[name])
    table = to_dict(guide)
    assert from_dict(table) == guide
    assert to_dict(from_dict(table)) == table
    assert from_dict(json.loads(json.dumps(table))) == guide


def test_no_shipped_guide_is_left_out() -> None:
    assert set(NAMES) == set(SIMPLE) | set(COMPOUND)
    assert not discover().failures


@QUICK
@given(recipe=recipes)
def test_a_recipe_survives_its_file(recipe: Recipe) -> None:
    text = recipe.to_toml()
    again = Recipe.parse(text)
    assert again == recipe
    assert again.to_toml() == text
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_shorthands_are_written_back_as_they_are_read() -> None:
    table = {"guide": "repetition", "strength_nats": 1.0, "scale": 2.0, "during": [0, 0.5]}
    guide = from_dict(table)
    assert guide == during(0, 0.5, 2.0 * Repetition(1.0))
    assert to_dict(guide) == table
    swapped = 2.0 * during(0, 0.5, Repetition(1.0))
    assert swapped != guide
    assert from_dict(to_dict(swapped)) == swapped
    assert isinstance(from_dict(to_dict(swapped)), Scaled)


def test_order_is_kept() -> None:
    guides = (Words(3, 9), Bias({"b": 1.0, "a": 2.0}), Keywords("z", "a"), Sentences(1))
    again = Recipe.parse(Recipe(guides=guides).to_toml())
    assert again.guides == guides
    assert Recipe.parse(Recipe(guides=guides[::-1]).to_toml()).guides == guides[::-1]


def test_the_file_reads_as_people_write() -> None:
    text = Recipe(
        title="A test",
        condition={"genre": "tale"},
        settings={"steps": 8, "selection": {"name": "confidence", "noise": 0.5}, "revision": "off"},
        guides=(
            Pattern("[A-Za-z ,.]+") & ~Words(3),
            Keywords("storm", ("ship", "ships")),
            2.0 * Bias({"sea": 1}),
        ),
    ).to_toml()
    assert (
        text
        == """\
version = 2
title = "A test"
model = "embedded"
samples = 1

[condition]
genre = "tale"

[settings]
steps = 8
selection = { name = "confidence", noise = 0.5, lean = 0.0 }
revision = "off"

[[guides]]
guide = "all"
guides = [
    { guide = "pattern", pattern = "[A-Za-z ,.]+", contains = false },
    { guide = "not", of = { guide = "words", least = 3 } },
]

[[guides]]
guide = "keywords"
words = ["storm", ["ship", "ships"]]
whole = true
exact_case = false
anchor = "early"

[[guides]]
guide = "bias"
phrases = { sea = 1.0 }
scale = 2.0
"""
    )


def g(table: str) -> str:
    return f"version = 1\n[[guides]]\n{table}"


def s(line: str) -> str:
    return f"version = 1\n[settings]\n{line}"


ERRORS = [
    ("", 'the recipe lacks "version": add it'),
    ("version = 3", "recipe version 3: this Redraft reads versions 1 to 2; update Redraft"),
    ("version = 0", "recipe version 0: versions begin at 1; write version = 2"),
    ("version = 1\nprompt = 'a'\nprompt = 'b'", "line 3 has prompt a second time: keep one of them"),
    ("version = true", "the recipe: version is true: use a whole number"),
    ("version = 1\nx = = 2", "this is not TOML: Invalid value (at line 2, column 5)"),
    ("version = 1\nprompts = 'a'", 'unknown key "prompts" in the recipe: did you mean "prompt"?'),
    ("version = 1\nprompt = 3", "the recipe: prompt is 3: use a string in quotes"),
    ("version = 1\nseed = true", "the recipe: seed is true: use a whole number"),
    ("version = 1\nseed = -1", "the recipe: seed is -1: use a number from 0"),
    ("version = 1\nsamples = 0", "the recipe: samples is 0: use a number from 1"),
    ("version = 1\nlength = 9.0", "the recipe: length is 9.0: use a whole number"),
    ("version = 1\nmodel = ''", "the recipe: model is '': use a string that is not empty"),
    ("version = 1\n[condition]\ngenre = 3", "the recipe: condition.genre is 3: use a string in quotes"),
    (s("stepz = 3"), 'unknown key "stepz" in settings: did you mean "steps"?'),
    (s("steps = true"), "settings: steps is true: use a whole number"),
    (s("steps = 0"), "settings: steps is 0: use a number from 1"),
    (s("temperature = nan"), "settings: temperature is nan: use a finite number"),
    (s("temperature = -0.5"), "settings: temperature is -0.5: use a number from 0"),
    (s("top_p = 2.0"), "settings: top_p is 2.0: use a number up to 1 or 'off'"),
    (s("selection = 'rando'"), "settings: unknown selection 'rando': did you mean \"random\"?"),
    (
        s("selection = {name = 'confidence', nois = 1}"),
        'unknown key "nois" in selection "confidence": did you mean "noise"?',
    ),
    (
        s("selection = {name = 'confidence', noise = true}"),
        'selection "confidence": noise is true: use a number',
    ),
    (g("guide = 'keywordz'"), 'guides[0]: unknown guide "keywordz": did you mean "keywords"?'),
    (g("words = ['a']"), 'guides[0]: a guide lacks "guide", its name: add it'),
    (
        g("guide = 'keywords'\nwrods = ['a']"),
        'guides[0]: unknown key "wrods" in guide "keywords": did you mean "words"?',
    ),
    (
        g("guide = 'keywords'\nwords = ['a', 3]"),
        'guides[0]: guide "keywords": words[1] is 3: use a string in quotes or a list',
    ),
    (
        g("guide = 'keywords'\nwords = ['']"),
        "guides[0]: a keyword is '': give a word or phrase that is not empty",
    ),
    (g("guide = 'words'"), 'guides[0]: guide "words" lacks "least": add it'),
    (g("guide = 'words'\nleast = true"), 'guides[0]: guide "words": least is true: use a whole number'),
    (g("guide = 'words'\nleast = 5.0"), 'guides[0]: guide "words": least is 5.0: use a whole number'),
    (
        g("guide = 'words'\nleast = 5\nmost = 2"),
        "guides[0]: the number of words runs from 5 to 2: put the smaller number first",
    ),
    (
        g("guide = 'words'\nleast = 5\nscale = 2.0"),
        'guides[0]: unknown key "scale" in guide "words": use one of most',
    ),
    (
        g("guide = 'bias'\nphrases = {a = nan}"),
        'guides[0]: guide "bias": phrases.a is nan: use a finite number',
    ),
    (
        g("guide = 'bias'\nphrases = {a = 1}\nscale = inf"),
        'guides[0]: guide "bias": scale is inf: use a finite number',
    ),
    (
        g("guide = 'bias'\nphrases = {a = 1}\nduring = [0.5]"),
        'guides[0]: guide "bias": during is [0.5]: a value is missing',
    ),
    (
        g("guide = 'all'\nguides = [{guide = 'words', leats = 1}]"),
        'guides[0]: guide "all": guides[0]: unknown key "leats" in guide "words": did you mean "least"?',
    ),
    (
        g("guide = 'not'\nof = 3"),
        'guides[0]: guide "not": of: a guide is a table such as {guide = "words", least = 3}, not 3',
    ),
    ("version = 1\nguides = 3", "the recipe: guides is 3: use a list"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=range(len(ERRORS)))
def test_what_is_wrong_is_said_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InvalidRecipeError) as caught:
        Recipe.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("depth", [300, 5000])
def test_deep_nesting_is_an_error_not_a_crash(depth: int) -> None:
    nested = '{guide = "not", of = ' * depth + "3" + "}" * depth
    for text in ("x = " + "[" * depth, f"version = 1\nguides = [{nested}]"):
        with pytest.raises(InvalidRecipeError):
            Recipe.parse(text)


def test_files_that_are_no_recipes_are_named(tmp_path: Path) -> None:
    cases: list[tuple[bytes, str]] = [
        (b"\xff\xfe", "is not UTF-8 text (byte 0): save it as UTF-8"),
        (b"# " + b"x" * 1_000_000, "longer than 1,000,000 bytes"),
        (
            b"version = 1\n[[guides]]\nguide = 'word'",
            ': guides[0]: unknown guide "word": did you mean "words"?',
        ),
    ]
    for raw, said in cases:
        file = tmp_path / "r.toml"
        file.write_bytes(raw)
        with pytest.raises(InvalidRecipeError, match=r"r\.toml") as caught:
            Recipe.read(file)
        assert said in str(caught.value)
    with pytest.raises(InvalidRecipeError, match="cannot be read"):
        Recipe.read(tmp_path / "none.toml")
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbfversion = 1")
    assert Recipe.read(tmp_path / "bom.toml") == Recipe()


def test_a_guide_that_no_recipe_can_name_is_refused() -> None:
    class Secret(Words):
        name = "secret"

    with pytest.raises(InvalidRecipeError, match="not registered"):
        to_dict(Secret(3))


def test_settings_lie_over_the_denoisers_own() -> None:
    own = Settings(steps=40, top_p=0.9, revision=None, selection=Confidence(0.5))
    assert over(own, {}) == own
    assert over(own, {"steps": 3}) == Settings(steps=3, top_p=0.9, selection=Confidence(0.5))
    assert over(own, {"top_p": "off"}).top_p is None
    for settings in (own, Settings(), Settings(min_p=0.1, top_k=3, temperature=0.0)):
        assert over(Settings(steps=9, top_k=7, top_p=0.3, min_p=0.2), complete(settings)) == settings


def test_override_takes_settings_by_name() -> None:
    recipe = Recipe(settings={"steps": 4}).override(temperature=0.0, seed=3)
    assert (recipe.seed, recipe.settings) == (3, {"steps": 4, "temperature": 0.0})
    with pytest.raises(TypeError, match='did you mean "steps"'):
        recipe.override(stpes=3)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_recipe_runs_and_its_hard_guides_hold(name: str, embedded: Denoiser) -> None:
    recipe = find(name)
    assert recipe.title
    assert recipe.description
    results = recipe.run(embedded, samples=2, seed=5, steps=8)
    assert results[0].text != results[1].text
    for result in results:
        assert result.satisfied
        for guide in recipe.guides:
            if isinstance(guide, HardGuide):
                assert guide.check(result.text).status == "satisfied"


def test_a_results_recipe_writes_the_text_again(embedded: Denoiser) -> None:
    asked = Recipe(
        prompt="It was late.",
        condition={"genre": "story"},
        settings={
            "steps": 6,
            "temperature": 0.7,
            "selection": "confidence",
            "top_p": 0.95,
            "revision": "uncertain",
        },
        guides=(Words(6, 14), Keywords("storm"), 2.0 * Repetition(), Tokens(5, 30)),
    )
    for result in asked.run(embedded, samples=3, seed=11):
        complete_one = Recipe.parse(Recipe.from_result(result, "embedded").to_toml())
        (again,) = complete_one.run(embedded)
        assert again.text == result.text
        assert again.tokens == result.tokens


def test_the_page_on_recipes_tells_the_truth(
    embedded: Denoiser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")
    for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        Recipe.parse(block if "version" in block else f"version = 1\n{block}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: embedded)
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, {})


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(references(item) for item in value.values()))
    return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()


def test_the_schema_knows_every_guide() -> None:
    whole = schema()
    json.dumps(whole)
    assert references(whole) <= {f"#/$defs/{name}" for name in whole["$defs"]}
    for name in NAMES:
        assert whole["$defs"][f"guide {name}"]["additionalProperties"] is False
    soft = {item["$ref"].split()[-1] for item in whole["$defs"]["soft guide"]["oneOf"]}
    assert {"bias", "repetition", "scaled"} <= soft
    assert "keywords" not in soft


def test_the_schema_takes_the_shipped_recipes_and_refuses_others() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema())
    for recipe in shipped().values():
        validator.validate(tomllib.loads(recipe.text))
    assert not validator.is_valid({"version": 1, "guides": [{"guide": "words", "leats": 3}]})


def test_a_recipe_takes_tables_and_guides_alike() -> None:
    table: Any = {"guide": "words", "least": 3}
    assert Recipe(guides=(table,)).guides == (Words(3),)
    mixed: list[Guide] = [All(Words(3), Pattern("a+"))]
    assert Recipe(guides=tuple(mixed)).guides == tuple(mixed)
    with pytest.raises(InvalidGuideError):
        Recipe(guides=("words",))  # type: ignore[arg-type]


def test_json_is_read_as_well() -> None:
    """A recipe as a JSON object, and what `redraft write --json` printed, whose recipe is inside."""
    recipe = Recipe(seed=3, samples=1, guides=(Keywords("storm"), 2.0 * Repetition()))
    assert Recipe.parse(json.dumps(recipe.to_dict())) == recipe
    assert Recipe.parse(json.dumps({"text": "A storm.", "seed": 3, "recipe": recipe.to_dict()})) == recipe
    with pytest.raises(InvalidRecipeError, match=r"this is not JSON: .*line 1 column 2"):
        Recipe.parse("{storm}")
    with pytest.raises(InvalidRecipeError, match="unknown key"):
        Recipe.parse('{"keywrods": 1}')


def test_a_recipe_writes_as_many_drafts_as_the_denoiser_says_where_they_can_differ() -> None:
    denoiser = Chaos(small_vocabulary())
    assert effective(denoiser, {}).particles is None
    denoiser.drafts = 3
    drafts = effective(denoiser, {"steps": 4}).particles
    assert drafts == Drafts(3)
    assert len(Recipe(seed=1, settings={"steps": 2}).run(denoiser)[0].particles.texts) == 3  # type: ignore[union-attr]
    assert effective(denoiser, {"temperature": 0.0}).particles is None
    assert effective(denoiser, {"particles": "off"}).particles is None
    own = effective(denoiser, {"particles": {"count": 2, "potential": "max"}}).particles
    assert own is not None
    assert (own.count, own.potential, own.likelihood) == (2, "max", 0.0)
    blockwise = Chaos(small_vocabulary(), block=4)
    blockwise.drafts = 3
    assert effective(blockwise, {}).particles is None
