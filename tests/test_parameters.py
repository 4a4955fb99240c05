"""Parameters, inheritance and versions of recipes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from guide_strategies import recipes
from hypothesis import given
from hypothesis import strategies as st

from redraft.guidance import Bias, Infill, Keywords, Pattern, Repetition, Sentences, Words, during
from redraft.recipes import InvalidRecipeError, Recipe, find, schema, shipped
from redraft.recipes.differing import differences
from redraft.recipes.parameters import declared, parse_assignments
from redraft.recipes.versions import VERSION

LETTER = """
version = 2
title = "A letter"
samples = { parameter = "copies" }
prompt = { join = ["Dear ", { parameter = "hero" }, ", no. ", { parameter = "copies" }] }

[parameters]
hero = { type = "string", description = "Who gets it." }
tone = { default = "positive", choices = ["positive", "negative"] }
copies = { type = "integer", default = 2, least = 1, most = 9 }
weight = 1.5
whole = true
more = ["sea", "ship"]

[condition]
tone = { parameter = "tone" }

[settings]
temperature = { parameter = "weight" }

[[guides]]
guide = "keywords"
words = [{ parameter = "hero" }, { parameter = "more" }]
whole = { parameter = "whole" }

[[guides]]
guide = "bias"
phrases = { sea = { parameter = "weight" } }
scale = { parameter = "weight" }
"""


def test_parameters_stand_wherever_a_value_does() -> None:
    recipe = Recipe.parse(LETTER).with_parameters(hero="Ada", copies=3)
    assert recipe.prompt == "Dear Ada, no. 3"
    assert recipe.samples == 3
    assert recipe.condition == {"tone": "positive"}
    assert recipe.settings == {"temperature": 1.5}
    assert recipe.guides == (Keywords("Ada", ("sea", "ship")), 1.5 * Bias({"sea": 1.5}))
    assert recipe.with_parameters(weight=2).guides[1] == 2.0 * Bias({"sea": 2.0})
    assert dict(recipe.parameters)["more"] == ("sea", "ship")


def test_what_is_written_is_complete_and_has_no_parameters() -> None:
    recipe = Recipe.parse(LETTER).with_parameters(hero="Ada")
    again = Recipe.parse(recipe.to_toml())
    assert again == recipe
    assert not again.parameters


def test_an_unfinished_recipe_takes_the_missing_value_and_nothing_else() -> None:
    recipe = Recipe.parse(LETTER)
    assert recipe.title == "A letter"
    assert "hero" in repr(recipe)
    actions: list[Any] = [
        lambda: recipe.guides,
        lambda: recipe.prompt,
        recipe.to_dict,
        lambda: recipe.override(seed=1),
        lambda: recipe.run(),
    ]
    for act in actions:
        with pytest.raises(InvalidRecipeError, match=r'"hero" has no value: give --set hero=VALUE'):
            act()
    assert recipe.with_parameters(hero="Bo").samples == 2
    assert recipe == Recipe.parse(LETTER)


WRONG: list[tuple[dict[str, object], str]] = [
    ({"heroine": "Ada"}, 'the recipe has no parameter "heroine": did you mean "hero"?'),
    ({"hero": 3}, 'parameter "hero" is 3: use a string'),
    ({"copies": 3.0}, 'parameter "copies" is 3.0: use a whole number'),
    ({"copies": True}, 'parameter "copies" is true: use a whole number'),
    ({"copies": 0}, 'parameter "copies" is 0: use a number from 1'),
    ({"copies": 10}, 'parameter "copies" is 10: use a number up to 9'),
    ({"tone": "good"}, 'parameter "tone" is "good": use "positive" or "negative"'),
    ({"weight": float("nan")}, 'parameter "weight" is nan: use a finite number'),
    ({"more": ["a", 3]}, 'parameter "more" is ["a", 3]: use a list of strings'),
    ({"more": "a"}, 'parameter "more" is "a": use a list of strings'),
    ({"whole": 1}, 'parameter "whole" is 1: use true or false'),
]


@pytest.mark.parametrize(("values", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_wrong_values_are_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRecipeError) as caught:
        Recipe.parse(LETTER).with_parameters(values)
    assert str(caught.value) == message


def p(line: str, rest: str = "") -> str:
    return f"version = 2\n{rest}\n[parameters]\n{line}"


BAD = [
    (p("x = { type = 'text' }"), "parameter \"x\": type is 'text': use 'string', 'integer'"),
    (p("x = {}"), 'parameter "x" lacks "type": use string, integer, number, boolean or list'),
    (p("x = { type = 'string', defualt = 'a' }"), 'unknown key "defualt" in parameter "x": did you mean "default"?'),
    (p("x = { type = 'integer', default = 'a' }"), 'parameter "x" is "a": use a whole number'),
    (p("x = { type = 'string', least = 3 }"), "least and most are for numbers, and it is a string"),
    (p("x = { default = 3, least = 4 }"), 'parameter "x" is 3: use a number from 4'),
    (p("x = { default = 3, least = 4, most = 2 }"), "runs from 4 to 2: put the smaller number first"),
    (p("x = { default = 'a', choices = ['b'] }"), 'parameter "x" is "a": use "b"'),
    (p("x = { type = 'string', choices = [3] }"), 'parameter "x" is 3: use a string'),
    (p("x = [1, 2]"), 'parameter "x" is [1, 2]: give a default'),
    (p("'a b' = 3"), 'parameter "a b": a name is letters'),
    (p("seed = 3"), 'parameter "seed": the name has a meaning of its own'),
    ("version = 2\nparameters = 3", "parameters is 3: use a table"),
    (p("x = 3", "prompt = { parameter = 'y' }"), 'prompt: parameter "y" is not declared: use one of x'),
    ("version = 2\nprompt = { parameter = 'y' }", 'prompt: parameter "y" is not declared: add it under [parameters]'),
    (p("x = 'a'", "title = { parameter = 'x' }"), "title is a parameter: write it out"),
    (p("x = 3", "prompt = { parameter = 'x' }"), "the recipe: prompt is 3: use a string in quotes"),
    (p("x = true", "prompt = { join = [{ parameter = 'x' }] }"), "join has True: its pieces are strings, numbers"),
    (p("x = 'a'", "prompt = { parameter = 'x', escape = 'html' }"), "escape is 'html': use pattern or template"),
    ("version = 1\n[parameters]\nx = 3", '"parameters" is a key of recipe version 2: write version = 2'),
    ("version = 99", f"recipe version 99: this Redraft reads versions 1 to {VERSION}; update Redraft"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_wrong_declarations_and_references_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidRecipeError) as caught:
        Recipe.parse(text)
    assert message in str(caught.value)


def test_assignments_of_the_command_are_parsed_by_type() -> None:
    known = declared(tomllib.loads(LETTER)["parameters"])
    given = ["hero=a=b", "copies= 4", "weight=-2e-1", "whole=False", "more=a, b,", "tone=negative"]
    assert parse_assignments(known, given) == {
        "hero": "a=b", "copies": 4, "weight": -0.2, "whole": False, "more": ("a", "b"), "tone": "negative",
    }  # fmt: skip
    assert parse_assignments(known, ['more=["a, b"]']) == {"more": ("a, b",)}
    assert parse_assignments(known, ["hero="]) == {"hero": ""}
    for pair, said in [
        ("copies=four", 'parameter "copies" is "four": use a whole number'),
        ("copies=4.0", "use a whole number"),
        ("whole=yes", "use true or false"),
        ("weight=inf", "use a finite number"),
        ("more=[1]", "use a list of strings"),
        ("hero", "--set is 'hero': write NAME=VALUE"),
        ("heor=a", 'did you mean "hero"?'),
    ]:
        with pytest.raises(InvalidRecipeError) as caught:
            parse_assignments(known, [pair])
        assert said in str(caught.value)
    with pytest.raises(InvalidRecipeError, match="twice"):
        parse_assignments(known, ["hero=a", "hero=b"])


@given(text=st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip))
def test_escaped_values_are_plain_text_in_templates_and_patterns(text: str) -> None:
    recipe = Recipe.parse(
        """
