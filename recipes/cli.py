"""The command `redraft`: its entry point, and what each way to fail says and returns.

Exit codes: 0 fine; 1 a hard guide is violated (check), or something is missing (doctor); 2 usage or an
invalid recipe; 3 unsatisfiable; 130 interrupted; 141 nobody reads the output any more.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import typer

from redraft.recipes.cli_check import check
from redraft.recipes.cli_info import doctor, guides
from redraft.recipes.cli_recipes import recipes
from redraft.recipes.cli_train import train
from redraft.recipes.cli_write import write

FINE, VIOLATED, INVALID, UNSATISFIABLE, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141
_CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]  # ClickException, wherever typer keeps it

app = typer.Typer(
    name="redraft",
    help="Write texts by parallel refinement, with guides that steer and proof on the decoded text.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(write)
app.command()(check)
app.add_typer(recipes, name="recipes")
app.command()(guides)
app.command()(train)
app.command()(doctor)


def main() -> None:
    """Run the command and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command with arguments; every failure is one message on standard error, and an exit code."""
    try:
        code = app(args=list(arguments), prog_name="redraft", standalone_mode=False)
        sys.stdout.flush()
        return int(code or FINE)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except SystemExit as stop:
        if _is_closed_pipe(stop.__context__):
            return _leave_quietly()
        return stop.code if isinstance(stop.code, int) else INVALID
    except OSError as error:
        return _leave_quietly() if _is_closed_pipe(error) else _say(f"{error.strerror or error}", error)
    except _CLICK_ERROR as error:
        error.show()  # type: ignore[attr-defined]
        return INVALID
    except Exception as error:  # one clear message for whatever else there is
        return _explain(error)


def _explain(error: Exception) -> int:
    try:
        from redraft.denoiser.errors import RedraftError, UnsatisfiableError
        from redraft.recipes.blame import blame
    except Exception as broken:  # a library that is missing or does not load; nothing else can have worked
        return _say(f"Redraft does not load: {type(broken).__name__}: {broken}", broken)
    if isinstance(error, RedraftError):
        return _say(str(error), error, UNSATISFIABLE if isinstance(error, UnsatisfiableError) else INVALID)
    return _say(blame(error), error)


def _say(message: str, error: BaseException, code: int = INVALID) -> int:
    if os.environ.get("REDRAFT_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    print(f"redraft: {message}", file=sys.stderr)
    return code


def _is_closed_pipe(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _leave_quietly() -> int:
    """Nobody reads on: let the interpreter flush into nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNREAD
