"""Checks of a guide as a description and as a judge: nothing is bound."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any

from redraft.denoiser.errors import RedraftError
from redraft.denoiser.guide import Guide, HardGuide, Verdict
from redraft.denoiser.testing.examination import Check, demand
from redraft.denoiser.testing.facts import GuideFacts
from redraft.denoiser.testing.texts import ODD, for_all, strategy

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 3, 0.5, float("nan"), float("inf"), "", "x", b"x", (), [], {}, [3], ("x", 3), {"x": "y"},
    object(), int,
)  # fmt: skip


def _named(facts: GuideFacts) -> None:
    guide = facts.guide
    name, kind = getattr(guide, "name", None), type(guide).__qualname__
    demand(
        isinstance(name, str) and _NAME.fullmatch(name) is not None,
        f"{kind}.name is {name!r}: recipes want lower case and hyphens",
    )
    wanted = "guaranteed" if isinstance(guide, HardGuide) else None
    strengths = (wanted,) if wanted else ("encouraged", "searched")
    demand(guide.strength in strengths, f"strength is {guide.strength!r}, not {' or '.join(strengths)}")
    shown = str(guide)
    demand(
        isinstance(shown, str) and shown.strip() == shown != "" and "\n" not in shown and len(shown) <= 1000,
        f"str(guide) is {shown[:60]!r}: give one line",
    )


def _value(facts: GuideFacts) -> None:
    guide = facts.guide
    demand(is_dataclass(guide), f"{type(guide).__qualname__} is not a dataclass")
    hash(guide)
    own = fields(guide)  # type: ignore[arg-type]
    name = own[0].name if own else "anything"
    try:
        setattr(guide, name, getattr(guide, name, None))
    except (FrozenInstanceError, AttributeError):
        return
    demand(False, f"{name} can be set on a guide that is made")


def again(guide: Guide, changes: Mapping[str, Any] | None = None) -> Guide:
    """A guide made anew from its fields, as recipes do it, with some of them changed."""
    values = guide.fields() | dict(changes or {})
    positional = values.pop(guide.variadic, ()) if guide.variadic else ()
    return type(guide)(*positional, **values)


def _round_trip(facts: GuideFacts) -> None:
    guide = facts.guide
    portable = getattr(guide, "portable", True)  # a guide may say that no recipe can hold it
    for name, value in guide.fields().items():
        demand(
            not portable or _plain(value),
            f"{name} is {value!r}: a recipe holds strings, numbers, tuples, mappings and guides",
        )
    copy = again(guide)
    demand(copy == guide, f"made anew from its fields it is {copy!r}, not {guide!r}")
    demand(hash(copy) == hash(guide), "an equal copy has another hash")


def _plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _plain(item) for key, item in value.items())
    return isinstance(value, (str, int, float, bool, Guide))


def _typed(facts: GuideFacts) -> None:
    guide = facts.guide
    for name in guide.fields():
        if name == guide.variadic:
            tries = [{name: (value,)} for value in _ODD_VALUES]
        else:
            tries = [{name: value} for value in _ODD_VALUES]
        for change in tries:
            try:
                again(guide, change)
            except RedraftError:
                continue
            except Exception as error:
                (value,) = change.values()
                demand(False, f"{name} = {value!r} raises a bare {type(error).__name__}: {error}")


def _room(facts: GuideFacts) -> str:
    room = facts.guide.room()
    demand(
        room is None or (isinstance(room, int) and not isinstance(room, bool) and room >= 0),
        f"room() is {room!r}, not a number of tokens or None",
    )
    return "" if room is None else f"{room} tokens"


def _sure(facts: GuideFacts) -> None:
    for_all(
        strategy([*facts.bench.texts, *ODD]), lambda text: _judged(facts, text), examples=facts.bench.examples
    )
    for text in ODD:
        _judged(facts, text)


def _judged(facts: GuideFacts, text: str) -> Verdict:
    try:
        verdict = facts.guide.check(text)
    except Exception as error:
        demand(False, f"check({text[:80]!r}) raises {type(error).__name__}: {error}")
        raise
    demand(isinstance(verdict, Verdict), f"check({text[:80]!r}) returns {verdict!r}")
    return verdict


def _verdicts(facts: GuideFacts) -> None:
    def law(text: str) -> None:
        verdict, about = _judged(facts, text), f"check({text[:80]!r})"
        demand(
            verdict.status in ("satisfied", "violated", "unknown"), f"{about} has status {verdict.status!r}"
        )
        demand(
            verdict.guide == str(facts.guide) and verdict.strength == facts.guide.strength,
            f"{about} speaks for {verdict.guide!r}, {verdict.strength}",
        )
        score = verdict.score
        demand(score is None or 0.0 <= score <= 1.0, f"{about} has score {score}, not one in [0, 1]")
        for span in verdict.spans:
            demand(
                0 <= span.start <= span.end <= len(text),
                f"{about} has evidence at [{span.start}, {span.end}) of {len(text)} characters",
            )

    for_all(strategy([*facts.bench.texts, *ODD]), law, examples=facts.bench.examples)


def _pure(facts: GuideFacts) -> None:
    for text in (*ODD, *facts.bench.texts):
        one, two = facts.guide.check(text), facts.guide.check(text)
        demand(one == two, f"check({text[:80]!r}) says {one} and then {two}")


DESCRIPTION = (
    Check(
        "name-and-strength",
        "recipes, verdicts and messages name a guide by them",
        'set name = "lower-case-with-hyphens", keep the strength of HardGuide or SoftGuide, and let str() be one line',
        _named,
    ),
    Check(
        "is-a-value",
        "a guide is a description: it is compared, hashed and shared between runs",
        "make it @dataclass(frozen=True) with hashable fields (tuples, not lists)",
        _value,
    ),
    Check(
        "round-trip",
        "recipes store a guide as its fields and make it anew from them",
        "let the constructor take every field under its own name (and `variadic` positionally) and keep it as it is",
        _round_trip,
        needs=("is-a-value",),
    ),
    Check(
        "wrong-types",
        "a wrong value is the user's mistake and must read like one",
        "annotate the constructor so that wrong types are refused, and raise InvalidGuideError for values",
        _typed,
        needs=("round-trip",),
    ),
    Check(
        "room",
        "the canvas is made as long as the guides want",
        "return a number of tokens, or None for no opinion",
        _room,
    ),
    Check(
        "check-never-raises",
        "any text may come to be judged: other people's, other generators'",
        'return self.verdict("unknown", note=...) where a text cannot be judged',
        _sure,
    ),
    Check(
        "verdict",
        "verdicts are printed, stored and highlighted in the text",
        "use self.verdict(...); keep scores in [0, 1] and spans within the text, in characters",
        _verdicts,
        needs=("check-never-raises",),
    ),
    Check(
        "check-is-pure",
        "a verdict is proof only where it is the same each time",
        "keep no state between calls of check and draw no random numbers in it",
        _pure,
        needs=("verdict",),
    ),
)