version = 2
[parameters]
x = { type = "string" }
[[guides]]
guide = "infill"
template = { join = ["<", { parameter = "x", escape = "template" }, "> ___"] }
[[guides]]
guide = "pattern"
pattern = { join = ["<", { parameter = "x", escape = "pattern" }, "> (?s:.*)"] }
"""
    ).with_parameters(x=text)
    infill, pattern = recipe.guides
    assert isinstance(infill, Infill)
    assert isinstance(pattern, Pattern)
    assert infill.check(f"<{text}> sea").status == "satisfied"
    assert pattern.check(f"<{text}> sea").status == "satisfied"
    assert infill.check("<other thing> sea").status == "violated" or text == "other thing"


def test_parameters_are_set_before_other_changes() -> None:
    changed = Recipe.parse(LETTER).with_parameters(hero="Ada").override(seed=3)
    with pytest.raises(InvalidRecipeError, match="was changed since"):
        changed.with_parameters(hero="Bo")
    assert changed.with_parameters() == changed


# -- extends -------------------------------------------------------------------------------------------------

BASE = """
version = 1
title = "Base"
prompt = "Base."
seed = 4
[condition]
genre = "tale"
tone = "positive"
[settings]
steps = 8
selection = { name = "confidence", noise = 0.5 }
[[guides]]
guide = "words"
least = 3
[[guides]]
guide = "repetition"
[[guides]]
guide = "words"
least = 4
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "sub").mkdir()
    deep = 'version = 2\ntitle = "Deep"\n[[guides]]\nguide = "sentences"\nleast = 2\n'
    (tmp_path / "sub" / "deep.toml").write_text(deep)
    return tmp_path


