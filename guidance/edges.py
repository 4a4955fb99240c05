"""What `StartsWith` and `EndsWith` share: alternatives of exact text at one end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import HardGuide, InvalidGuideError, Scene
from redraft.denoiser.errors import UnwritableTextError
from redraft.guidance.counts import shorten
from redraft.guidance.occurrence import cases, same


@dataclass(frozen=True, init=False)
class Edge(HardGuide):
    """One of `texts` stands at an end of the text, character by character, white space included."""

    variadic: ClassVar[str | None] = "texts"
    texts: tuple[str, ...]
    ignore_case: bool

    def __init__(self, *texts: str, ignore_case: bool = False) -> None:
        title = type(self).__name__
        if not texts:
            raise InvalidGuideError(f"{title} has no text: give at least one")
        for text in texts:
            if not isinstance(text, str) or not text:
                raise InvalidGuideError(f"a text of {title} is {text!r}: give a string that is not empty")
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise InvalidGuideError(f"{text!r} holds half a surrogate pair, which no text does: drop it")
        object.__setattr__(self, "texts", tuple(dict.fromkeys(texts)))
        object.__setattr__(self, "ignore_case", ignore_case)

    def pattern(self, scene: Scene) -> str:
        """The alternatives as a regex; raises `UnwritableTextError` where the vocabulary can write none of them."""
        failed: UnwritableTextError | None = None
        for text in self.texts:
            try:
                scene.vocabulary.encode(text)
                break
            except UnwritableTextError as error:
                failed = error
        else:
            assert failed is not None
            raise failed
        return "|".join("".join(map(self._char, text)) for text in self.texts)

    def _char(self, char: str) -> str:
        forms = cases(char) if self.ignore_case else (char,)
        return "[" + "".join(f"\\x{{{ord(form):x}}}" for form in forms) + "]"

    def same(self, piece: str, wanted: str) -> bool:
        """Whether a piece of text is one of the texts, as case counts here."""
        return same(piece, wanted) if self.ignore_case else piece == wanted

    def room(self) -> int | None:
        return 16 + max(map(len, self.texts)) // 3

    def __str__(self) -> str:
        listed = ", ".join(repr(shorten(text, 40)) for text in self.texts[:4])
        more = f", ... {len(self.texts)} in all" if len(self.texts) > 4 else ""
        return f"{type(self).__name__}({listed}{more}{', ignore_case=True' if self.ignore_case else ''})"
