"""JSON guides: numbers, strings, every keyword both ways, refusals, whole runs."""

from __future__ import annotations

import itertools
import json
import random
import time
from decimal import Decimal
from functools import cache
from typing import Any

import jsonschema
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import Chaos, small_vocabulary

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, UnsatisfiableError
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.refinement import distance
from redraft.denoiser.regex import UTF8
from redraft.guidance import Json, JsonSchema, Words
from redraft.guidance.json.formats import CHECKS, FORMATS
from redraft.guidance.json.numbers import Limit, number, spelled
from redraft.guidance.json.schema import texts
from redraft.guidance.json.text import ANY_NUMBER, lengths, parse, quoted, string
from redraft.recipes import Recipe
from redraft.recipes.convert import from_dict, to_dict

VOCABULARY = small_vocabulary()
SCENE = Scene(VOCABULARY, torch.device("cpu"), 1, 60, 8)


def language(schema: Any, **options: Any) -> Automaton:
    guide = JsonSchema(schema, **options)
    return texts(guide.text, guide.whitespace, guide.max_depth)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def allows(schema: Any, *values: Any, **options: Any) -> list[bool]:
    made = language(schema, **options)
    return [made.accepts(compact(value).encode()) for value in values]


def sample(automaton: Automaton, rng: random.Random, longest: int = 40) -> bytes:
    """A random word: any live byte while there is room, then the shortest way out."""
    far = distance(automaton.delta, automaton.accept)
    members = [[b for b in range(256) if automaton.classes[b] == c] for c in range(automaton.delta.shape[1])]
    state, word = automaton.start, bytearray()
    while not (automaton.accept[state] and (len(word) >= longest or rng.random() < 0.3)):
        ways = [c for c, q in enumerate(automaton.delta[state]) if far[q] >= 0]
        if not ways:
            break
        if len(word) >= longest:
            ways = [c for c in ways if far[automaton.delta[state, c]] < far[state]]
        chosen = rng.choice(ways)
        word.append(rng.choice(members[chosen]))
        state = int(automaton.delta[state, chosen])
    return bytes(word)


# Numbers


@pytest.mark.parametrize("low", [None, -12, 0, 5, 99])
@pytest.mark.parametrize("high", [None, -7, 0, 17, 100])
@pytest.mark.parametrize("strict", [False, True])
def test_whole_bounds_by_brute_force(low: int | None, high: int | None, strict: bool) -> None:
    made = number(True, *(None if b is None else Limit(Decimal(b), strict) for b in (low, high)))
    for n in range(-120, 1121):
        above = low is None or n > low or (n == low and not strict)
        below = high is None or n < high or (n == high and not strict)
        assert made.accepts(str(n).encode()) == (above and below), n
    for other in ("", "-", "-0", "00", "05", "+5", "5.0", "5e0", " 5", "5 "):
        assert not made.accepts(other.encode())


@pytest.mark.parametrize(("low", "high"), [("0.5", "2.25"), ("-1.5", "0.125"), (None, "-0.05"), ("0", None)])
@pytest.mark.parametrize("strict", [False, True])
def test_decimal_bounds_by_brute_force(low: str | None, high: str | None, strict: bool) -> None:
    made = number(False, *(None if b is None else Limit(Decimal(b), strict) for b in (low, high)))
    for k in range(-3000, 3001):
        value = Decimal(k) / 1000
        above = low is None or value > Decimal(low) or (value == Decimal(low) and not strict)
        below = high is None or value < Decimal(high) or (value == Decimal(high) and not strict)
        assert made.accepts(spelled(float(value)).encode()) == (above and below), value


@given(st.integers(-60, 60), st.integers(0, 80), st.integers(1, 13))
def test_multiples(low: int, span: int, multiple: int) -> None:
    schema = {"type": "integer", "minimum": low, "maximum": low + span, "multipleOf": multiple}
    wanted = [n for n in range(low, low + span + 1) if n % multiple == 0]
    if not wanted:
        with pytest.raises(InvalidGuideError, match="# allows none"):
            JsonSchema(schema)
        return
    made = language(schema)
    assert [n for n in range(low - 20, low + span + 20) if made.accepts(str(n).encode())] == wanted


