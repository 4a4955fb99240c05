"""Plain values as TOML that people like to read: short lists and nested guides on one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomli_w

_WIDTH = 100


def toml(table: Mapping[str, Any]) -> str:
    """A table as TOML: plain keys first, then its tables and lists of tables, each in the order given.

    Tables within tables within tables are written inline.
    """
    blocks = [_block({key: value for key, value in table.items() if not _stands_apart(value)})]
    for key, value in table.items():
        if isinstance(value, Mapping):
            blocks.append(f"[{_key(key)}]\n{_block(value)}")
        elif _stands_apart(value):
            blocks += [f"[[{_key(key)}]]\n{_block(item)}" for item in value]
    return "\n".join(block for block in blocks if block)


def inline(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {inline(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(inline(item) for item in value)}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").removesuffix("\n")


def _stands_apart(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, Mapping) for item in value)
    return isinstance(value, Mapping)


def _block(table: Mapping[str, Any]) -> str:
    return "".join(f"{_line(key, value)}\n" for key, value in table.items())


def _line(key: str, value: Any) -> str:
    line = f"{_key(key)} = {inline(value)}"
    if len(line) > _WIDTH and isinstance(value, list):
        return "\n".join([f"{_key(key)} = [", *(f"    {inline(item)}," for item in value), "]"])
    return line


def _key(key: str) -> str:
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")
