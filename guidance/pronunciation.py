"""How English words sound: syllables and rhymes by the CMU Pronouncing Dictionary (126,000 words), shipped here.

`tools/build_pronunciations.py` makes the data; its licence stands beside it.
"""

from __future__ import annotations

import lzma
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from redraft.guidance.reading import MARKS

_DASHES = re.compile(r"[\s\u2012\u2013\u2014]+|--+")
_SOUND = re.compile(r"(\d+)(.*)")
_VOWELS = re.compile(r"[aeiouy]+")
_EDGES = "".join(MARKS)
_LETTERS = re.compile(r"[a-z]+(?:['-][a-z]+)*'?|'[a-z]+")
_ABBREVIATED = {"mr", "mrs", "ms", "dr", "st", "prof"}


@dataclass(frozen=True)
class Sounds:
    """A word's pronunciations, the usual one first: syllables, and the sounds from the last stressed vowel on."""

    syllables: tuple[int, ...]
    tails: tuple[str, ...]


def sounds(word: str) -> Sounds | None:
    """A word's pronunciations, case and marks around it ignored; None for a word that is not known.

    A hyphenated word that is not in the dictionary sounds like its parts.
    """
    name = cleaned(word)
    for form in (name, name.strip("'")):
        if form in _table():
            return _read(_table()[form])
    parts = [sounds(part) for part in name.split("-")] if "-" in name else []
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    totals = {0: None}
    for part in known:
        totals = {total + count: None for total in totals for count in part.syllables}
    return Sounds(tuple(totals), known[-1].tails)


def syllables(word: str, *, estimated: bool = False) -> tuple[int, ...]:
    """The possible numbers of syllables, the usual one first; () for a word that is not known (and, where
    `estimated`, holds anything but Latin letters)."""
    known = sounds(word)
    if known is not None:
        return known.syllables
    guess = estimate(word) if estimated else None
    return () if guess is None else (guess,)


def estimate(word: str) -> int | None:
    """Syllables of a word by its letters: groups of vowels (aeiouy), without a silent e at the end, one at least.

    A silent e: after a consonant (-le and -re behind another consonant are heard, and so is an accented e), and in
    -es and -ed but for what makes them heard (s, x, z, c, g, h; t, d). Two in one group: ia, io, eo, iu, ua and
    -ing behind a vowel, but for -tion, -cial and the like. None for a word with other characters.
    """
    name = cleaned(word)
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    if not _LETTERS.fullmatch(plain):
        return None
    accented = plain.endswith("e") and not name.endswith("e")  # as in cafe with its accent
    return sum(_guess(part) for part in re.split(r"[-']", plain) if _VOWELS.search(part)) + accented or 1


def _guess(part: str) -> int:
    count = len(_VOWELS.findall(part))
    e = re.search(r"[^aeiouy]e$", part) and not re.search(r"[^aeiouylr][lr]e$", part)
    ed = re.search(r"[^aeioutdy]ed$", part)
    es = re.search(r"[^aeiouysxzcgh]es$", part)
    silent = bool(e or ed or es)
    double = re.search(r"(i[ao]|[^aeiou]ua|eo|iu)(?!u)", part) and not re.search(r"[tscg]i[ao]", part)
    return max(1, count - silent + bool(double) + bool(re.search(r"[aeiouy]ing", part)))


def line_words(line: str) -> list[tuple[int, str]]:
    """The words of a line with their offsets: what white space and dashes separate, marks around them left out."""
    found, at = [], 0
    for piece in _DASHES.split(line):
        word = piece.strip(_EDGES)
        if word:
            at = line.index(piece, at)
            offset = at + piece.index(word)
            lead = piece[: offset - at]
            found.append((offset - lead.endswith("'"), "'" * lead.endswith("'") + word))
        at += len(piece)
    return found


def cleaned(word: str) -> str:
    """A word as the dictionary has it: lower case, straight apostrophes, no other marks around it."""
    return word.replace("\u2019", "'").casefold().strip(_EDGES.replace("'", ""))


def rhyme(one: str, other: str) -> bool:
    """Whether two different words sound alike from the last stressed vowel on, in some pronunciation of each."""
    a, b = sounds(one), sounds(other)
    different = cleaned(one).split("-")[-1].strip("'") != cleaned(other).split("-")[-1].strip("'")
    return different and a is not None and b is not None and bool(set(a.tails) & set(b.tails))


@lru_cache(maxsize=1)
def common() -> tuple[str, ...]:
    """Some 8,500 everyday words, the most frequent first, as they are written inside a sentence."""
    words = (line.split(" ", 1)[0] for line in _data().split("\n\n")[0].splitlines())
    return tuple(word for word in words if word.lower() not in _ABBREVIATED)


@lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    pairs = (line.split(" ", 1) for line in _data().splitlines() if line)
    return {pair[0].lower(): pair[1] for pair in pairs}


@lru_cache(maxsize=1)
def _data() -> str:
    return lzma.decompress(
        (files("redraft.guidance") / "data" / "pronunciations.txt.xz").read_bytes()
    ).decode()


@lru_cache(maxsize=16384)
def _read(entry: str) -> Sounds:
    pairs = [match.groups() for part in entry.split("/") if (match := _SOUND.fullmatch(part))]
    return Sounds(
        tuple(dict.fromkeys(int(count) for count, _ in pairs)),
        tuple(dict.fromkeys(tail for _, tail in pairs)),
    )