def test_big_and_odd_numbers() -> None:
    big = 10**30
    assert allows({"type": "integer", "minimum": big}, big - 1, big, big * 7) == [False, True, True]
    assert allows({"type": "integer", "minimum": 1.5, "maximum": 3.0}, 1, 2, 3, 4) == [
        False,
        True,
        True,
        False,
    ]
    assert allows({"const": 1.0}, 1) == [True]
    assert JsonSchema({"const": 1.0}).check("1.0").status == "satisfied"
    assert allows({"enum": [1, True, 1.0, None, 0.5, 1e20]}, 1, True, None, 0.5, 10**20, False) == [
        True
    ] * 5 + [False]
    assert (
        allows({"type": "integer", "enum": [1.0, 2.5, True, "3"]}, 1, 2.5, True, "3") == [True] + [False] * 3
    )
    assert allows({"type": "number"}, 0, -3, 0.25, 1e21) == [True] * 3 + [False]  # no exponents
    digits = "1" * 5000
    assert JsonSchema({"type": "integer"}).check(digits).status == "satisfied"
    assert parse(digits) > 10**4998


@given(st.data(), st.floats(-1e6, 1e6), st.booleans())
@settings(max_examples=20)
def test_bounded_numbers_hold_as_doubles(data: st.DataObject, bound: float, low: bool) -> None:
    """What is written must validate after `json.loads`, whose doubles round."""
    schema = {"type": "number", "exclusiveMinimum" if low else "exclusiveMaximum": bound}
    text = sample(language(schema), random.Random(data.draw(st.integers(0, 999))), 30)
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


# Strings


@given(
    st.integers(0, 3), st.integers(0, 4), st.lists(st.text('aé日😀"\\\n', max_size=6), min_size=4, max_size=4)
)
def test_lengths_are_characters(least: int, span: int, words: list[str]) -> None:
    counted, made = lengths(least, least + span), string(least, least + span)
    for word in words:
        held = least <= len(word) <= least + span
        assert counted.accepts(word.encode()) == held == made.accepts(quoted(word))
        assert lengths(least, None).accepts(word.encode()) == (len(word) >= least)


def test_free_strings_are_all_strings() -> None:
    made, wide = string(), string(controls=True)
    for code in [*range(0x300), 0x2028, 0xFFFF, 0x1F600]:
        raw = quoted(chr(code))
        assert wide.accepts(raw)
        assert made.accepts(raw) == (code >= 0x20 or chr(code) in "\b\t\n\f\r")
    for bad in (b'"', b'"""', b'"\n"', b'"\\x"', b'"\\u0041"', b'"\\/"', b'"\xff"', b"a"):
        assert not wide.accepts(bad)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[A-Z]{2}-[0-9]+$", ["AB-1"], ["AB-", "xAB-1", "AB-1 "]),
        ("b", ["abc", "b"], ["ac", ""]),
        ("^a|b$", ["ax", "xb"], ["xa", "bx"]),
        ("^\\p{L}+$", ["é日"], ["1"]),
        ('^["\\\\\n\u0001]+$', ['"\\\n\u0001'], ["a"]),
        ("", ["", "x"], []),
    ],
)
def test_patterns(pattern: str, good: list[str], bad: list[str]) -> None:
    schema = {"type": "string", "pattern": pattern}
    assert allows(schema, *good, *bad) == [True] * len(good) + [False] * len(bad)
    for word in good:
        assert JsonSchema(schema).check(compact(word)).status == "satisfied"
    for word in bad:
        assert JsonSchema(schema).check(compact(word)).status == "violated"


