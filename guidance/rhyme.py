"""Lines that rhyme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from redraft.denoiser import Automaton, Bound, HardGuide, InvalidGuideError, Scene, Span, Verdict, Vocabulary
from redraft.denoiser.errors import StateBudgetError
from redraft.guidance.ending import EndAnchored
from redraft.guidance.lines import Lines
from redraft.guidance.pronunciation import common, line_words, rhyme, sounds
from redraft.guidance.reading import BREAKS, MARKS, text_lines
from redraft.guidance.verse import lexicon

MOST = 40
BUDGET = 400
"""States that the choice of rhymes may take: as many families of rhyming words are offered as fit."""
FREE = "-"


@dataclass(frozen=True)
class Rhyme(HardGuide):
    """The text is as many lines as `scheme` has letters; lines of one letter end in words that rhyme.

    "AABB", "ABAB CDCD", "ABCB"; a letter of its own, or a hyphen, leaves its line free. Words rhyme if they
    are different and sound alike from the last stressed vowel on, by some pronunciation of the shipped
    dictionary; a word that it does not know rhymes with nothing. What is written ends its lines in common
    words that the vocabulary holds as single tokens: the largest families of rhyming words, as many as keep
    the language within 400 states (at most `families`, where given); the words of a family are dealt out to
    its lines, so that none comes twice.
    """

    name: ClassVar[str] = "rhyme"
    scheme: str
    families: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.scheme, str) or not self.lines:
            raise InvalidGuideError(f'the scheme of Rhyme is {self.scheme!r}: give one such as "AABB"')
        wrong = next((c for c in self.lines if c != FREE and not ("A" <= c <= "Z")), None)
        if wrong is not None:
            raise InvalidGuideError(
                f"Rhyme({self.scheme!r}): {wrong!r} is no letter from A to Z and no hyphen"
            )
        if len(self.lines) > MOST:
            raise InvalidGuideError(f"Rhyme({self.scheme!r}) has {len(self.lines)} lines: use at most {MOST}")
        if max(Counter(self.lines.replace(FREE, "")).values(), default=0) < 2:
            raise InvalidGuideError(f"Rhyme({self.scheme!r}) rhymes nothing: use a letter twice, or Lines")
        families = self.families
        if families is not None and (
            isinstance(families, bool) or not isinstance(families, int) or families < 1
        ):
            raise InvalidGuideError(f"families is {families!r}: use a number above 0, or leave it out")

    @property
    def lines(self) -> str:
        """The scheme's letters in capitals, one a line, white space left out."""
        return "".join(self.scheme.split()).upper()

    def language(self, scene: Scene) -> Automaton:
        """The last words of rhyming lines are dealt out of the vocabulary's largest rhyme families."""
        return _rhymes(self.lines, self.families, scene.vocabulary)

    def outer(self, scene: Scene) -> Automaton:
        """So many lines, with any ends."""
        return Lines(len(self.lines), len(self.lines)).outer(scene)

    def bind(self, scene: Scene) -> Bound:
        return EndAnchored(self, scene, self.language(scene))

    def room(self) -> int | None:
        return 2 + 9 * len(self.lines)

    def check(self, text: str) -> Verdict:
        lines = text_lines(text)
        ends = [(at, said[-1] if (said := line_words(line)) else (0, "")) for at, line in lines]
        spans = tuple(Span(at + k, at + k + len(word), word) for at, (k, word) in ends if word)
        if len(lines) != len(self.lines):
            return self.verdict(False, 0.0, spans, f"{len(lines)} lines")
        words = [word for _, (_, word) in ends]
        pairs = [
            (words[i], words[j])
            for i, j in combinations(range(len(words)), 2)
            if self.lines[i] == self.lines[j] != FREE
        ]
        failed = [pair for pair in pairs if not rhyme(*pair)]
        note = "; ".join(f"{one!r} and {other!r} do not rhyme" for one, other in failed)
        return self.verdict(not failed, 1 - len(failed) / len(pairs), spans, note)

    def __str__(self) -> str:
        return f"Rhyme({self.scheme!r})"


class _State(NamedTuple):
    """line; held: the families that open letters have taken, in order of the letters; last: the family and
    rank of the word that stands at the end so far, or what else does."""

    line: int
    held: tuple[tuple[str, int], ...]
    last: str | int


def rhyme_families(vocabulary: Vocabulary) -> list[list[str]]:
    """Common words that are single tokens of the vocabulary, by their sound; the largest families first."""
    inside = set(lexicon(vocabulary).inside.values())
    found: dict[str, list[str]] = {}
    for word in common():
        known = sounds(word)
        if word in inside and word.isalpha() and len(word) > 1 and known is not None:
            found.setdefault(known.tails[0], []).append(word)
    return sorted(found.values(), key=lambda words: -len(words))


