"""The page's style sheet and its one script; both stand in the page, and nothing else is loaded."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

_HERE = Path(__file__).parent
LEVELS = 10
SHADES = "".join(
    f".w{k}{{background:color-mix(in srgb,var(--when) {5 * k}%,transparent)}}"
    f".t{k}{{background:color-mix(in srgb,var(--tint) {7 * k}%,transparent)}}\n"
    for k in range(1, LEVELS + 1)
)
CSS = (_HERE / "page.css").read_text(encoding="utf-8") + SHADES
SCRIPT = (_HERE / "page.js").read_text(encoding="utf-8")


def policy() -> str:
    """A content security policy under which the page's own style and script run, and nothing else at all."""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_hash(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
