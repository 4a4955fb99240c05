"""Plain typographic order: no doubled marks, single spaces, a capital to begin with and a stop to end with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import regex

from redraft.denoiser import Automaton, HardGuide, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.reading import BLANKS, BREAKS, over_characters

_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAMED = {
    "capital": _CAPITALS,
    "digit": "0123456789",
    "space": " ",
    "line": "\n",
    "bad": (BREAKS | BLANKS) - {" ", "\n"},
    "comma": ",:",
    "semicolon": ";",
    "dot": ".",
    "stop": "!?\u2026",
    "open": "([\u201c\u2018",
    "close": ")]\u201d",
    "quote": '"',
    "apostrophe": "'\u2019",
    "dash": "-\u2013\u2014",
}
_NAMED["ascii"] = {chr(code) for code in range(128)} - {char for chars in _NAMED.values() for char in chars}

_OPENS = r"(?<=\A|[\s(\[“‘])"  # where a straight quote must be an opening one
_MARK = r",;:.!?…"
_CLOSERS = r"\"'’”)\]"
_FAULTS = [
    (label, regex.compile("|".join(parts)))
    for label, parts in (
        ("doubled mark", ("[,;:][,;:.!?…]", "[.!?…][,;:]", "[!?…][.!?…]", r"\.[!?…]")),
        ("doubled mark", (r"(?<!\.)\.\.(?!\.)", r"\.{4,}", "[-–—]{2,}", '""', "['’]{2,}")),
        ("doubled mark", (rf"[,;:][{_CLOSERS}]+[{_MARK}]", rf"[.!?…][{_CLOSERS}]+[.!?…]")),
        ("empty bracket", (rf"[(\[“‘][)\]”{_MARK}]",)),
        ("space before a mark", (rf"\s[{_MARK})\]”]",)),
        ("space behind an opening mark", (r"[(\[“‘]\s", rf"{_OPENS}\"[\s{_MARK})\]”]")),
        ("loose apostrophe", (rf"(?<={_OPENS}\"?)['’][\s{_MARK})\]”\"]",)),
        ("no space behind a mark", (rf"(?<![0-9])[,:.](?=[^\s{_MARK}{_CLOSERS}–—-])",)),
        ("no space behind a mark", (rf"(?<=[0-9])[,:.](?=[^\s{_MARK}{_CLOSERS}–—0-9-])",)),
        ("no space behind a mark", (rf"[;!?…](?=[^\s{_MARK}{_CLOSERS}–—-])",)),
        ("no space behind a mark", (rf"[{_MARK}][{_CLOSERS}]+(?=[^\s{_MARK}{_CLOSERS}–—-])",)),
        ("no space behind a mark", (rf"(?<=[^\s(\[“‘–—-])\"(?=[^\s{_MARK}{_CLOSERS}–—-])",)),
        ("no space behind a mark", (rf"[)\]”](?=[^\s{_MARK}{_CLOSERS}–—-])",)),
        ("no space before a bracket", (r"[^\s(\[“‘–—\"'’-][(\[“‘]",)),
        ("white space", (r"[^\S \n]", r"\A\s", r"\s\Z", "  ", "\n ", " \n", "\n{3,}")),
    )
]
_START = regex.compile(r"[\"'’(\[“‘]*[\p{Lu}\p{Lt}0-9]")
_END = regex.compile(rf"[.!?…][{_CLOSERS}]*\Z")

_WORDS = ("capital", "digit", "ascii", "")
_SPACES = {"space": "space", "line": "line"}
_ENDING = {"dot": "dot", "stop": "stop", "comma": "comma", "semicolon": "comma"}
_OPENING = {"quote": "quote(", "apostrophe": "apostrophe(", "open": "open", "dash": "dash"}
_CLOSING = {"quote": "quote)", "apostrophe": "apostrophe", "close": "close", "dash": "dash"}
_WORD = {"digit": "digit"} | dict.fromkeys(("capital", "ascii", ""), "word")
_AFTER_MARK = {kind: "ended" for kind in ("quote", "apostrophe", "close")} | {"dash": "dash"} | _SPACES
_BEHIND_WORD = _WORD | _SPACES | _ENDING | _CLOSING
_BEHIND_SPACE = _WORD | _OPENING
_LOOSE = _WORD | _SPACES | _ENDING | {"open": "open", "close": "close", "dash": "dash"}

#: What each kind of character may be followed by, and what the next one is then.
_NEXT: dict[str, dict[str, str]] = {
    "word": _BEHIND_WORD,
    "digit": _BEHIND_WORD | {"comma": "number", "dot": "point"},
    "space": _BEHIND_SPACE,
    "line": _BEHIND_SPACE | {"line": "paragraph"},
    "paragraph": _BEHIND_SPACE,
    "comma": _AFTER_MARK | dict.fromkeys(("quote", "apostrophe", "close"), "paused"),
    "number": _AFTER_MARK | dict.fromkeys(("quote", "apostrophe", "close"), "paused") | {"digit": "digit"},
    "stop": _AFTER_MARK,
    "dot": _AFTER_MARK | {"dot": "two dots"},
    "point": _AFTER_MARK | {"dot": "two dots", "digit": "digit"},
    "two dots": {"dot": "stop"},
    "paused": _SPACES | dict.fromkeys(("quote", "apostrophe", "close"), "paused") | {"dash": "dash"},
    "ended": _AFTER_MARK | {"comma": "comma", "semicolon": "comma"},
    "open": _BEHIND_SPACE,
    "quote(": _WORD | {"apostrophe": "apostrophe(", "open": "open", "dash": "dash"},
    "quote)": _SPACES | _ENDING | {"close": "close", "dash": "dash", "apostrophe": "apostrophe"},
    "quote": _LOOSE | {"apostrophe": "apostrophe"},
    "apostrophe(": _WORD | {"open": "open", "dash": "dash"},
    "apostrophe": _LOOSE | {"quote": "quote)"},
    "dash": _WORD
    | _SPACES
    | _ENDING
    | {"quote": "quote", "apostrophe": "apostrophe", "open": "open", "close": "close"},
    "close": _SPACES | _ENDING | _CLOSING,
}
_LAST = ("stop", "dot", "point", "ended")


@dataclass(frozen=True)
class Tidy(HardGuide):
    """Tidy prose: it begins with a capital or a digit (an opening quote or bracket may stand before it) and
    ends in . ! ? or an ellipsis (closing quotes and brackets may follow).

    In between no mark is doubled or meets another (only `...` may be), none follows a space, one space or
    line break follows each (digits may follow as in 3,000 and 3.50), brackets and straight quotes hug what
    they hold, and the only white space is single spaces, line breaks and one blank line between paragraphs.
    Abbreviations with inner stops ("e.g.", "U.S.") are not tidy here.
    """

    name: ClassVar[str] = "tidy"

    def language(self, scene: Scene) -> Automaton:
        return lift(_automaton(sure=True), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def outer(self, scene: Scene) -> Automaton:
        """Any character beyond ASCII may be a capital here; in `language` none is."""
        return lift(_automaton(sure=False), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def check(self, text: str) -> Verdict:
        spans = [Span(m.start(), m.end(), label) for label, fault in _FAULTS for m in fault.finditer(text)]
        if not _START.match(text):
            spans.append(Span(0, min(1, len(text)), "no capital at the start"))
        if not _END.search(text):
            spans.append(Span(max(0, len(text) - 1), len(text), "no stop at the end"))
        spans.sort(key=lambda span: (span.start, span.end))
        note = ", ".join(dict.fromkeys(span.label for span in spans))
        return self.verdict(not spans, None, tuple(spans), note)


@lru_cache(maxsize=2)
def _automaton(*, sure: bool) -> Automaton:
    """States: (kind of the last character, the straight quote it may be, whether the text has begun)."""

    def step(state: tuple[str, str, bool], label: str) -> tuple[str, str, bool] | None:
        kind, mark, begun = state
        if not begun and label in ("ascii", "dash", "" if sure else "ascii"):
            return None
        after = (_BEHIND_SPACE if kind == "start" else _NEXT[kind]).get(label)
        if after is None or (label == mark and label in ("quote", "apostrophe")):
            return None
        return after, label if after in ("ended", "paused") else "", begun or label in _WORDS

    return over_characters(("start", "", False), step, lambda s: s[0] in _LAST and s[2], _NAMED)