def test_pattern_and_length_and_format_together() -> None:
    schema = {"type": "string", "pattern": "^é*$", "minLength": 2, "maxLength": 3}
    assert allows(schema, "é", "éé", "ééé", "éééé", "aa") == [False, True, True, False, False]
    assert allows({"type": "string", "format": "date", "pattern": "^20"}, "2024-02-29", "1999-01-01") == [
        True,
        False,
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_within_their_checks(name: str) -> None:
    rng = random.Random(3)
    made = FORMATS[name]()
    for _ in range(60):
        assert CHECKS[name](sample(made, rng).decode())


def test_dates_are_those_of_the_calendar() -> None:
    made = FORMATS["date"]()
    for year, month, day in itertools.product((1, 1900, 1996, 2000, 2023, 2400, 9999), range(14), range(33)):
        text = f"{year:04}-{month:02}-{day:02}"
        try:
            held = CHECKS["date"](text)
        except ValueError:
            held = False
        assert made.accepts(text.encode()) == held, text
    assert not made.accepts(b"0000-01-01")
    moment = FORMATS["date-time"]()
    assert moment.accepts(b"2024-02-29T23:59:59.5+02:00")
    assert not moment.accepts(b"2023-02-29T23:59:59Z")


# Objects and arrays


def test_all_subsets_of_optional_properties() -> None:
    names = ['a"', "b\\", "é日", "~/c", ""]
    for needed in range(3):
        required = names[1 : 1 + needed]
        schema = {
            "type": "object",
            "properties": {n: {"const": k} for k, n in enumerate(names)},
            "required": required,
        }
        for low, high in ((0, 9), (2, 3)):
            made = language(schema | {"minProperties": low, "maxProperties": high})
            for size in range(len(names) + 1):
                for chosen in itertools.combinations(range(len(names)), size):
                    value = {names[k]: k for k in chosen}
                    held = set(required) <= set(value) and low <= size <= high
                    assert made.accepts(compact(value).encode()) == held, value
            assert not made.accepts(compact({names[2]: 2, names[1]: 1}).encode())


@pytest.mark.parametrize("least", [0, 1, 3])
@pytest.mark.parametrize("most", [None, 0, 3, 4])
@pytest.mark.parametrize("prefix", [0, 2])
def test_arrays(least: int, most: int | None, prefix: int) -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"const": 9}, "minItems": least}
    schema |= {"prefixItems": [{"const": k} for k in range(prefix)]} if prefix else {}
    schema |= {} if most is None else {"maxItems": most}
    if most is not None and least > most:
        with pytest.raises(InvalidGuideError, match="no JSON value"):
            JsonSchema(schema)
        return
    made = language(schema)
    for size in range(7):
        value = [k if k < prefix else 9 for k in range(size)]
        assert made.accepts(compact(value).encode()) == (least <= size <= (99 if most is None else most))
    assert not made.accepts(b"[9]") or not prefix


def test_closed_tuples_and_open_objects() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False}
    assert allows(pair, [], [None], [None, True], [None, True, 1]) == [True, True, True, False]
    assert allows({"type": "object"}, {}, {"x": [1]}, {"x": 1, "y": 2}) == [True, True, False]
    assert allows({"type": "object", "additionalProperties": False}, {}, {"x": 1}) == [True, False]
    assert allows({"type": "object", "additionalProperties": {"type": "null"}}, {"x": None}, {"x": 1}) == [
        True,
        False,
    ]
    assert allows({"type": "object", "required": ["x"]}, {"x": 1}, {}) == [True, False]
    assert allows({"properties": {"a": {}}, "additionalProperties": {"const": 1}}, {}, {"a": "z"}, 3) == [
        True,
        True,
        False,
    ]


def test_booleans_and_anything() -> None:
    with pytest.raises(InvalidGuideError, match="no JSON value"):
        JsonSchema(False)
    assert allows(True, None, [[1]], {"a": {"b": "c"}}, [[[1]]]) == [True, True, True, False]
    assert allows({"properties": {"a": True, "b": False}}, {"a": [1]}, {"a": 1, "b": 1}) == [True, False]
    assert allows({"title": "t", "description": "d", "default": 1, "x-note": [], "$comment": ""}, 1) == [True]


