"""JSON Schema as a byte language: the texts, in one spelling and order, of values that validate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import lcm
from typing import Any

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.nfa import of_words
from redraft.guidance.json.graph import Graph
from redraft.guidance.json.keywords import BY_TYPE, Part, check_keywords, resolve
from redraft.guidance.json.layout import Fill, Layout, Whitespace, scalar
from redraft.guidance.json.members import Member, write_any, write_array, write_free_object, write_object
from redraft.guidance.json.numbers import Limit, number
from redraft.guidance.json.text import lexemes, string

Validates = Callable[[Any, Any], bool]
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


@dataclass(frozen=True)
class Schema:
    """A schema to compile. `validates(schema, value)` judges a value that a schema lists.

    `wide` asks for a superset instead: of all texts that a narrower schema, compiled without it, may
    write, those that validate are in the language. It decides `oneOf` and `not`.
    """

    root: Any
    whitespace: Whitespace
    max_depth: int
    validates: Validates
    wide: bool = False
    cut: set[str] = field(default_factory=set)  # references that were opened no further
    empty: set[str] = field(default_factory=set)  # schemas of strings and numbers that allow none

    def automaton(self, parts: Sequence[Part] | None = None, depth: int = 0) -> Automaton:
        """Texts of the values that all `parts` (by default the root) allow."""
        graph = Graph()
        start, end = graph.node(), graph.node()
        parts = [Part(self.root, "#")] if parts is None else parts
        _Writer(self, Layout(graph, self.whitespace)).value(start, parts, depth, end)
        return graph.automaton(start, end)


class _Writer:
    """Adds the values of conjunctions of schemas to a graph."""

    def __init__(self, schema: Schema, layout: Layout) -> None:
        self.schema, self.layout, self.graph, self.wide = schema, layout, layout.graph, schema.wide

    def value(self, start: int, parts: Sequence[Part], depth: int, end: int) -> None:
        flat = self._flatten(parts)
        if flat is None:
            return
        for k, part in enumerate(flat):
            for key in ("anyOf", "oneOf", "not"):
                if key in part.schema:
                    rest = [*flat[:k], part.without(key), *flat[k + 1 :]]
                    getattr(self, f"_{key}")(start, rest, k, part, depth, end)
                    return
        listed = next((p for p in flat if "enum" in p.schema or "const" in p.schema), None)
        if listed is not None:
            self._listed(start, listed, flat, depth, end)
        elif flat or self.wide:
            self._kinds(start, flat, depth, end)
        else:
            write_any(self.layout, start, self.schema.max_depth, depth, end)

    def _flatten(self, parts: Sequence[Part]) -> list[Part] | None:
        """The parts without $ref, allOf and if, each in its place; None where one of them is false."""
        flat: list[Part] = []
        for part in parts:
            if part.schema is False:
                return None
            if part.schema is True:
                continue
            check_keywords(part)
            before: list[Part] = []
            if "$ref" in part.schema and (target := self._open(part)) is not None:
                before.append(target)
            elif "$ref" in part.schema and not self.wide:
                return None
            before += [part.beside("allOf", k) for k in range(len(part.schema.get("allOf", ())))]
            before += self._cases(part)
            inner = self._flatten(before)
            if inner is None:
                return None
            flat += inner
            own = part.without("$ref", "allOf", "if", "then", "else")
            flat += [own] * any(key in own.schema for key in _MEANING)
        return flat

    def _open(self, part: Part) -> Part | None:
        target = resolve(self.schema.root, part)
        if target.pointer in part.chain:
            raise InvalidGuideError(
                f"{part.pointer}/$ref leads back to {target.pointer} with no value between: "
                "no finite text says what it allows; remove it"
            )
        if part.opened.count(target.pointer) > self.schema.max_depth:
            self.schema.cut.add(target.pointer)
            return None
        return target

    @staticmethod
    def _cases(part: Part) -> list[Part]:
        """if/then/else as anyOf: (if and then) or (not if, and else)."""
        if "if" not in part.schema:
            return []
        s = part.schema
        cases = [
            {"allOf": [s["if"], s.get("then", True)]},
            {"allOf": [{"not": s["if"]}, s.get("else", True)]},
        ]
        return [replace(part, schema={"anyOf": cases}, pointer=f"{part.pointer}/if")]

    def _with(self, rest: Sequence[Part], k: int, branch: Part) -> list[Part]:
        return [*rest[: k + 1], branch, *rest[k + 1 :]]

    # The names of the keywords, which `value` looks up.
    def _anyOf(self, start: int, rest: list[Part], k: int, part: Part, depth: int, end: int) -> None:  # noqa: N802
        for i in range(len(part.schema["anyOf"])):
            self.value(start, self._with(rest, k, part.beside("anyOf", i)), depth, end)

    def _oneOf(self, start: int, rest: list[Part], k: int, part: Part, depth: int, end: int) -> None:  # noqa: N802
        """A branch without what another one allows too; where they are disjoint, just the branch."""
        branches = [part.beside("oneOf", i) for i in range(len(part.schema["oneOf"]))]
        for i, branch in enumerate(branches):
            mine = self._with(rest, k, branch)
            others = [] if self.wide else [b for j, b in enumerate(branches) if j != i]
            self._without(start, mine, others, depth, end)

    def _not(self, start: int, rest: list[Part], k: int, part: Part, depth: int, end: int) -> None:
        self._without(start, rest, [] if self.wide else [part.beside("not")], depth, end)

    def _without(self, start: int, parts: list[Part], others: list[Part], depth: int, end: int) -> None:
        wide = replace(self.schema, wide=True, cut=set(), empty=set())
        shared = [wide.automaton([*parts, other], depth) for other in others]
        shared = [language for language in shared if not language.empty()]
        if not shared:
            self.value(start, parts, depth, end)
            return
        left = self.schema.automaton(parts, depth)
        for language in shared:
            left = left - language
        self.graph.piece(start, left, end)

    def _listed(self, start: int, listed: Part, flat: Sequence[Part], depth: int, end: int) -> None:
        values = listed.schema["enum"] if "enum" in listed.schema else [listed.schema["const"]]
        kept = [v for v in values if all(self.schema.validates(part.schema, v) for part in flat)]
        words = [scalar(v) for v in kept if not isinstance(v, (dict, list))]
        if words:
            self.graph.piece(start, of_words(words), end)
        for value in kept:
            if isinstance(value, (dict, list)) and self.wide:
                self.graph.piece(start, lexemes(), end)  # whatever the order of its names
            elif isinstance(value, (dict, list)):
                self.layout.value(start, value, depth, end)
        if not kept:
            self.schema.empty.add(listed.pointer)

    def _kinds(self, start: int, flat: Sequence[Part], depth: int, end: int) -> None:
        if not flat:
            self.graph.piece(start, lexemes(), end)
            return
        for kind in _types(flat, infer=not self.wide):
            if kind == "object":
                self._object(start, flat, depth, end)
            elif kind == "array":
                self._array(start, flat, depth, end)
            elif kind == "string":
                self._leaf(start, _string(flat, self.wide), flat, end)
            elif kind in ("number", "integer"):
                self._leaf(start, _number(flat, kind == "integer", self.wide), flat, end)
            else:
                for word in {"boolean": (b"true", b"false"), "null": (b"null",)}[kind]:
                    self.graph.text(start, word, end)

    def _leaf(self, start: int, language: Automaton, flat: Sequence[Part], end: int) -> None:
        if language.empty():
            self.schema.empty.add(flat[-1].pointer)
        else:
            self.graph.piece(start, language, end)

    def _object(self, start: int, flat: Sequence[Part], depth: int, end: int) -> None:
        names = dict.fromkeys(n for p in flat for n in p.schema.get("properties", ()))
        required = dict.fromkeys(n for p in flat for n in p.schema.get("required", ()))
        least = max(_all(flat, "minProperties"), default=0)
        most = min(_all(flat, "maxProperties"), default=None)
        free = [p.inside("additionalProperties") for p in flat if "additionalProperties" in p.schema]
        members = [
            Member(name, name in required, self._fill(_property(flat, name), depth + 1))
            for name in (names | required)
        ]
        if members:
            write_object(self.layout, start, members, least, most, depth, end)
        if members and (required or not self.wide):
            return
        closed = any(part.schema is False for part in free)
        most = 0 if closed else 1 if most is None else min(most, 1)
        if least <= most:
            fill = self._fill(() if self.wide else free, depth + 1)
            name = string(controls=self.wide)
            write_free_object(self.layout, start, name, fill, least, most, depth, end)

    def _array(self, start: int, flat: Sequence[Part], depth: int, end: int) -> None:
        least = max(_all(flat, "minItems"), default=0)
        distinct = max((len(found) for found in _all(flat, "prefixItems")), default=0)
        most = min([*_all(flat, "maxItems"), *([distinct] if self._ends(flat) else [])], default=None)
        if most is not None and least > most:
            return

        def item(k: int) -> Fill:
            return self._fill(_item(flat, k), depth + 1)

        write_array(self.layout, start, item, distinct, least, most, depth, end)

    @staticmethod
    def _ends(flat: Sequence[Part]) -> bool:
        return any(items is False for items in _all(flat, "items"))

    def _fill(self, parts: Sequence[Part], depth: int) -> Fill:
        return lambda start, end: self.value(start, parts, depth, end)


_MEANING = {
    "anyOf",
    "oneOf",
    "not",
    "enum",
    "const",
    "type",
    *(key for keys in BY_TYPE.values() for key in keys),
}


def _all(flat: Sequence[Part], key: str) -> Iterator[Any]:
    return (part.schema[key] for part in flat if key in part.schema)


def _property(flat: Sequence[Part], name: str) -> list[Part]:
    """What a property's value must be: by name where a schema names it, else as an additional one."""
    found = []
    for part in flat:
        if name in part.schema.get("properties", ()):
            found.append(part.inside("properties", name))
        elif "additionalProperties" in part.schema:
            found.append(part.inside("additionalProperties"))
    return found


