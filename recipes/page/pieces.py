"""Tokens as text on a page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from redraft.denoiser.card import escaped

END = "\u220e"


class Pieces:
    """What each token of a vocabulary shows as; `end` are the tokens that have no bytes (EOS, padding)."""

    def __init__(self, token_bytes: Sequence[bytes | None]) -> None:
        self.token_bytes = token_bytes

    def text(self, token: int) -> str:
        """A token alone: its text, its bytes where these are no whole character, or the mark of the end."""
        raw = self.token_bytes[token]
        if raw is None:
            return END
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return f"\u27e8{raw.hex(' ').upper()}\u27e9"

    def size(self, tokens: Sequence[int]) -> int:
        """How many positions belong to the text; those behind are its end and padding."""
        ends = [i for i, token in enumerate(tokens) if self.token_bytes[token] is None]
        return ends[0] if ends else len(tokens)

    def run(self, tokens: Sequence[int], classes: Sequence[str]) -> str:
        """Tokens as HTML, neighbours of one class in one element; of what follows the end only its mark."""
        last = min(self.size(tokens) + 1, len(tokens))
        parts = []
        for name, group in groupby(zip(tokens[:last], classes[:last], strict=True), key=lambda pair: pair[1]):
            raw = b"".join(END.encode() if b is None else b for b in (self.token_bytes[t] for t, _ in group))
            shown = escaped(raw.decode("utf-8", "replace"))
            parts.append(f'<span class="{name}">{shown}</span>' if name else shown)
        return "".join(parts)
