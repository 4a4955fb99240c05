"""Values whose types are checked when they are made: a wrong one is an `InvalidGuideError`, never a raw TypeError.

A class that derives from `Checked` has its dataclass fields, and the arguments of a constructor of its own,
held against their annotations before any other code sees them. Annotations are read as people mean them:
a `bool` is no number, an `int` is a `float`, a list stands for a tuple (and a field becomes one), a string
is no sequence. What an annotation says that is not understood here (`Any`, a protocol) is let through.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin

from redraft.denoiser.errors import InvalidGuideError

_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    type(None): "None",
}
_RIGHT = ""


class Checked:
    """Base of guides, policies and settings; `__post_init__` of a subclass runs on values of the right types."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = _checking_arguments(cls.__dict__["__init__"])  # type: ignore[method-assign]
        if "__post_init__" in cls.__dict__:
            cls.__post_init__ = _checking_fields(cls.__dict__["__post_init__"])  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(value: object) -> None:
    """Hold a dataclass's fields against their annotations; a list in a tuple's place becomes a tuple.

    Raises `InvalidGuideError` naming the class, the field, the value and the type that is wanted.
    """
    hints = _hints(type(value))
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        if field.name not in hints:
            continue
        held = getattr(value, field.name)
        check(f"{type(value).__name__}: {field.name}", held, hints[field.name])
        settled = _settled(held, hints[field.name])
        if settled is not held:
            object.__setattr__(value, field.name, settled)


def check(what: str, value: object, hint: Any) -> None:
    """Raise `InvalidGuideError` unless a value has the type that an annotation says."""
    place, found = _wrong(value, hint)
    if place != _RIGHT:
        raise InvalidGuideError(
            f"{what}{'' if place == '.' else place} is {_shown(found[0])}: use {described(found[1])}"
        )


def described(hint: Any) -> str:
    """An annotation in words: `str | None` is "a string or None"."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _NAMES:
        return _NAMES[hint]
    if origin is Literal:
        return " or ".join(repr(arg) for arg in args)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(described(arg) for arg in args))
    if origin is tuple and args and ... not in args:
        return f"({', '.join(described(arg) for arg in args)})"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping of {_plural(args[0])} to {_plural(args[1])}"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        kind = {tuple: "a tuple", list: "a list"}.get(origin, "a sequence")
        return f"{kind} of {_plural(args[0])}" if args else kind
    name = getattr(hint, "__name__", None) or str(hint)
    return f"a {name}"


def _plural(hint: Any) -> str:
    named = described(hint)
    return {"a string": "strings", "a number": "numbers", "a whole number": "whole numbers"}.get(named, named)


def _wrong(value: object, hint: Any) -> tuple[str, tuple[object, Any]]:
    """(place, (value there, wanted)) of the first thing wrong; place "." is the value itself, "" nothing."""
    fine, here = (_RIGHT, (value, hint)), (".", (value, hint))
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return fine
    if hint is None or hint is type(None):
        return fine if value is None else here
    if hint is float:
        return fine if isinstance(value, (int, float)) and not isinstance(value, bool) else here
    if hint is int:
        return fine if isinstance(value, int) and not isinstance(value, bool) else here
    if origin is Literal:
        return fine if any(value == arg and type(value) is type(arg) for arg in args) else here
    if origin in (Union, types.UnionType):
        return _wrong_in_union(value, args, here)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _wrong_in_mapping(value, args, here)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _wrong_in_sequence(value, origin, args, here)
    if isinstance(hint, type) and not getattr(hint, "_is_protocol", False):
        return fine if isinstance(value, hint) else here
    return fine


def _wrong_in_union(value: object, members: tuple[Any, ...], here: Any) -> tuple[str, tuple[object, Any]]:
    found = [_wrong(value, member) for member in members]
    if any(place == _RIGHT for place, _ in found):
        return _RIGHT, here[1]
    inside = [wrong for wrong in found if wrong[0] != "."]  # the member it was meant to be, wrong further in
    return inside[0] if inside else here  # type: ignore[no-any-return]


def _wrong_in_mapping(value: object, args: tuple[Any, ...], here: Any) -> tuple[str, tuple[object, Any]]:
    if not isinstance(value, Mapping):
        return here  # type: ignore[no-any-return]
    for key, item in value.items() if args else ():
        for part, hint in ((key, args[0]), (item, args[1])):
            place, found = _wrong(part, hint)
            if place != _RIGHT:
                return f"[{key!r}]{'' if place == '.' else place}", found
    return _RIGHT, here[1]


def _wrong_in_sequence(
    value: object, origin: type, args: tuple[Any, ...], here: Any
) -> tuple[str, tuple[object, Any]]:
    loose = not issubclass(origin, Collection)  # an Iterable: a string, a set or a generator will do
    if not isinstance(value, Iterable if loose else (tuple, list, origin)):
        return here  # type: ignore[no-any-return]
    if isinstance(value, (str, bytes)):
        return (_RIGHT, here[1]) if loose and args == (type(value),) else here
    if isinstance(value, Mapping):
        return here  # type: ignore[no-any-return]
    if not isinstance(value, Collection):
        return _RIGHT, here[1]  # a generator is used up by looking at it
    fixed = origin is tuple and args and ... not in args
    if fixed and len(value) != len(args):
        return here  # type: ignore[no-any-return]
    hints = args if fixed else (args[0] if args else Any,) * len(value)
    for k, (item, hint) in enumerate(zip(value, hints, strict=True)):
        place, found = _wrong(item, hint)
        if place != _RIGHT:
            return f"[{k}]{'' if place == '.' else place}", found
    return _RIGHT, here[1]


def _settled(value: Any, hint: Any) -> Any:
    """The value with lists in tuples' places made tuples; the very same object where nothing changes."""
    if not isinstance(value, (tuple, list)):
        return value
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    hint = next((m for m in members if get_origin(m) is tuple and _wrong(value, m)[0] == _RIGHT), None)
    if hint is None:
        return value
    args = get_args(hint)
    hints = args if ... not in args else (args[0],) * len(value)
    items = tuple(_settled(item, own) for item, own in zip(value, hints, strict=True))
    same = isinstance(value, tuple) and all(a is b for a, b in zip(items, value, strict=True))
    return value if same else items


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@lru_cache(maxsize=512)
def _hints(owner: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(owner)
    except Exception:  # annotations that cannot be read here (a class local to a function) check nothing
        return {}


def _checking_arguments(init: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(init)

    @functools.wraps(init)
    def checked(self: object, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError:  # too many arguments, or an unknown one: the call itself says so best
            init(self, *args, **kwargs)
            raise
        hints = _hints(init)
        for name, value in given.arguments.items():
            if name not in hints:
                continue
            hint = hints[name]
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                hint = types.GenericAlias(tuple, (hint, ...))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                hint = types.GenericAlias(dict, (str, hint))
            check(f"{type(self).__name__}: {name}", value, hint)
        init(self, *args, **kwargs)

    return checked


def _checking_fields(post_init: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(post_init)
    def checked(self: object) -> None:
        check_fields(self)
        post_init(self)

    return checked


__all__ = ["Checked", "check", "check_fields", "described"]
