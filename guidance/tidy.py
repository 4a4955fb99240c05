"""Plain typographic order: no doubled marks, single spaces, a capital to begin with and a stop to end with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import regex

from redraft.denoiser import Automaton, HardGuide, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.reading import BLANKS, BREAKS, over_characters

#: Unicode's category Cc.
CONTROLS = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAMED = {
    "capital": _CAPITALS,
    "small": _CAPITALS.lower(),
    "digit": "0123456789",
    "space": " ",
    "line": "\n",
    "bad": (BREAKS | BLANKS | CONTROLS) - {" ", "\n"},
    "comma": ",:",
    "semicolon": ";",
    "dot": ".",
    "stop": "!?",
    "ellipsis": "\u2026",
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
        ("small letter behind a stop", (rf"(?<!\.\.)[.!?][{_CLOSERS}]*\s+[\"'’(\[“‘]*\p{{Ll}}",)),
        ("control character", (r"[^\P{Cc}\s]|[\x1c-\x1f]",)),
        ("white space", (r"[^\S \n]", r"\A\s", r"\s\Z", "  ", "\n ", " \n", "\n{3,}")),
    )
]
_START = regex.compile(r"[\"'’(\[“‘]*[\p{Lu}\p{Lt}0-9]")
_END = regex.compile(rf"[.!?…][{_CLOSERS}]*\Z")

_WORDS = ("capital", "small", "digit", "ascii", "")
_SPACES = {"space": "space", "line": "line"}
_ENDING = {"dot": "dot", "stop": "stop", "ellipsis": "ellipsis", "comma": "comma", "semicolon": "comma"}
_OPENING = {"quote": "quote(", "apostrophe": "apostrophe(", "open": "open", "dash": "dash"}
_CLOSING = {"quote": "quote)", "apostrophe": "apostrophe", "close": "close", "dash": "dash"}
_WORD = {"digit": "digit"} | dict.fromkeys(("capital", "small", "ascii", ""), "word")
_AFTER_MARK = dict.fromkeys(("quote", "apostrophe", "close"), "ended") | {"dash": "dash"} | _SPACES
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
    "two dots": {"dot": "ellipsis"},
    "ellipsis": _AFTER_MARK | dict.fromkeys(("quote", "apostrophe", "close"), "trailed"),
    "trailed": _AFTER_MARK
    | dict.fromkeys(("quote", "apostrophe", "close"), "trailed")
    | {"comma": "comma", "semicolon": "comma"},
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
_LAST = ("stop", "dot", "point", "ended", "ellipsis", "trailed")
_SENTENCE = ("stop", "dot", "point", "ended")


@dataclass(frozen=True)
class Tidy(HardGuide):
    """Tidy prose: it begins with a capital or a digit (an opening quote or bracket may stand before it) and
    ends in . ! ? or an ellipsis (closing quotes and brackets may follow).

    In between no mark is doubled or meets another (only `...` may be), none follows a space, one space or
    line break follows each (digits may follow as in 3,000 and 3.50), no small letter follows a sentence's stop,
    brackets and straight quotes hug what they hold, and the only white space is single spaces, line breaks and
    one blank line between paragraphs. No control character occurs but these line breaks. Abbreviations with inner
    stops ("e.g.", "U.S.") are not tidy here. What is written has its straight quotes in pairs as well, and no
    apostrophe before a word.
    """

    name: ClassVar[str] = "tidy"

    def language(self, scene: Scene) -> Automaton:
        return lift(_automaton(sure=True), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def outer(self, scene: Scene) -> Automaton:
        """Here any character beyond ASCII may be a capital, and quotes need not pair."""
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


class _State(NamedTuple):
    """kind: the last character's; mark: the closing mark it may be; begun: 0 where the text has not begun, 1
    inside a sentence, 2 behind one; quoted: inside straight quotes (followed only where `sure`)."""

    kind: str
    mark: str
    begun: int
    quoted: bool


@lru_cache(maxsize=2)
def _automaton(*, sure: bool) -> Automaton:
    def step(state: _State, label: str) -> _State | None:
        kind, mark, begun, quoted = state
        after = (_BEHIND_SPACE if kind == "start" else _NEXT[kind]).get(label)
        if after is None or (label == mark and label in ("quote", "apostrophe")):
            return None
        if begun == 0 and label in ("small", "ascii", "dash"):
            return None
        if begun != 1 and (label == "small" or (label == "" and sure)):
            return None
        if sure and (
            after in ("apostrophe(", "quote") or (label == "quote" and (after == "quote(") == quoted)
        ):
            return None
        mark = label if after in ("ended", "paused", "trailed") else ""
        if kind in _SENTENCE and label in _SPACES:
            begun = 2
        elif label in _WORDS or label == "dash":
            begun = 1
        return _State(after, mark, begun, quoted ^ (sure and label == "quote"))

    def accepting(state: _State) -> bool:
        return state.kind in _LAST and state.begun > 0 and not state.quoted

    return over_characters(_State("start", "", 0, False), step, accepting, _NAMED)