def child(folder: Path, text: str, name: str = "child.toml") -> Recipe:
    (folder / name).write_text(f"version = 2\n{text}")
    return Recipe.read(folder / name)


def test_a_childs_values_lie_over_its_parents(folder: Path) -> None:
    recipe = child(
        folder,
        """
extends = "base.toml"
prompt = "Child."
[condition]
genre = "story"
[settings]
steps = 9
selection = "random"
[[guides]]
guide = "keywords"
words = ["sea"]
""",
    )
    assert (recipe.title, recipe.prompt, recipe.seed) == ("Base", "Child.", 4)
    assert recipe.condition == {"genre": "story", "tone": "positive"}
    assert recipe.settings == {"steps": 9, "selection": "random"}
    assert recipe.guides == (Words(3), Repetition(), Words(4), Keywords("sea"))
    assert recipe.plan is not None
    assert recipe.plan.chain == ("base.toml",)


def test_guides_are_left_out_by_name(folder: Path) -> None:
    added = '[[guides]]\nguide = "sentences"\nleast = 1\n'
    assert child(folder, f'extends = "base.toml"\nwithout = ["words"]\n{added}').guides == (
        Repetition(),
        Sentences(1),
    )
    assert child(folder, f'extends = "base.toml"\nwithout = "all"\n{added}').guides == (Sentences(1),)
    assert child(folder, 'extends = "base.toml"\nwithout = "all"').guides == ()


def test_a_chain_of_recipes_and_a_shipped_one(folder: Path) -> None:
    child(
        folder,
        'extends = "sub/deep.toml"\ntitle = "Middle"\n[parameters]\nn = { default = 3, most = 5 }\n',
        "middle.toml",
    )
    recipe = child(folder, 'extends = "middle.toml"\nseed = { parameter = "n" }\n[parameters]\nn = 5\n')
    assert (recipe.title, recipe.seed, recipe.guides) == ("Middle", 5, (Sentences(2),))
    assert recipe.plan is not None
    assert recipe.plan.chain == ("middle.toml", "sub/deep.toml")
    with pytest.raises(InvalidRecipeError, match="use a number up to 5"):
        recipe.with_parameters(n=6)
    own = child(folder, 'extends = "two-sentence-story"')
    assert own == find("two-sentence-story")
    for name in shipped():
        assert Recipe.parse(f'version = 2\nextends = "{name}"') == find(name)