# Joining


def test_joins_by_brute_force() -> None:
    low, high = {"type": "integer", "maximum": 10}, {"type": "integer", "minimum": 5, "maximum": 15}
    values = range(-3, 20)
    cases: list[tuple[Any, Any]] = [
        ({"allOf": [low, high]}, lambda n: 5 <= n <= 10),
        ({"anyOf": [low, high]}, lambda n: n <= 15),
        ({"oneOf": [low, high]}, lambda n: n < 5 or 10 < n <= 15),
        ({"type": "integer", "not": high}, lambda n: not 5 <= n <= 15),
        ({"type": "integer", "if": low, "then": {"minimum": 0}, "else": {"multipleOf": 2}},
         lambda n: n >= 0 if n <= 10 else n % 2 == 0),
        ({"oneOf": [low, high, {"const": 7}, {"const": 99}]}, lambda n: n < 5 or 10 < n <= 15 or n == 99),
    ]  # fmt: skip
    for schema, law in cases:
        assert allows(schema, *values) == [law(n) for n in values], schema


def test_one_of_objects() -> None:
    def kind(name: str, **more: Any) -> dict[str, Any]:
        own = {"kind": {"const": name}} | {key: {"type": value} for key, value in more.items()}
        return {"type": "object", "properties": own, "required": ["kind"]}

    schema = {"oneOf": [kind("a", x="integer"), kind("b", x="string")]}
    good, bad = [{"kind": "a", "x": 1}, {"kind": "b", "x": ""}, {"kind": "b"}], [{"kind": "a", "x": ""}, {}]
    assert allows(schema, *good, *bad) == [True] * 3 + [False] * 2
    either = {
        "properties": {"a": {}, "b": {}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "type": "object",
    }
    assert allows(either, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {}) == [True, True, False, False]


def test_references() -> None:
    tree = {"$defs": {"t": {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array",
            "items": {"$ref": "#/$defs/t"}}}, "required": ["v"]}}, "$ref": "#/$defs/t"}  # fmt: skip
    deep: Any = {"v": 0}
    held = []
    for _ in range(5):
        held.append(allows(tree, deep, max_depth=2)[0])
        deep = {"v": 1, "kids": [deep]}
    assert held == [True, True, True, False, False]
    assert allows({"$defs": {"a/b~": {"type": "null"}}, "$ref": "#/$defs/a~1b~0"}, None, 1) == [True, False]
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    with pytest.raises(InvalidGuideError, match="no value of # is complete at max_depth 2"):
        JsonSchema(endless)
    for loop in ({"$ref": "#"}, {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
                 {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}):  # fmt: skip
        with pytest.raises(InvalidGuideError, match="no value between"):
            JsonSchema(loop)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"age": {"type": "number", "multipleOf": 0.1}}}, "#/properties/age/multipleOf is 0.1"),
        ({"patternProperties": {"^a": {}}}, "#/patternProperties cannot"),
        ({"propertyNames": {"maxLength": 3}}, "#/propertyNames cannot"),
        ({"items": {"contains": {}}}, "#/items/contains cannot"),
        ({"type": "array", "uniqueItems": True}, "#/uniqueItems cannot"),
        ({"allOf": [{}, {"dependentRequired": {}}]}, "#/allOf/1/dependentRequired cannot"),
        ({"$defs": {"a": {"minContains": 1}}, "$ref": "#/$defs/a"}, r"#/\$defs/a/minContains cannot"),
        ({"properties": {"a/b": {"unevaluatedProperties": False}}}, "#/properties/a~1b/unevaluatedProperties"),
        ({"format": "hostname"}, "#/format is 'hostname'"),
        ({"minLenght": 3}, "#/minLenght cannot"),
        ({"$ref": "https://example.com/s"}, r"#/\$ref is 'https"),
        ({"$ref": "#/$defs/none"}, "no such part"),
        ({"$ref": "#name"}, "only this schema's own parts"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, r"#/\$schema"),
        ({"items": {"$id": "x"}}, r"#/items/\$id"),
        ({"type": "text"}, "#/type is not as JSON Schema has it"),
        ({"minLength": -1}, "#/minLength is not as"),
        ({"items": [{}]}, "#/items is not as"),
        ({"pattern": "(?=a)"}, "lookahead"),
        ({"enum": []}, "allows none|is not as"),
        ({"enum": ["a"], "type": "integer"}, "# allows none"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "# allows none"),
        ({"properties": {"a": {"minimum": 3, "maximum": 2}}, "required": ["a"]}, "#/properties/a allows none"),
        ('{"type": "null", "type": "null"}', "twice"),
        ('{"const": NaN}', "NaN is no JSON"),
        ({"const": float("inf")}, "no JSON"),
        ({1: 2}, "use a string"),
        ([], "a mapping of strings to anything"),
        ("{", "no JSON"),
        ({"const": "\ud800"}, "no JSON"),
    ],
)  # fmt: skip
def test_refusals_name_the_place(schema: Any, message: str) -> None:
    with pytest.raises(InvalidGuideError, match=message):
        JsonSchema(schema)


