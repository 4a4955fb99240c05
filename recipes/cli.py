"""The command `redraft`: its entry point, and what each way to fail says and returns.

Exit codes: 0 fine; 1 a hard guide is violated, a row of a table failed, two recipes differ, or something is
missing (doctor); 2 usage, an invalid recipe, or output that cannot be written; 3 unsatisfiable; 130
interrupted; 141 nobody reads the output any more.
Everything is imported inside `run`, so that Ctrl-C leaves quietly from the first moment on.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence

_UNWRITTEN = {
    getattr(errno, name)
    for name in ("ENOSPC", "EIO", "EFBIG", "EDQUOT", "EROFS", "EBADF")
    if hasattr(errno, name)
}
FINE, VIOLATED, INVALID, UNSATISFIABLE, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141


def main() -> None:
    """Run the command and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command with arguments; every failure is one message on standard error, and an exit code."""
    try:
        from redraft.recipes.app import app

        for argument in arguments:
            argument.encode()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a narrow encoding shows ? rather than nothing
        code = app(args=list(arguments), prog_name="redraft", standalone_mode=False)
        sys.stdout.flush()
        return int(code or FINE)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            return _leave_quietly()
        return stop.code if isinstance(stop.code, int) else INVALID
    except BrokenPipeError:
        return _leave_quietly()
    except UnicodeEncodeError as error:
        return _say(f"{error.object!a} is not text in UTF-8: write it in UTF-8", error)
    except Exception as error:
        return _explain(error)


def _explain(error: Exception) -> int:
    if isinstance(error, OSError) and error.filename:
        return _say(f"{error.filename}: {error.strerror}", error)
    if isinstance(error, OSError) and error.errno in _UNWRITTEN:
        code = _say(f"the output cannot be written: {error.strerror}", error)
        _let_go()
        return code
    try:
        import typer

        from redraft.recipes.app import CLICK_ERROR

        if isinstance(error, typer.Abort):
            return INTERRUPTED
        if isinstance(error, CLICK_ERROR):
            error.show()  # type: ignore[attr-defined]
            return INVALID
        from redraft.denoiser.errors import GuideError, RedraftError, UnsatisfiableError
        from redraft.recipes.blame import blame
    except Exception as broken:  # a library that is missing or does not load; nothing else can have worked
        return _say(f"Redraft does not load: {type(broken).__name__}: {broken}", broken)
    if isinstance(error, GuideError) and isinstance(error.__cause__, Exception):
        return _say(blame(error.__cause__), error)
    if isinstance(error, RedraftError):
        return _say(str(error), error, UNSATISFIABLE if isinstance(error, UnsatisfiableError) else INVALID)
    return _say(blame(error), error)


def _say(message: str, error: BaseException, code: int = INVALID) -> int:
    if os.environ.get("REDRAFT_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    print(f"redraft: {message}", file=sys.stderr)
    return code


def _leave_quietly() -> int:
    """Nobody reads on."""
    _let_go()
    return UNREAD


def _let_go() -> None:
    """Let the interpreter flush what is left of the output into nothing when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
