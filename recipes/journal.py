"""The file that `redraft write --table --out` adds a line to for each row, and goes on from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from redraft.recipes.errors import InvalidRecipeError

BEGIN = b'{"row": '  # how every line begins


class Journal:
    """JSON lines, one a row that is done; a context manager that holds the file open and locked.

    Opening it cuts off a last line that was torn, and drops the lines of rows that failed, so that they are
    tried again. Raises `InvalidRecipeError` where the file cannot be meant: it is another recipe's
    (`plan` differs), no journal at all, or in use.
    """

    def __init__(self, path: str, plan: str) -> None:
        self.path, self.plan = Path(path), plan
        self.done: dict[str, dict[str, Any]] = {}
        self.repaired = False
        self._stream: BinaryIO | None = None

    def __enter__(self) -> Journal:
        try:
            self._stream = self._open()
            self._load()
        except OSError as error:
            self._close()
            raise InvalidRecipeError(f"--out {self.path}: {error.strerror or error}") from error
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._close()

    def add(self, line: dict[str, Any]) -> None:
        """Write one line, whole, and hand it to the system before the next row begins."""
        assert self._stream is not None
        self._stream.write(
            json.dumps(line, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"
        )
        self._stream.flush()

    def _open(self) -> BinaryIO:
        stream = open(self.path, "a+b")  # noqa: SIM115
        if not _locked(stream):
            stream.close()
            raise InvalidRecipeError(
                f"--out {self.path} is being written by another run: wait, or name another"
            )
        return stream

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _load(self) -> None:
        assert self._stream is not None
        self._stream.seek(0)
        raw = self._stream.read()
        kept = []
        for number, line in self._lines(raw):
            table = self._table(line, number)
            if "error" not in table:
                kept.append(line + b"\n")
                self.done[table["key"]] = table
        torn = raw[raw.rfind(b"\n") + 1 :]
        if torn and not (torn.startswith(BEGIN) or BEGIN.startswith(torn)):
            self._table(torn, raw.count(b"\n") + 1)  # no line of ours that was cut: never overwrite it
        whole = b"".join(kept)
        if whole != raw:
            self.repaired = not raw.endswith(b"\n")
            self._replace(whole)

    def _lines(self, raw: bytes) -> Iterator[tuple[int, bytes]]:
        """Whole lines with their numbers; what stands behind the last line end was torn off."""
        for number, line in enumerate(raw.split(b"\n")[:-1], 1):
            if line.strip():
                yield number, line

    def _table(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            table = json.loads(line)
        except ValueError:
            table = None
        if not isinstance(table, dict) or not isinstance(table.get("key"), str) or "plan" not in table:
            raise InvalidRecipeError(
                f"--out {self.path}, line {number} was not written by redraft write --table: name another file"
            )
        if table["plan"] != self.plan:
            raise InvalidRecipeError(
                f"--out {self.path} was written with another recipe or other options: name another file"
            )
        return table

    def _replace(self, content: bytes) -> None:
        """Put other content in the file's place at once, so that a crash leaves the one or the other."""
        spare = self.path.with_name(f"{self.path.name}.part")
        with spare.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if os.name == "nt":  # an open file cannot be replaced there
            self._close()
        os.replace(spare, self.path)
        fresh = self._open()
        self._close()
        self._stream = fresh


def _locked(stream: BinaryIO) -> bool:
    """Lock a file for this process, where the system can; the lock goes when the process does, however it ends."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