def test_refused_values_and_explosions() -> None:
    for options in ({"whitespace": "loose"}, {"max_depth": -1}, {"max_depth": 17}, {"max_depth": True}):
        with pytest.raises(InvalidGuideError):
            JsonSchema({}, **options)
    with pytest.raises(StateBudgetError):
        JsonSchema({"type": "string", "maxLength": 10_000})
    with pytest.raises(StateBudgetError):
        JsonSchema(True, max_depth=16)


# White space


@pytest.mark.parametrize(
    ("whitespace", "options"),
    [
        ("compact", {"separators": (",", ":")}),
        ("spaced", {}),
        ("pretty", {"indent": 2}),
        ("free", {"indent": 1}),
        ("free", {}),
    ],
)
def test_white_space_is_that_of_json_dumps(whitespace: str, options: dict[str, Any]) -> None:
    value = {"a": [1, {"b": {}}, []], "c": {"d": [[2]]}, "e": "é"}
    inner = {"type": "object", "properties": {"b": {"type": "object"}}}
    schema = {"properties": {"a": {"type": "array", "items": {"anyOf": [{"type": "integer"}, inner, {"const": []}]}},
              "c": {"const": {"d": [[2]]}}, "e": {"type": "string"}}, "type": "object"}  # fmt: skip
    text = json.dumps(value, ensure_ascii=False, **options).encode()
    assert language(schema, whitespace=whitespace).accepts(text)
    others = {"compact", "spaced", "pretty"} - {whitespace}
    if whitespace != "free":
        assert not any(language(schema, whitespace=other).accepts(text) for other in others)


# Both directions, at random


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    def whole(least: int, span: int) -> dict[str, Any]:
        return {"type": "integer", "minimum": least, "maximum": least + span}

    def quarters(least: int, span: int) -> dict[str, Any]:
        return {"type": "number", "minimum": least / 4, "exclusiveMaximum": (least + span) / 4}

    def text(least: int, span: int) -> dict[str, Any]:
        return {"type": "string", "minLength": least, "maxLength": least + span}

    plain: list[dict[str, Any]] = [
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"const": {"é": [1, 'a"']}},
        {"enum": ["red", 3, None, [True]]},
        {"type": "string", "pattern": "^a.*z$"},
        {"type": "integer"},
    ]
    return (
        st.builds(whole, st.integers(-9, 99), st.integers(0, 200))
        | st.builds(quarters, st.integers(-9, 9), st.integers(1, 9))
        | st.builds(text, st.integers(0, 2), st.integers(0, 3))
        | st.sampled_from(plain)
    )


