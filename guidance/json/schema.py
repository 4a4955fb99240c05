"""JSON Schema: the text is JSON that validates."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.counts import shorten
from redraft.guidance.json.compile import Schema
from redraft.guidance.json.formats import CHECKS
from redraft.guidance.json.keywords import pointer
from redraft.guidance.json.layout import WHITESPACE, Whitespace
from redraft.guidance.json.text import lexemes, parse
from redraft.guidance.pattern import search

DEEPEST = 16


@dataclass(frozen=True)
class JsonSchema(HardGuide):
    """The text is JSON that validates against `schema`: a mapping, JSON text, or True or False.

    It is kept as JSON text, in the order given. What is written has properties in the schema's order, only
    those that it names (one, of a free name, where it names none), and one spelling of every value; see
    `docs/json.md`. `whitespace` is "compact", "spaced", "pretty" or "free". A value without a schema nests, and
    a reference opens within itself, at most `max_depth` times. Raises InvalidGuideError for a keyword that
    cannot be guaranteed, by its JSON pointer; StateBudgetError. Needs the extra `json`.
    """

    name: ClassVar[str] = "json-schema"
    schema: str | bool | Mapping[str, Any]
    whitespace: Whitespace = "compact"
    max_depth: int = 2

    def __post_init__(self) -> None:
        if self.whitespace not in WHITESPACE:
            raise InvalidGuideError(f"whitespace is {self.whitespace!r}: use {', '.join(WHITESPACE)}")
        check_depth(self.max_depth)
        object.__setattr__(self, "schema", canonical(self.schema))
        texts(self.text, self.whitespace, self.max_depth)

    @property
    def text(self) -> str:
        """The schema as JSON text."""
        assert isinstance(self.schema, str)
        return self.schema

    def language(self, scene: Scene) -> Automaton:
        language = texts(self.text, self.whitespace, self.max_depth)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def outer(self, scene: Scene) -> Automaton:
        """Any sequence of JSON's words and marks; which of them validate is not regular."""
        return lift(lexemes(), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def room(self) -> int | None:
        return room(texts(self.text, self.whitespace, self.max_depth))

    def check(self, text: str) -> Verdict:
        try:
            error = next(validator(self.text).iter_errors(parse(text)), None)
        except (ValueError, OverflowError) as wrong:
            return self.verdict(False, note=f"not JSON: {wrong}")
        except RecursionError:
            return self.verdict("unknown", note="nested too deeply to be judged")
        if error is None:
            return self.verdict(True)
        return self.verdict(False, note=shorten(f"#{pointer(*error.absolute_path)}: {error.message}", 200))

    def __str__(self) -> str:
        return f"JsonSchema({shorten(self.text)!r})"


def check_depth(depth: int) -> None:
    """Raise `InvalidGuideError` unless a depth is a whole number from 0 to DEEPEST."""
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 <= depth <= DEEPEST:
        raise InvalidGuideError(f"max_depth is {depth!r}: use a whole number from 0 to {DEEPEST}")


def room(language: Automaton) -> int:
    """Tokens that a text of a language may want: its shortest text a byte each, and some to spare."""
    return 24 + (language.shortest() or 0)


def canonical(schema: object) -> str:
    """A schema as compact JSON text, keys in their order; raises `InvalidGuideError` for what is no schema."""
    try:
        value = parse(schema) if isinstance(schema, str) else _plain(schema)
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidGuideError(f"the schema is no JSON: {error}; give a JSON Schema") from error
    if not isinstance(value, (dict, bool)):
        raise InvalidGuideError(f"the schema is {shorten(text)}: a JSON Schema is an object, true or false")
    return text


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"the key {wrong[0]!r} is no string")
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


@lru_cache(maxsize=64)
def texts(schema: str, whitespace: Whitespace, max_depth: int) -> Automaton:
    """The byte language of a schema; raises `InvalidGuideError` where it has no word."""
    judge = validator(schema)

    def validates(part: Any, value: Any) -> bool:
        return bool(judge.evolve(schema=part).is_valid(value))

    asked = Schema(json.loads(schema), whitespace, max_depth, validates)
    language = asked.automaton()
    if not language.empty():
        return language
    if asked.cut:
        raise InvalidGuideError(
            f"no value of {sorted(asked.cut)[0]} is complete at max_depth {max_depth}: raise it, or allow an end "
            "to the recursion"
        )
    where = f": {', '.join(sorted(asked.empty))} allows none" if asked.empty else ""
    raise InvalidGuideError(f"no JSON value validates against {shorten(schema)}{where}; relax it")


@lru_cache(maxsize=64)
def validator(schema: str) -> Any:
    """A `jsonschema` validator; raises `InvalidGuideError` for a schema that is not well-formed."""
    try:
        jsonschema = importlib.import_module("jsonschema")
    except ImportError as error:
        raise InvalidGuideError(
            "JsonSchema judges its texts with the package jsonschema, which is not installed: "
            "pip install 'redraft[json]'"
        ) from error
    value, formats = json.loads(schema), jsonschema.FormatChecker(formats=())
    try:
        jsonschema.Draft202012Validator.check_schema(value, format_checker=formats)
    except jsonschema.SchemaError as error:
        where = "#" + pointer(*error.absolute_path)
        raise InvalidGuideError(f"{where} is not as JSON Schema has it: {error.message}") from error
    for name, judge in CHECKS.items():
        formats.checks(name, raises=ValueError)(
            lambda text, judge=judge: not isinstance(text, str) or judge(text)
        )
    made = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern(jsonschema)})
    return made(value, format_checker=formats)


def _pattern(jsonschema: Any) -> Any:
    """The keyword by the `regex` package, which knows the Unicode classes that `re` does not."""

    def keyword(_: Any, pattern: str, value: Any, __: Any) -> Any:
        if isinstance(value, str) and search(pattern, value) is None:
            yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")

    return keyword
