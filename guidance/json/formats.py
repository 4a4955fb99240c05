"""String formats: each a regular language, and plain code that judges a string."""

from __future__ import annotations

import datetime
import ipaddress
import re
import uuid
from collections.abc import Callable
from functools import lru_cache

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.nfa import concat
from redraft.denoiser.regex import compile_regex

_DAYS = (
    "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8])"
)
_LEAP_YEAR = "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_TIME = (
    "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_LOCAL = "[A-Za-z0-9_%+-]+"
_HOST = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HEX = "[0-9a-fA-F]"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"


@lru_cache(maxsize=1)
def _date() -> Automaton:
    plain = compile_regex(f"[0-9][0-9][0-9][0-9]-(?:{_DAYS})|{_LEAP_YEAR}-02-29")
    return plain - compile_regex("0000.*")


@lru_cache(maxsize=1)
def _date_time() -> Automaton:
    return concat(_date(), compile_regex("T"), compile_regex(_TIME))


#: Byte languages by format: a subset of what the format's standard allows, all of it in common use.
FORMATS: dict[str, Callable[[], Automaton]] = {
    "date": _date,
    "time": lambda: compile_regex(_TIME),
    "date-time": _date_time,
    "email": lambda: compile_regex(rf"{_LOCAL}(?:\.{_LOCAL})*@(?:{_HOST}\.)+[A-Za-z][A-Za-z]+"),
    "uuid": lambda: compile_regex("-".join(_HEX * count for count in (8, 4, 4, 4, 12))),
    "ipv4": lambda: compile_regex(rf"{_BYTE}\.{_BYTE}\.{_BYTE}\.{_BYTE}"),
}


def _is_date(value: str) -> bool:
    return len(value) == 10 and value.isascii() and bool(datetime.date.fromisoformat(value))


def _is_time(value: str) -> bool:
    clock = re.match(r"\d\d:\d\d:\d\d(\.\d+)?(?=Z|z|[+-]\d\d:\d\d\Z)", value, re.ASCII)
    if clock is None:
        return False
    zone = value[clock.end() :]
    hour, minute, second = (int(part) for part in clock.group()[:8].split(":"))
    offset = datetime.time.fromisoformat(zone[1:]) if zone[1:] else None
    return hour < 24 and minute < 60 and second < 60 and (bool(zone) if offset is None else zone[0] in "+-")


def _is_date_time(value: str) -> bool:
    date, mark, time = value[:10], value[10:11], value[11:]
    return mark in ("T", "t") and _is_date(date) and _is_time(time)


def _is_email(value: str) -> bool:
    local, mark, host = value.rpartition("@")
    parts = [*local.split("."), *host.split(".")]
    return bool(mark) and "." in host and all(part and part == "".join(part.split()) for part in parts)


def _is_uuid(value: str) -> bool:
    return str(uuid.UUID(value)) == value.lower()


def _is_ipv4(value: str) -> bool:
    return bool(str(ipaddress.IPv4Address(value)) == value)


#: Judges of a string by format; a ValueError means no. None of them knows the languages.
CHECKS: dict[str, Callable[[str], bool]] = {
    "date": _is_date,
    "time": _is_time,
    "date-time": _is_date_time,
    "email": _is_email,
    "uuid": _is_uuid,
    "ipv4": _is_ipv4,
}