def objects(inner: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    def build(values: list[Any], needed: set[int]) -> dict[str, Any]:
        names = ["a", "ab", 'q"é'][: len(values)]
        return {"type": "object", "properties": dict(zip(names, values, strict=True)),
                "required": [n for k, n in enumerate(names) if k in needed]}  # fmt: skip

    return st.builds(build, st.lists(inner, min_size=1, max_size=most), st.sets(st.integers(0, 2)))


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda item, a, n: {"type": "array", "items": item, "minItems": a, "maxItems": a + n},
        inner, st.integers(0, 2), st.integers(0, 2),
    )  # fmt: skip


def joins(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    other = {"type": ["integer", "object"]}
    several = st.lists(inner | objects(inner), min_size=2, max_size=3)
    return (
        st.builds(lambda kind, a: {kind: a}, st.sampled_from(["anyOf", "oneOf", "allOf"]), several)
        | st.builds(lambda a, b: {"not": a, "anyOf": [b, other]}, inner, inner)
        | st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner)
    )


def choices(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda a: {"anyOf": a}, st.lists(inner, min_size=1, max_size=2))


PLAIN = st.recursive(scalars(), lambda s: objects(s) | arrays(s) | choices(s), max_leaves=5)
JOINED = st.recursive(scalars(), lambda s: objects(s) | arrays(s) | joins(s), max_leaves=5)


def instance(schema: dict[str, Any], rng: random.Random) -> Any:
    """A valid value by plain code, for what `PLAIN` makes."""
    if "anyOf" in schema:
        return instance(rng.choice(schema["anyOf"]), rng)
    if "const" in schema or "enum" in schema:
        return rng.choice(schema.get("enum", [schema.get("const")]))
    kind = schema["type"]
    if isinstance(kind, list):
        kind = rng.choice(kind)
    if kind == "object":
        own, needed = schema["properties"], schema["required"]
        return {name: instance(own[name], rng) for name in own if name in needed or rng.random() < 0.5}
    if kind == "array":
        count = rng.randint(schema["minItems"], schema["maxItems"])
        return [instance(schema["items"], rng) for _ in range(count)]
    if kind == "integer":
        return rng.randint(schema.get("minimum", -(10**9)), schema.get("maximum", 10**20))
    if kind == "number":
        return rng.randrange(int(schema["minimum"] * 4), int(schema["exclusiveMaximum"] * 4)) / 4
    if kind == "string":
        size = rng.randint(schema.get("minLength", 0), schema.get("maxLength", 4))
        body = "".join(rng.choice('az é"\\\n日😀/') for _ in range(size))
        return f"a{body}z".replace("\n", "") if "pattern" in schema else body
    return rng.choice([True, False]) if kind == "boolean" else None


