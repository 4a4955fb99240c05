"""The pages tell the truth: their Python runs, their links lead somewhere.

Each page is one namespace, run from the top in an empty folder. `<!-- not run: reason -->` on the line above a
block leaves it out. A page is a long test where it writes with a model, or has `<!-- long -->` somewhere.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"^(?:[ \t]*<!-- not run(?P<left>:[^>]*|[^>]*)-->[ \t]*\n(?:[ \t]*\n)?)?"
    r"(?P<indent>[ \t]*)```python[ \t]*\n(?P<code>.*?)^(?P=indent)```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_WRITES = re.compile(r"\b(load|run|write)\(")
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A block of Python on a page; `left_out` is the reason why it is not run, None where it is."""

    line: int
    code: str
    left_out: str | None


def blocks(text: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        left = found["left"]
        yield Block(line, textwrap.dedent(found["code"]), None if left is None else left.strip(" :"))


def run(page: Path, text: str) -> int:
    """Run a page's blocks in one module; gives how many ran."""
    module = ModuleType(f"page_{re.sub(r'[^a-z0-9]', '_', page.stem.lower())}")
    sys.modules[module.__name__] = module  # dataclasses look their module up by name
    count = 0
    try:
        for block in blocks(text):
            if block.left_out is None:
                code = "\n" * block.line + block.code  # tracebacks then show the page's own lines
                exec(compile(code, str(page), "exec", dont_inherit=True), module.__dict__)
                count += 1
    finally:
        del sys.modules[module.__name__]
    return count


def cases() -> Iterator[object]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        code = "".join(block.code for block in blocks(text) if block.left_out is None)
        if code:
            long = "<!-- long -->" in text or _WRITES.search(code) is not None
            marks = [pytest.mark.long] if long else []
            yield pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", list(cases()))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(page, page.read_text(encoding="utf-8")) > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_left_out_has_a_reason_and_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert all(block.left_out != "" for block in blocks(text)), "write <!-- not run: why -->"
    plain = re.sub(r"^([ \t]*)(```|~~~).*?^\1\2", "", text, flags=re.MULTILINE | re.DOTALL)
    for link in _LINK.findall(plain):
        target = link.split("#")[0]
        if target and "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {link}, which is not there"


PAGE = """\
# A page

```python
from dataclasses import dataclass

@dataclass(frozen=True)
class Point:
    x: int
```

<!-- not run: it needs a network -->
```python
raise OSError
```

- In a list

  ```python
  assert Point(3).x == 3
  ```

```text
not python
```
"""


def test_blocks_are_found_where_they_stand(tmp_path: Path) -> None:
    found = list(blocks(PAGE))
    assert [block.left_out for block in found] == [None, "it needs a network", None]
    assert found[2].code == "assert Point(3).x == 3\n"
    assert run(tmp_path / "page.md", PAGE) == 2
    broken = PAGE.replace("x == 3", "x == 4")
    with pytest.raises(AssertionError) as caught:
        run(tmp_path / "page.md", broken)
    assert caught.traceback[-1].lineno + 1 == broken.split("\n").index("  assert Point(3).x == 4") + 1
