"""Compile one regular expression with outlines-core, here or in a process that can be stopped.

The engine has no limit of its own: for `.*a.{40}` it wants 2^40 states, and no interrupt would stop it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from outlines_core import Index, Vocabulary

EOS = 256
#: Seconds after which a compilation is given up.
PATIENCE = 20.0

#: Start state, accepting states, transitions by state and byte.
Table = tuple[int, set[int], dict[int, dict[int, int]]]

_COUNT = re.compile(r"\{(\d+)(,?)(\d*)\}")
_PROGRAM = """
import json, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
except (ImportError, ValueError, OSError):
    pass
from outlines_core import Index, Vocabulary
try:
    index = Index(sys.stdin.buffer.read().decode(), Vocabulary(256, {bytes([b]): [b] for b in range(256)}))
    moves = [[state, list(row.items())] for state, row in index.get_transitions().items()]
    answer = [index.get_initial_state(), list(index.get_final_states()), moves]
except ValueError as error:
    answer = str(error)
sys.stdout.write(json.dumps(answer))
"""


def compile_table(pattern: str) -> Table:
    """The engine's table for `pattern`; raises ValueError as the engine does, TimeoutError after PATIENCE."""
    if not (is_risky(pattern) and sys.executable):
        index = Index(pattern, Vocabulary(EOS, {bytes([byte]): [byte] for byte in range(256)}))
        return index.get_initial_state(), set(index.get_final_states()), index.get_transitions()
    command = [sys.executable, "-I", "-c", _PROGRAM]
    try:
        done = subprocess.run(
            command, input=pattern.encode(), capture_output=True, timeout=PATIENCE, check=True
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise TimeoutError(str(error)) from None
    answer = json.loads(done.stdout)
    if isinstance(answer, str):
        raise ValueError(answer)
    start, final, moves = answer
    return start, set(final), {state: dict(row) for state, row in moves}


def is_risky(pattern: str) -> bool:
    """Whether counting could blow up: long counts beside a part of free length."""
    counts = _COUNT.findall(pattern)
    free = any(c in pattern for c in "*+") or any(comma for _, comma, _ in counts)
    return free and sum(max(int(low), int(high or 0)) for low, _, high in counts) >= 8