REFUSED = [
    ('extends = "../base.toml"', "name a shipped recipe, or a file in the recipe's own folder"),
    ('extends = "sub/../../base.toml"', "own folder or below it"),
    ('extends = "/etc/passwd"', "own folder or below it"),
    ('extends = "C:/base.toml"', "own folder or below it"),
    ("extends = 'sub\\deep.toml'", "own folder or below it"),
    ('extends = "link.toml"', "own folder or below it"),
    ('extends = "none.toml"', "there is no such file"),
    ('extends = "sub"', "no recipe that ships"),
    ('extends = "cheerful-noet"', 'did you mean "cheerful-note"?'),
    ("extends = 3", "extends is 3: use the name of a shipped recipe"),
    ('extends = "child.toml"', "goes in a circle: child.toml -> child.toml"),
    ('extends = "base.toml"\nwithout = ["word"]', 'base.toml has no such guide: did you mean "words"?'),
    ('extends = "base.toml"\nwithout = "words"', "without is 'words': use \"all\" or a list"),
    ('without = ["words"]', "add extends, or leave it out"),
    ('extends = "bad.toml"', "extends 'bad.toml': bad.toml: this is not TOML"),
    ('extends = "wrong.toml"', 'wrong.toml: guides[0]: unknown guide "wrods"'),
    ('extends = "base.toml"\n[[guides]]\nguide = "wrods"', 'child.toml: guides[0]: unknown guide "wrods"'),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_extended_is_refused(text: str, message: str, folder: Path) -> None:
    (folder.parent / "outside.toml").write_text("version = 2")
    (folder / "link.toml").symlink_to(folder.parent / "outside.toml")
    (folder / "bad.toml").write_text("version = = 2")
    (folder / "wrong.toml").write_text('version = 2\n[[guides]]\nguide = "wrods"\n')
    with pytest.raises(InvalidRecipeError) as caught:
        child(folder, text)
    assert message in str(caught.value)
    assert "child.toml" in str(caught.value)


def test_circles_are_named_and_chains_end(folder: Path) -> None:
    (folder / "a.toml").write_text('version = 2\nextends = "b.toml"')
    (folder / "b.toml").write_text('version = 2\nextends = "a.toml"')
    with pytest.raises(InvalidRecipeError, match=r"circle: a\.toml -> b\.toml -> a\.toml"):
        Recipe.read(folder / "a.toml")
    for k in range(20):
        (folder / f"{k}.toml").write_text(f'version = 2\nextends = "{k + 1}.toml"')
    (folder / "20.toml").write_text("version = 2")
    with pytest.raises(InvalidRecipeError, match="more than 16 recipes"):
        Recipe.read(folder / "0.toml")


def test_a_recipe_without_a_file_extends_shipped_ones_only() -> None:
    with pytest.raises(InvalidRecipeError, match="put this recipe in a file"):
        Recipe.parse('version = 2\nextends = "base.toml"')


# -- versions, schema, diff ----------------------------------------------------------------------------------


def test_version_one_is_read_as_the_newest() -> None:
    old = 'version = 1\n[[guides]]\nguide = "words"\nleast = 3\n'
    assert Recipe.parse(old) == Recipe(guides=(Words(3),))
    assert Recipe.parse(old).to_dict()["version"] == VERSION


def test_the_schema_takes_parameters_and_inheritance() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(tomllib.loads(LETTER))
    validator.validate({"version": 2, "extends": "base.toml", "without": ["words"], "parameters": {"x": 3}})
    validator.validate(tomllib.loads(BASE))
    wrong: list[dict[str, Any]] = [
        {"version": 3},
        {"version": 2, "extends": 3},
        {"version": 2, "without": ["wrods"]},
        {"version": 2, "title": {"parameter": "x"}},
        {"version": 2, "prompt": {"parameter": 3}},
        {"version": 2, "prompt": {"parameter": "x", "more": 1}},
        {"version": 2, "parameters": {"x": {"type": "text"}}},
        {"version": 2, "guides": [{"guide": "words", "least": "three"}]},
    ]
    for table in wrong:
        assert not validator.is_valid(table), table


@given(recipe=recipes)
def test_every_written_recipe_is_valid_and_differs_in_nothing_from_itself(recipe: Recipe) -> None:
    assert differences(recipe, Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))) == []


def test_differences_are_told_value_by_value() -> None:
    one = Recipe(title="A", settings={"steps": 4}, guides=(Words(3), Repetition(), Keywords("a")))
    two = Recipe(
        seed=3, settings={"steps": 5}, guides=(Keywords("a"), Words(4, 9), during(0, 0.5, Bias({"b": 1})))
    )
    assert differences(one, two) == [
        '- title = "A"',
        "~ settings.steps: 4 -> 5",
        "+ seed = 3",
        "~ words: least: 3 -> 4",
        "+ words: most = 9",
        '- { guide = "repetition", strength_nats = 2.0 }',
        '+ { guide = "bias", phrases = { b = 1.0 }, during = [0.0, 0.5] }',
        "~ the order of the guides, and so of the verdicts",
    ]
    assert differences(one, one) == []