def _item(flat: Sequence[Part], k: int) -> list[Part]:
    found = []
    for part in flat:
        if k < len(part.schema.get("prefixItems", ())):
            found.append(part.inside("prefixItems", k))
        elif "items" in part.schema:
            found.append(part.inside("items"))
    return found


def _types(flat: Sequence[Part], *, infer: bool) -> list[str]:
    """The types that all parts allow; where none says, those that their keywords speak of."""
    allowed = set(_TYPES)
    told = False
    for said in _all(flat, "type"):
        told = True
        types = {said} if isinstance(said, str) else set(said)
        allowed &= types | {"integer"} if "number" in types else types
    if not told and infer:
        spoken = {kind for kind, keys in BY_TYPE.items() if any(k in p.schema for p in flat for k in keys)}
        allowed &= spoken or allowed
    return [kind for kind in _TYPES if kind in allowed and not (kind == "integer" and "number" in allowed)]


def _string(flat: Sequence[Part], wide: bool) -> Automaton:
    return string(
        max(_all(flat, "minLength"), default=0),
        min(_all(flat, "maxLength"), default=None),
        tuple(dict.fromkeys(_all(flat, "pattern"))),
        tuple(dict.fromkeys(_all(flat, "format"))),
        wide,
    )


def _number(flat: Sequence[Part], whole: bool, wide: bool) -> Automaton:
    low = [Limit(_exact(v)) for v in _all(flat, "minimum")]
    low += [Limit(_exact(v), True) for v in _all(flat, "exclusiveMinimum")]
    high = [Limit(_exact(v)) for v in _all(flat, "maximum")]
    high += [Limit(_exact(v), True) for v in _all(flat, "exclusiveMaximum")]
    multiples = [int(v) for v in _all(flat, "multipleOf")]
    return number(
        whole or bool(multiples),
        max(low, key=lambda bound: (bound.value, bound.strict), default=None),
        min(high, key=lambda bound: (bound.value, not bound.strict), default=None),
        lcm(*multiples),
        wide,
    )


def _exact(value: int | float) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))
