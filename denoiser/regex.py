"""Regular expressions as byte automata, compiled by outlines-core (Rust regex syntax)."""

from __future__ import annotations

import re
from functools import lru_cache, reduce

import numpy as np

from redraft.denoiser.automaton import STATE_BUDGET, Automaton
from redraft.denoiser.cache import cached
from redraft.denoiser.errors import InvalidGuideError, StateBudgetError
from redraft.denoiser.nfa import concat
from redraft.denoiser.pattern import alternatives, check_pattern
from redraft.denoiser.regex_worker import EOS, Table, compile_table


@lru_cache(maxsize=256)
def compile_regex(pattern: str) -> Automaton:
    """The UTF-8 byte strings (alphabet 256) of the texts that `pattern` matches as a whole.

    Rust regex syntax: `.` is any character but a newline (`(?s)` admits it), `\\d`, `\\w`, `\\s`, `(?i)` are
    Unicode-aware, `\\p{Greek}` and `[[:alpha:]]` work; greedy or lazy makes no difference to a whole match. A
    leading `^` and a trailing `$` are allowed and change nothing. Raises InvalidGuideError for lookaround,
    backreferences, `\\b` and other things that are not regular, and for syntax errors; StateBudgetError.
    """
    flags, body = check_pattern(pattern)
    end = "\n" if "x" in flags else ""
    # Without the \z the engine stops at its preferred match: `a|ab` would lose "ab". Without a letter before
    # it, it refuses a pattern that may be empty before \z. And without the empty alternatives it would also
    # search from every later byte, which takes `.{10,80}` beyond 2^70 states.
    wrapped = f"x(?:x(?:{flags}{body}{end})|)\\z|"
    try:
        return cached("regex", (wrapped,), lambda: _automaton(compile_table(wrapped), pattern))
    except TimeoutError:
        raise StateBudgetError(
            f"regex {pattern[:80]!r} needs too many states: a counted part that may begin anywhere, as in "
            "`.*a.{20}`, doubles them with every count; split the pattern into guides joined by `&`, or count less"
        ) from None
    except ValueError as error:
        raise _explain(pattern, error) from None


@lru_cache(maxsize=256)
def compile_search(pattern: str) -> Automaton:
    """The UTF-8 byte strings of the texts in which `pattern` matches somewhere; `^` and `$` hold it at an end.

    An anchor may begin or end the pattern or a top-level alternative (`^a|b$`). Raises as `compile_regex`.
    """
    found = []
    for part in alternatives(pattern):
        core = compile_regex(part.flags + part.body)
        ends = [[UTF8], [core], [UTF8]][part.from_start : 3 - part.to_end]
        found.append(concat(*(language for group in ends for language in group)))
    return reduce(lambda a, b: a | b, found)


def _automaton(table: Table, pattern: str) -> Automaton:
    start, final, transitions = table
    names = {*transitions, *final}
    if len(names) > STATE_BUDGET:
        message = f"regex {pattern[:60]!r} needs {len(names)} states, more than {STATE_BUDGET}; count less"
        raise StateBudgetError(message, sizes=(len(names),))
    number = {name: i for i, name in enumerate(sorted(names))}
    dead = len(number)
    delta = np.full((dead + 1, 256), dead, dtype=np.int32)
    for name, row in transitions.items():
        pairs = [(byte, number[target]) for byte, target in row.items() if byte != EOS]
        if pairs:
            symbols, targets = zip(*pairs, strict=True)
            delta[number[name], list(symbols)] = targets
    accept = np.zeros(dead + 1, dtype=bool)
    accept[[number[name] for name in final]] = True
    whole = Automaton(np.arange(256, dtype=np.int32), delta, number[start], accept)
    return Automaton(whole.classes, delta, whole.run(b"xx"), accept).minimise()


def _explain(pattern: str, error: ValueError) -> InvalidGuideError:
    """Name the construct and its place, which the engine's own message leaves out."""
    if "incompatible with the regex" in str(error):
        return InvalidGuideError(f"regex {pattern!r}: a part of it can never match; remove that part")
    try:
        re.compile(pattern)
    except re.error as syntax:
        if syntax.msg.startswith("bad escape"):
            return InvalidGuideError(f"regex {pattern!r}: unknown {_unknown_class(pattern)}; correct it")
        return InvalidGuideError(
            f"regex {pattern!r}: {syntax.msg} at position {syntax.pos}; correct the pattern"
        )
    return InvalidGuideError(
        f"regex {pattern!r} is not in Rust regex syntax ({error}); common differences: "
        "write {0,3} for {,3}, \\z for \\Z, (?P<name>...) for a named group"
    )


def _unknown_class(pattern: str) -> str:
    """The first class such as \\p{Nonsense} that the engine does not know, with its position."""
    for found in re.finditer(r"\\(?:\\.|[pP](?:\{[^}]*\}|.)|[xuU]\{[^}]*\})", pattern):
        try:
            compile_table(f"x{found.group()}")
        except ValueError:
            return f"class {found.group()} at position {found.start()}"
    return "escape or class"


def _utf8() -> Automaton:
    """Valid UTF-8 (RFC 3629, section 4): no overlong forms, no surrogates, nothing past U+10FFFF."""
    any_tail = range(0x80, 0xC0)
    leads = {
        0xE0: (1, range(0xA0, 0xC0)),
        0xED: (1, range(0x80, 0xA0)),
        0xF0: (2, range(0x90, 0xC0)),
        0xF4: (2, range(0x80, 0x90)),
    }

    def step(state: tuple[int, range], byte: int) -> tuple[int, range] | None:
        left, allowed = state
        if left < 0:
            if byte < 0x80:
                return state
            if 0xC2 <= byte <= 0xF4:
                return leads.get(byte, (0 if byte < 0xE0 else 1 if byte < 0xF0 else 2, any_tail))
            return None
        if byte not in allowed:
            return None
        return (left - 1, any_tail if left else range(0))

    return Automaton.build((-1, range(0)), step, lambda state: state[0] < 0)


#: Byte strings that are valid UTF-8 (RFC 3629).
UTF8 = _utf8()
