"""Text to train on: labelled passages (`GENRE-HAND.txt`) and plain text of the user's own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from redraft.denoiser.errors import RedraftError

_PASSAGE_GENRES = ("story", "tale", "review", "customer", "casual", "formal", "plain", "scene")
GENRES = (*_PASSAGE_GENRES, "chat", "novel", "none")
TONES = ("positive", "negative", "neutral", "none")
REAL = frozenset({"chat", "novel"})  # real text, mixed in beside the passages

_TONE = {"+": "positive", "-": "negative", "0": "neutral"}
_MARKED = re.compile(r"^[+\-0] \S")
_HAND = re.compile(r"^(?P<genre>[a-z]+)(?:-(?P<hand>.+))?$")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_MAX_WORDS = 80
MIN_WORDS = 200


class CorpusError(RedraftError, ValueError):
    """A corpus that cannot be read or is too small to learn from."""


@dataclass(frozen=True)
class Passage:
    """One text with its tags; `source` is the name of the file it came from."""

    text: str
    genre: str
    tone: str
    source: str

    @property
    def hand(self) -> int:
        """The writer's number; 0 where the file name has none."""
        tail = self.source.partition("-")[2]
        return int(tail) if tail.isdecimal() else 0

    @property
    def held_out(self) -> bool:
        """1 % by a hash of the text alone, so that it never moves as the corpus grows."""
        return self.key % 100 == 0

    @property
    def key(self) -> int:
        """A stable hash of the text."""
        return int.from_bytes(hashlib.blake2b(self.text.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Corpus:
    """Deduplicated passages, split into those to train on and those held out."""

    train: tuple[Passage, ...]
    held: tuple[Passage, ...]

    @property
    def words(self) -> int:
        return sum(len(p.text.split()) for p in self.train)


def read_corpus(folders: Path | Sequence[Path], *, min_words: int = MIN_WORDS) -> Corpus:
    """Read every `*.txt` of the folders (or single files); raise CorpusError if under `min_words` words."""
    places = [folders] if isinstance(folders, Path) else list(folders)
    seen: set[str] = set()
    passages: list[Passage] = []
    for file in _files(places):
        for passage in read_file(file):
            key = " ".join(passage.text.split()).casefold()
            if key not in seen:
                seen.add(key)
                passages.append(passage)
    corpus = Corpus(
        train=tuple(p for p in passages if not p.held_out),
        held=tuple(p for p in passages if p.held_out),
    )
    if corpus.words < min_words:
        where = ", ".join(str(p) for p in places)
        raise CorpusError(
            f"corpus {where}: {corpus.words} words to train on after removing duplicates; "
            f"give at least {min_words} words"
        )
    return corpus


def read_file(file: Path) -> Iterator[Passage]:
    """Passages of one file: marked lines, else one per paragraph, or one per line where no line is blank."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{file}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    named = _HAND.match(file.stem)
    genre = named["genre"] if named and named["genre"] in GENRES else "none"
    lines = [line.strip() for line in text.splitlines()]
    if genre != "none" and all(_MARKED.match(line) for line in lines if line):
        for line in filter(None, lines):
            yield Passage(line[2:].strip(), genre, _TONE[line[0]], file.stem)
        return
    for block in _blocks(lines):
        for piece in _pieces(block):
            yield Passage(piece, genre, "none", file.stem)


def _files(places: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for place in places:
        if not place.exists():
            raise CorpusError(f"corpus {place}: no such file or folder; give a folder of .txt files")
        found = [place] if place.is_file() else sorted(place.glob("*.txt"))
        if not found:
            raise CorpusError(f"corpus {place}: holds no .txt file; put UTF-8 text there, a passage a line")
        files += found
    return files


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Paragraphs where blank lines part them, lines otherwise."""
    if any(not line for line in lines[:-1]):
        paragraphs = "\n".join(lines).split("\n\n")
        yield from (" ".join(p.split()) for p in paragraphs if p.strip())
    else:
        yield from filter(None, lines)


def _pieces(block: str) -> Iterator[str]:
    """Cut a long block at sentence ends into pieces of at most `_MAX_WORDS` words where it can be."""
    piece: list[str] = []
    words = 0
    for sentence in _SENTENCE.split(block):
        count = len(sentence.split())
        if piece and words + count > _MAX_WORDS:
            yield " ".join(piece)
            piece, words = [], 0
        piece.append(sentence)
        words += count
    if piece:
        yield " ".join(piece)
