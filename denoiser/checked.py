"""Values whose types are checked when they are made: a wrong one is an `InvalidGuideError`, never a raw TypeError.

A class that derives from `Checked` has its dataclass fields, and the arguments of a constructor of its own,
held against their annotations before any other code sees them. Annotations are read as people mean them:
a `bool` is no number, an `int` is a `float`, a list stands for a tuple (and a field becomes one), a string
is no sequence. What an annotation says that is not understood here (`Any`, a protocol that is not
`runtime_checkable`) is let through.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin

from redraft.denoiser.errors import InvalidGuideError

_NAMES: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    type(None): "None",
    Any: "anything",
}


class Checked:
    """Base of guides, policies and settings; `__post_init__` of a subclass runs on values of the right types."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = _checking_arguments(cls.__dict__["__init__"])  # type: ignore[method-assign]
        if "__post_init__" in cls.__dict__:
            setattr(cls, "__post_init__", _checking_fields(cls.__dict__["__post_init__"]))  # noqa: B010

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(value: object) -> None:
    """Hold a dataclass's fields against their annotations; a list in a tuple's place becomes a tuple.

    Raises `InvalidGuideError` naming the class, the field, the value and the type that is wanted.
    """
    hints = _hints(type(value))  # type: ignore[arg-type]
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
    wrong = _mismatch(value, hint)
    if wrong is not None:
        raise InvalidGuideError(f"{what}{wrong.place} is {_shown(wrong.value)}: use {described(wrong.hint)}")


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


@dataclass(frozen=True)
class _Mismatch:
    """A value of another type than `hint` says, and the place where it stands within the whole ("[1]")."""

    value: object
    hint: Any
    place: str = ""

    def under(self, key: object) -> _Mismatch:
        return replace(self, place=f"[{key!r}]{self.place}")


def _mismatch(value: object, hint: Any) -> _Mismatch | None:
    """The first thing wrong with a value, None where nothing is."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _in_union(value, hint, args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _in_mapping(value, hint, args)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _in_sequence(value, hint, origin, args)
    return None if _fits(value, hint, origin, args) else _Mismatch(value, hint)


def _fits(value: object, hint: Any, origin: Any, args: tuple[Any, ...]) -> bool:
    if hint is Any:
        return True
    if hint is None:
        return value is None
    if hint in (int, float):
        numbers = (int, float) if hint is float else (int,)
        return isinstance(value, numbers) and not isinstance(value, bool)
    if origin is Literal:
        return any(value == arg and type(value) is type(arg) for arg in args)
    protocol = getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False)
    if isinstance(hint, type) and not protocol:
        return isinstance(value, hint)
    return True


def _in_union(value: object, hint: Any, members: tuple[Any, ...]) -> _Mismatch | None:
    found = [_mismatch(value, member) for member in members]
    if None in found:
        return None
    # a member that is wrong further in is the one that was meant
    return next((wrong for wrong in found if wrong is not None and wrong.place), _Mismatch(value, hint))


def _in_mapping(value: object, hint: Any, args: tuple[Any, ...]) -> _Mismatch | None:
    if not isinstance(value, Mapping):
        return _Mismatch(value, hint)
    for key, item in value.items() if args else ():
        wrong = _mismatch(key, args[0]) or _mismatch(item, args[1])
        if wrong is not None:
            return wrong.under(key)
    return None


def _in_sequence(value: object, hint: Any, origin: type, args: tuple[Any, ...]) -> _Mismatch | None:
    loose = not issubclass(origin, Collection)  # an Iterable: a string, a set or a generator will do
    if isinstance(value, (str, bytes)):
        return None if loose and args == (type(value),) else _Mismatch(value, hint)
    if isinstance(value, Mapping) or not isinstance(value, Iterable if loose else (tuple, list, origin)):
        return _Mismatch(value, hint)
    if not isinstance(value, Collection):
        return None  # a generator is used up by looking at it
    fixed = origin is tuple and args and ... not in args
    if fixed and len(value) != len(args):
        return _Mismatch(value, hint)
    hints = args if fixed else (args[0] if args else Any,) * len(value)
    for k, (item, own) in enumerate(zip(value, hints, strict=True)):
        wrong = _mismatch(item, own)
        if wrong is not None:
            return wrong.under(k)
    return None


def _settled(value: Any, hint: Any) -> Any:
    """The value with lists in tuples' places made tuples; the very same object where nothing changes."""
    if not isinstance(value, (tuple, list)):
        return value
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    hint = next((m for m in members if get_origin(m) is tuple and _mismatch(value, m) is None), None)
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
