"""Lines of so many syllables: haiku and other counted verse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser import Automaton, Bound, HardGuide, InvalidGuideError, Scene, Span, Verdict, Vocabulary
from redraft.guidance.ending import EndAnchored
from redraft.guidance.lines import Lines
from redraft.guidance.occurrence import phrase
from redraft.guidance.pronunciation import line_words, syllables
from redraft.guidance.reading import text_lines
from redraft.guidance.verse import Lexicon, lexicon

MOST = 40
"""Most syllables of a line, and most lines."""
UNKNOWN = ("refuse", "estimate")


@dataclass(frozen=True)
class Syllables(HardGuide):
    """The text is as many lines as `counts` has numbers, each of so many syllables: [5, 7, 5] is a haiku.

    Syllables are counted by the shipped pronouncing dictionary; a word with several pronunciations fits by any
    of them. A word that it does not know breaks the form, or is counted by its letters where `unknown` is
    "estimate" (see `redraft.guidance.pronunciation.estimate`). What is written are the common words that the vocabulary
    holds as single tokens, by their usual pronunciation, with commas, semicolons and colons between and any
    mark at a line's end; `also` names more words that may be written, such as a keyword of several tokens.
    """

    name: ClassVar[str] = "syllables"
    counts: tuple[int, ...]
    unknown: str = "refuse"
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        counts = self.counts
        if isinstance(counts, str) or not isinstance(counts, Iterable):
            raise InvalidGuideError(f"the counts of Syllables are {counts!r}: give a list such as [5, 7, 5]")
        counts = tuple(counts)
        wrong = next(
            (n for n in counts if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST), None
        )
        if wrong is not None:
            raise InvalidGuideError(f"a line of Syllables has {wrong!r}: use a whole number from 1 to {MOST}")
        if not 1 <= len(counts) <= MOST:
            raise InvalidGuideError(f"Syllables has {len(counts)} lines: use 1 to {MOST}")
        if self.unknown not in UNKNOWN:
            raise InvalidGuideError(f'unknown is {self.unknown!r}: use "refuse" or "estimate"')
        also = (self.also,) if isinstance(self.also, str) else tuple(self.also)
        also = tuple(dict.fromkeys(phrase(word, "a further word of Syllables") for word in also))
        for word in also:
            if len(line_words(word)) != 1 or line_words(word)[0][1] != word:
                raise InvalidGuideError(f"{word!r} of Syllables is not one word: give each word for itself")
            if not self._count(word):
                raise InvalidGuideError(
                    f"the pronouncing dictionary does not know {word!r}: "
                    + (
                        "use letters only"
                        if self.unknown == "estimate"
                        else 'use another word, or unknown="estimate"'
                    )
                )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "also", also)

    def _count(self, word: str) -> tuple[int, ...]:
        return syllables(word, estimated=self.unknown == "estimate")

    def language(self, scene: Scene) -> Automaton:
        """Words that are single tokens, or in `also`, by their usual pronunciation."""
        return _verse(self.counts, self.also, self.unknown, scene.vocabulary)

    def outer(self, scene: Scene) -> Automaton:
        """So many lines, of any words."""
        return Lines(len(self.counts), len(self.counts)).outer(scene)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        return 2 + sum(self.counts) + 2 * len(self.counts)

    def check(self, text: str) -> Verdict:
        lines = text_lines(text)
        spans, notes = [], []
        for k, (at, line) in enumerate(lines):
            totals, strange = {0}, ""
            for _, word in line_words(line):
                options = self._count(word)
                strange = strange or ("" if options else word)
                totals = {total + count for total in totals for count in options or (0,)}
            wanted = self.counts[k] if k < len(self.counts) else None
            fits = wanted in totals and not strange
            shown = f"? ({strange!r} is not known)" if strange else str(wanted if fits else min(totals))
            notes.append(shown)
            spans.append(Span(at, at + len(line), shown))
        held = len(lines) == len(self.counts) and all(
            n == str(c) for n, c in zip(notes, self.counts, strict=True)
        )
        return self.verdict(held, None, tuple(spans), f"{' / '.join(notes) or 'no'} syllables")

    def __str__(self) -> str:
        more = "" if self.unknown == "refuse" else ', unknown="estimate"'
        return f"Syllables({', '.join(map(str, self.counts))}{more})"


class _Node(NamedTuple):
    """Tokens so far of a word of several tokens; `table` says where on the line the word began."""

    table: str
    tokens: tuple[int, ...]


At = str | _Node


@lru_cache(maxsize=32)
def _verse(counts: tuple[int, ...], also: tuple[str, ...], unknown: str, vocabulary: Vocabulary) -> Automaton:
    """States: (line, syllables left on it, what stands there): "start", "word", "mark" or a `_Node`."""
    words = lexicon(vocabulary, also)
    usual = {
        name: {tokens: syllables(word, estimated=unknown == "estimate")[0] for tokens, word in table.items()}
        for name, table in (("first", words.first), ("later", words.later), ("inside", words.inside))
    }
    nodes = {
        _Node(name, tokens[:cut])
        for name, table in usual.items()
        for tokens in table
        for cut in range(1, len(tokens))
    }
    last = len(counts) - 1

    def grow(line: int, left: int, node: _Node) -> tuple[int, int, At] | None:
        if node in nodes:
            return line, left, node
        count = usual[node.table].get(node.tokens)
        return None if count is None or count > left else (line, left - count, "word")

    def step(state: tuple[int, int, At], token: int) -> tuple[int, int, At] | None:
        line, left, at = state
        if isinstance(at, _Node):
            grown = grow(line, left, _Node(at.table, (*at.tokens, token)))
            if grown is not None:
                return grown
            count = usual[at.table].get(at.tokens)
            if count is None or count > left:
                return None
            left, at = left - count, "word"
        if at == "start":
            return grow(line, left, _Node("later" if line else "first", (token,)))
        if token == words.feed:
            return (line + 1, counts[line + 1], "start") if left == 0 and line < last else None
        if at == "word" and (token in words.pauses or (token in words.stops and left == 0)):
            return line, left, "mark"
        return grow(line, left, _Node("inside", (token,)))

    start: tuple[int, int, At] = (0, counts[0], "start")

    def accepting(state: tuple[int, int, At]) -> bool:
        line, left, at = state
        if isinstance(at, _Node):
            return line == last and usual[at.table].get(at.tokens) == left
        return line == last and left == 0 and at != "start"

    return Automaton.build(
        start,
        step,
        accepting,
        len(vocabulary),
        classes=token_classes(words, usual, len(vocabulary)),
    )


def token_classes(
    words: Lexicon, usual: Mapping[str, Mapping[tuple[int, ...], int]], size: int
) -> NDArray[np.int64]:
    """Classes [V] of tokens that no state tells apart: by syllables as a word, by mark, or alone where they
    are part of a longer word."""
    kinds: list[tuple[object, ...]] = [()] * size
    for name, table in usual.items():
        for tokens, count in table.items():
            if len(tokens) == 1:
                kinds[tokens[0]] += ((name, count),)
    for tokens in (tokens for table in usual.values() for tokens in table if len(tokens) > 1):
        for token in tokens:
            kinds[token] = ("alone", token)
    for mark, group in (("pause", words.pauses), ("stop", words.stops), ("feed", {words.feed})):
        for token in group:
            kinds[token] += (mark,)
    index: dict[tuple[object, ...], int] = {}
    return np.array([index.setdefault(kind, len(index)) for kind in kinds], dtype=np.int64)
