"""The plain form of a dataclass: a pydantic model made from its annotations, and plain values."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, WithJsonSchema, create_model

from redraft.denoiser.guide import Guide, HardGuide, SoftGuide
from redraft.recipes.errors import InvalidRecipeError

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
KIND = "redraft-kind"  # stands in a model's JSON Schema where the schema of recipes has a reference
_SCALARS = (str, int, float, bool, type(None))

ToGuide = Callable[[object], Guide]
Fields = Iterable[tuple[str, Any, Any]]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A field as the constructor takes it; `default` is `inspect.Parameter.empty` where it must be given."""

    name: str
    hint: Any
    default: Any
    variadic: bool = False

    @property
    def required(self) -> bool:
        """Whether a table must have it."""
        return self.default is inspect.Parameter.empty


@lru_cache(maxsize=256)
def parameters(cls: type) -> tuple[Parameter, ...]:
    """A dataclass's fields, in order, with the defaults of its constructor."""
    try:
        hints = typing.get_type_hints(cls)
    except Exception as error:  # whatever evaluating someone's annotations raises
        raise InvalidRecipeError(f"the annotations of {cls.__qualname__} cannot be read: {error}") from error
    signature = inspect.signature(cls)
    found = []
    for field in dataclasses.fields(cls):
        variadic = getattr(cls, "variadic", None) == field.name
        taken = signature.parameters.get(field.name)
        if taken is None:
            raise InvalidRecipeError(
                f"the constructor of {cls.__qualname__} does not take its field {field.name!r}"
            )
        found.append(
            Parameter(field.name, hints[field.name], () if variadic else _default(field, taken), variadic)
        )
    return tuple(found)


def _default(field: dataclasses.Field[Any], taken: inspect.Parameter) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return taken.default


def model(
    cls: type,
    to_guide: ToGuide,
    *,
    keys: Mapping[str, str] | None = None,
    head: Fields = (),
    tail: Fields = (),
) -> type[BaseModel]:
    """A strict pydantic model of a dataclass's plain form; a field stands as `name_`, its key as alias.

    `keys` renames fields; `head` and `tail` are further ones (key, annotation, default) around them, which
    stand as `key__`.
    """
    own = []
    for p in parameters(cls):
        hint = plain_hint(p.hint, to_guide, f"{cls.__qualname__}.{p.name}")
        own.append((p.name, (keys or {}).get(p.name, p.name), hint, ... if p.required else p.default))
    around = [[(f"{key}_", key, hint, default) for key, hint, default in more] for more in (head, tail)]
    fields: dict[str, Any] = {
        f"{name}_": (hint, Field(default, alias=key))
        for name, key, hint, default in (*around[0], *own, *around[1])
    }
    made: type[BaseModel] = create_model(cls.__name__, __config__=STRICT, __doc__=_summary(cls), **fields)
    return made


def _summary(cls: type) -> str:
    return inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]


def plain_hint(hint: Any, to_guide: ToGuide, where: str) -> Any:
    """A field's annotation in plain form: lists for tuples, tables for guides; raises for what has none."""

    def inner(other: Any) -> Any:
        return plain_hint(other, to_guide, where)

    origin, args = get_origin(hint), get_args(hint)
    if hint in _SCALARS or hint is Any or origin is Literal:
        return hint
    if isinstance(hint, type) and issubclass(hint, Guide):
        return Annotated[Any, BeforeValidator(to_guide), WithJsonSchema({KIND: kind_of(hint)})]
    if origin in (Union, types.UnionType):
        return Union[tuple(inner(arg) for arg in holdable(args))]  # noqa: UP007
    if origin is tuple and is_pairs(hint):
        value: Any = inner(get_args(args[0])[1])
        pair: Any = Annotated[tuple[str, value], Strict(False)]
        return dict[str, value] | Annotated[tuple[pair, ...], Strict(False)]
    if origin in (tuple, list):
        items = tuple(arg if arg is ... else inner(arg) for arg in args)
        made: Any = types.GenericAlias(origin, items)
        return Annotated[made, Strict(False)]
    if isinstance(origin, type) and issubclass(origin, Mapping) and args[:1] == (str,):
        return types.GenericAlias(dict, (str, inner(args[1])))
    raise InvalidRecipeError(
        f"{where} has type {hint!r}, which a recipe cannot hold: "
        "use str, int, float, bool, tuples of these, or guides"
    )


def holdable(members: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of a union's members those that a recipe can hold; all of them where it can hold none.

    `str | Denoiser` says that from Python an object may be given too, which a recipe names by a string.
    """
    kept = tuple(m for m in members if not _is_object(m))
    return kept or members


def _is_object(hint: Any) -> bool:
    return isinstance(hint, type) and hint.__module__ != "builtins" and not issubclass(hint, Guide)


def kind_of(cls: type[Guide]) -> str:
    """The name of a class of guides in the JSON Schema of recipes."""
    return (
        "hard guide"
        if issubclass(cls, HardGuide)
        else "soft guide"
        if issubclass(cls, SoftGuide)
        else "guide"
    )


def is_pairs(hint: Any) -> bool:
    """tuple[tuple[str, X], ...], which a table says best."""
    args = get_args(hint)
    if (
        get_origin(hint) is not tuple
        or len(args) != 2
        or args[1] is not ...
        or get_origin(args[0]) is not tuple
    ):
        return False
    pair = get_args(args[0])
    return len(pair) == 2 and holdable(get_args(pair[0]) or pair[:1]) == (str,) and pair[1] is not ...


def plain(value: Any, hint: Any, from_guide: Callable[[Guide], dict[str, Any]]) -> Any:
    """The plain value of a field of annotation `hint`, which `plain_hint` takes back."""

    def inner(item: Any, own: Any) -> Any:
        return plain(item, own, from_guide)

    hint = _member(value, hint)
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(value, Guide):
        return from_guide(value)
    if isinstance(value, (tuple, list)):
        if is_pairs(hint):
            kind, own = get_args(args[0])
            pairs = [(inner(key, kind), inner(item, own)) for key, item in value]
            unique = len({key for key, _ in pairs}) == len(pairs)
            return dict(pairs) if unique else [list(pair) for pair in pairs]
        each = args if origin is tuple and ... not in args else [args[0] if args else Any] * len(value)
        return [inner(item, own) for item, own in zip(value, each, strict=True)]
    if isinstance(value, Mapping):
        return {str(key): inner(item, args[1] if len(args) > 1 else Any) for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, (str, int, float, bool)):
        return value
    raise InvalidRecipeError(f"{value!r} cannot be put in a recipe: use strings, numbers, lists and tables")


def _member(value: Any, hint: Any) -> Any:
    """The member of a union that a value belongs to, or the annotation itself."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    members = [arg for arg in get_args(hint) if arg is not type(None)]
    fitting = [arg for arg in members if isinstance(value, get_origin(arg) or arg)]
    return (fitting or members)[0]
