"""Sphinx configuration: `sphinx-build -W docs build/docs` (extra `docs`)."""

from __future__ import annotations

import re
from typing import Any

project = "Redraft"
copyright = "the Redraft authors, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Redraft"
exclude_patterns = ["example-plugin"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}
python_use_unqualified_type_names = True
suppress_warnings = ["myst.xref_missing"]  # links into the source tree are checked by tests/test_docs.py

_SPECIAL = re.compile(r"([*|_\\])")


def _plain(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with `code` in single backquotes: make them that in reStructuredText."""
    text, block = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not block and text and text[-1] == "":
            text += ["::", ""]
            block = True
        elif line and not indented:
            block = False
        text.append(line if block else _inline(line))
    lines[:] = text


def _inline(line: str) -> str:
    parts = line.split("`")
    if len(parts) % 2 == 0:
        return _SPECIAL.sub(r"\\\1", line.replace("`", "\\`"))
    return "".join(
        f"``{part}``" if odd and part else _SPECIAL.sub(r"\\\1", part)
        for part, odd in zip(parts, [False, True] * len(parts), strict=False)
    )


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _plain)