def spell(value: Any) -> Any:
    """1.0 as 1, which is how a number is written."""
    if isinstance(value, dict):
        return {key: spell(item) for key, item in value.items()}
    if isinstance(value, list):
        return [spell(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@given(PLAIN, st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_valid_values_are_accepted(schema: dict[str, Any], seed: int) -> None:
    made, rng = language(schema), random.Random(seed)
    for _ in range(5):
        value = spell(instance(schema, rng))
        jsonschema.Draft202012Validator(schema).validate(value)
        assert made.accepts(compact(value).encode()), value


@given(JOINED, st.integers(0, 2**32))
@settings(max_examples=120, deadline=None)
def test_written_values_validate(schema: dict[str, Any], seed: int) -> None:
    """Also where branches overlap: `oneOf` and `not` must leave out what another branch allows too."""
    try:
        made = language(schema)
    except InvalidGuideError as error:
        if "no JSON value" not in str(error):
            raise
        return
    rng = random.Random(seed)
    for _ in range(8):
        text = sample(made, rng).decode()
        jsonschema.Draft202012Validator(schema).validate(parse(text))
        assert JsonSchema(schema).check(text).status == "satisfied"


PIECES = [
    '"',
    "a",
    "é",
    "\\n",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    " ",
    "null",
    "true",
    "-1",
    "3.5",
    "0",
    '"a"',
    '{"a":',
    "x",
]
GUIDES: list[HardGuide] = [
    Json(1),
    Json(2, "free"),
    ~Json(0),
    JsonSchema({"type": "array", "items": {"type": ["string", "null"], "maxLength": 2}}),
    JsonSchema({"properties": {"a": {}}, "required": ["a"]}, "spaced"),
    ~JsonSchema({"anyOf": [{"type": "string"}, {"const": 3.5}, {"type": "object"}]}),
    JsonSchema(True) & ~Json(0),
]


@cache
def bounds(guide: HardGuide) -> tuple[Automaton, Automaton]:
    return guide.language(SCENE), guide.outer(SCENE)


@pytest.mark.parametrize("guide", GUIDES, ids=str)
@given(
    text=st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
    | st.sampled_from(['{"a":[]}', "[null,null]"])
)
@settings(max_examples=120, deadline=None)
def test_language_within_check_within_outer(guide: HardGuide, text: str) -> None:
    held, tokens = guide.check(text).status == "satisfied", VOCABULARY.encode(text)
    inner, outer = bounds(guide)
    if inner.accepts(tokens):
        assert held, guide.check(text)
    if held:
        assert outer.accepts(tokens)


def test_language_is_within_outer_and_negation_is_sound() -> None:
    guide = JsonSchema({"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}})
    assert (guide.language(SCENE) - guide.outer(SCENE)).empty()
    rng = random.Random(1)
    for _ in range(30):
        text = VOCABULARY.decode([rng.randrange(4, len(VOCABULARY)) for _ in range(4)])
        if (~guide).language(SCENE).accepts(VOCABULARY.encode(text)):
            assert guide.check(text).status == "violated"
    for text in (' { "a" : "\\u0041" } ', '{"z":1e5,"a":""}'):
        assert guide.check(text).status == "satisfied"
        assert guide.outer(SCENE).accepts(VOCABULARY.encode(text))


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("{}", "satisfied"),
        ('{"a":1,"a":1}', "violated"),
        ('{"a":NaN}', "violated"),
        ("", "violated"),
        ("[1", "violated"),
        ('{"a":1} x', "violated"),
        ('\ufeff{"a":1}', "violated"),
        ("[" * 100_000, "unknown"),
    ],
)
def test_checks(text: str, status: str) -> None:
    assert JsonSchema({"type": "object"}).check(text).status == status


def test_a_violation_names_its_place() -> None:
    verdict = JsonSchema({"properties": {"a/b": {"type": "integer"}}}).check('{"a/b": "x"}')
    assert verdict.note.startswith("#/a~1b: ")


# Json


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text('ab"\\\né\u0001'),
    lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text("ab\x00", max_size=2), s, max_size=3),
    max_leaves=6,
)  # fmt: skip


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max([depth(item) for item in inner], default=0)


@given(JSON_VALUES, st.sampled_from(["compact", "spaced", "pretty"]), st.booleans())
def test_any_value_to_a_depth(value: Any, whitespace: Any, ascii_only: bool) -> None:
    options: Any = {"compact": {"separators": (",", ":")}, "pretty": {"indent": 2}}.get(whitespace, {})
    text = json.dumps(value, ensure_ascii=ascii_only, **options)
    if any(len(part) > 3 for part in text.lower().split("e")[1:] if part[:3].strip("+-")[:3].isdigit()):
        return  # an exponent of three digits
    for most in (0, 1, 2):
        guide = Json(most, whitespace)
        assert guide.language(SCENE).accepts(VOCABULARY.encode(text)) == (depth(value) <= most), text
        assert (guide.check(text).status == "satisfied") == (depth(value) <= most)


def test_samples_of_json_are_json() -> None:
    rng = random.Random(5)
    from redraft.guidance.json.value import _texts

    for whitespace in ("compact", "free"):
        for _ in range(60):
            text = sample(_texts(2, whitespace), rng, 30).decode()
            json.loads(text)
            assert Json(2, whitespace).check(text).status == "satisfied"
    assert compile_number().accepts(b"-0.50e+07")


def compile_number() -> Automaton:
    from redraft.denoiser.regex import compile_regex

    return compile_regex(ANY_NUMBER)


# Values, recipes, whole runs


def test_guides_are_values_and_go_into_recipes() -> None:
    table = {"type": "object", "properties": {"n": {"const": 1.0}, "a": {}}, "required": ["n"]}
    guide = JsonSchema(table)
    assert guide == JsonSchema(json.dumps(table, indent=3)) == JsonSchema(guide.text)
    assert hash(guide) == hash(JsonSchema(table))
    assert guide != JsonSchema({**table, "properties": {"a": {}, "n": {"const": 1.0}}})  # the order counts
    assert from_dict(to_dict(guide)) == guide
    recipe = Recipe(guides=(guide, Json(1, "spaced")))
    assert Recipe.parse(recipe.to_toml()) == recipe
    written = (
        'version = 1\n[[guides]]\nguide = "json-schema"\n[guides.schema]\ntype = "integer"\nminimum = 3\n'
    )
    assert Recipe.parse(written).guides == (JsonSchema({"type": "integer", "minimum": 3}),)


RUNS: list[Any] = [
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "ok": {"type": "boolean"},
        },
        "required": ["name", "age"],
    },
    {"type": "array", "items": {"enum": ["dog", "cat", 1, None]}, "minItems": 2, "maxItems": 5},
    {"properties": {"when": {"format": "date"}, "id": {"pattern": "^[A-Z]{2}[0-9]$"}}, "required": ["when"]},
    {"oneOf": [{"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 5}, {"minLength": 3}]},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
]


@pytest.mark.parametrize("schema", RUNS, ids=range(len(RUNS)))
def test_whole_runs_validate(schema: Any) -> None:
    denoiser = Chaos(VOCABULARY, length=60)
    for result in denoiser.write(JsonSchema(schema), samples=20, seed=0, steps=6, length=60):
        assert result.satisfied, result.verdicts
        jsonschema.Draft202012Validator(schema).validate(json.loads(result.text))


def test_a_canvas_too_short_and_a_contradiction_are_named() -> None:
    guide = JsonSchema(
        {"type": "object", "properties": {"name": {"const": "lighthouse keeper"}}, "required": ["name"]}
    )
    with pytest.raises(UnsatisfiableError, match="allow at least"):
        Chaos(VOCABULARY).write(guide, length=5, seed=0)
    with pytest.raises(UnsatisfiableError, match="contradict"):
        Chaos(VOCABULARY).write([guide, Words(20)], length=60, seed=0)


def test_without_jsonschema_the_guide_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jsonschema", None)
    with pytest.raises(InvalidGuideError, match=r"redraft\[json\]"):
        JsonSchema({"title": "not seen before"})


def test_twenty_fields_compile_fast() -> None:
    kinds: list[Any] = [
        {"type": "string", "maxLength": 20}, {"type": "integer", "minimum": 0, "maximum": 150}, {"minimum": 0},
        {"type": "boolean"}, {"enum": ["red", "green", "blue"]}, {"type": "string", "format": "date"},
        {"type": "array", "items": {"type": "string"}, "maxItems": 3}, {"type": ["string", "null"]},
        {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}, {"$ref": "#/$defs/point"},
    ]  # fmt: skip
    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "required": ["x"],
    }
    names = [f"field {k}" for k in range(20)]
    schema = {"$defs": {"point": point}, "type": "object", "required": names[:10],
              "properties": {name: kinds[k % 10] for k, name in enumerate(names)}}  # fmt: skip
    began = time.process_time()
    made = language(schema)
    assert time.process_time() - began < 5
    assert made.states < 1500
    assert (made - UTF8).empty()


def test_many_properties_do_not_recurse() -> None:
    names = [f"n{k}" for k in range(400)]
    made = language({"properties": {name: {"type": "null"} for name in names}, "required": names})
    assert made.accepts(compact(dict.fromkeys(names)).encode())