def _states(lines: str, count: int) -> int:
    """About how many states a choice of `count` families takes."""
    total, open_letters = 0, set[str]()
    for k, letter in enumerate(lines):
        opens = letter != FREE and letter not in lines[:k] and letter in lines[k + 1 :]
        total += count ** len(open_letters) * (count + 2 if opens else 3)
        if opens:
            open_letters.add(letter)
        elif letter not in lines[k + 1 :]:
            open_letters.discard(letter)
    return total


@lru_cache(maxsize=16)
def _rhymes(lines: str, families: int | None, vocabulary: Vocabulary) -> Automaton:
    uses = Counter(lines.replace(FREE, ""))
    usable = [words for words in rhyme_families(vocabulary) if len(words) >= max(uses.values())]
    most = len(usable) if families is None else min(families, len(usable))
    count = next((k for k in range(most, 0, -1) if _states(lines, k) <= BUDGET), 0)
    if count == 0:
        reason = (
            f"has no {max(uses.values())} common words that rhyme"
            if not most
            else f"needs more than {BUDGET:,} states even for one rhyme: use fewer letters that wait for one another"
        )
        raise StateBudgetError(f"the vocabulary {reason}" if not most else f"the scheme {lines} {reason}")
    place = {word: (f, rank) for f, words in enumerate(usable[:count]) for rank, word in enumerate(words)}
    kinds = _kinds(vocabulary, place)

    def opens(line: int) -> bool:
        return lines[line] not in lines[:line] and uses[lines[line]] > 1

    def step(state: _State, token: int) -> _State | None:
        line, held, last = state
        kind, family, rank = kinds[token]
        if kind == "bad":
            return None
        if kind == "feed":
            return close(state)
        if kind == "mark":
            return None if last == "start" else state
        letter = lines[line]
        if uses[letter] < 2:
            return _State(line, held, "said")
        if kind != "word" and not (kind == "first" and last == "start"):
            return _State(line, held, "said")
        part = lines[:line].count(letter)
        if rank % uses[letter] != part or not (opens(line) or dict(held)[letter] == family):
            return _State(line, held, "said")
        return _State(line, held, family)

    def close(state: _State) -> _State | None:
        """The line feed behind a line, or None where the line may not end so."""
        line, held, last = state
        letter = lines[line]
        if last == "start" or line + 1 == len(lines) or (uses[letter] > 1 and isinstance(last, str)):
            return None
        taken = dict(held)
        if opens(line):
            taken[letter] = int(last)
        if letter in taken and letter not in lines[line + 1 :]:
            del taken[letter]
        return _State(line + 1, tuple(sorted(taken.items())), "start")

    def accepting(state: _State) -> bool:
        rhymed = uses[lines[state.line]] < 2 or not isinstance(state.last, str)
        return state.line + 1 == len(lines) and state.last != "start" and rhymed

    parts = {n for n in uses.values() if n > 1}
    index: dict[tuple[object, ...], int] = {}
    labels = [(kind, family, *(rank % n for n in sorted(parts))) for kind, family, rank in kinds]
    classes = np.array([index.setdefault(label, len(index)) for label in labels], dtype=np.int64)
    return Automaton.build(_State(0, (), "start"), step, accepting, len(vocabulary), classes=classes)


def _kinds(vocabulary: Vocabulary, place: dict[str, tuple[int, int]]) -> Sequence[tuple[str, int, int]]:
    """For each token what it is: a "word" of a family behind a space, the same as a line's "first" word, a
    "mark" that changes no word, the line "feed", "said" for anything else, "bad" for what may break lines."""
    words = lexicon(vocabulary)
    kinds = []
    for token, raw in enumerate(vocabulary.token_bytes):
        text = (raw or b"\xff").decode(errors="replace")
        if token == words.feed:
            kinds.append(("feed", -1, 0))
        elif "\ufffd" in text or any(char in BREAKS for char in text):
            kinds.append(("bad", -1, 0))
        elif all(char in MARKS for char in text):
            kinds.append(("mark", -1, 0))
        elif not text.strip():
            kinds.append(("bad", -1, 0))
        else:
            inner = words.inside.get((token,), "")
            first = words.later.get((token,), "")
            kinds.append(
                ("word", *place[inner])
                if inner in place
                else ("first", *place[first])
                if first in place
                else ("said", -1, 0)
            )
    return kinds
