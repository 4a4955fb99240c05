"""A keyword in the first or the last sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from redraft.denoiser import Automaton, InvalidGuideError, Scene, Span, Verdict, Vocabulary
from redraft.denoiser.lift import lift
from redraft.guidance.anchoring import Anchoring
from redraft.guidance.occurrence import is_word, occurs
from redraft.guidance.sentences import sentence_ends
from redraft.guidance.sequence import Group, group, listed, places, plain, spelled

PLACES = ("first", "last")
STOPS = ".!?"


@dataclass(frozen=True)
class InSentence(Anchoring):
    """A keyword occurs in the "first" or the "last" sentence, sentences being those of `Sentences`.

    What follows the last complete sentence counts as one if it says something; a text without any stop is
    one sentence. The keyword may have alternatives, is whole and in any case unless `exact_case`, and may
    occur elsewhere as well. What is written holds no stop before it (or behind it) that could end a sentence.
    """

    name: ClassVar[str] = "in-sentence"
    word: str | tuple[str, ...]
    place: str
    exact_case: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "word", plain(group(self.word, "the keyword of InSentence")))
        if self.place not in PLACES:
            raise InvalidGuideError(f'the place of InSentence is {self.place!r}: use "first" or "last"')
        stopped = next((word for word in self.options if any(char in STOPS for char in word)), None)
        silent = next((word for word in self.options if not any(map(is_word, word))), None)
        if silent is not None:
            raise InvalidGuideError(
                f"the keyword {silent!r} of InSentence says nothing: give a letter or digit"
            )
        if stopped is not None:
            raise InvalidGuideError(
                f"the keyword {stopped!r} of InSentence holds a stop: leave . ! and ? out"
            )

    @property
    def options(self) -> Group:
        """The keyword as the tuple of its alternatives."""
        return (self.word,) if isinstance(self.word, str) else self.word

    def language(self, scene: Scene) -> Automaton:
        build = _first if self.place == "first" else _last
        return build(spelled(scene, self.options, self.exact_case), scene.vocabulary)

    def outer(self, scene: Scene) -> Automaton:
        """It occurs, in any sentence."""
        language = occurs(self.options, True, self.exact_case)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def witness(self, text: str) -> Sequence[Span]:
        return self._found(text)[:1]

    def check(self, text: str) -> Verdict:
        found = self._found(text)
        return self.verdict(bool(found), None, tuple(found))

    def _found(self, text: str) -> list[Span]:
        ends = sentence_ends(text)
        last = ends[-1] if ends else 0
        if any(char.isalnum() or char == "_" or ord(char) > 127 for char in text[last:]):
            ends.append(len(text))
        if not ends:
            ends = [len(text)]
        begin, end = (0, ends[0]) if self.place == "first" else ([0, *ends][-2], ends[-1])
        return [
            s
            for s in places(text, self.options, exact_case=self.exact_case)
            if begin <= s.start and s.end <= end
        ]

    def __str__(self) -> str:
        return f"InSentence({listed(self.options)}, {self.place!r})"


@lru_cache(maxsize=64)
def _first(part: Automaton, vocabulary: Vocabulary) -> Automaton:
    """The keyword has been written (but for the white space behind it) before the first stop."""
    kinds = _kinds(vocabulary)

    def step(state: tuple[int, bool], token: int) -> tuple[int, bool] | None:
        after, stopped = int(part.delta[state[0], part.classes[token]]), state[1] or kinds[token] > 1
        return (after, stopped) if part.accept[after] or not stopped else None

    classes = np.unique(np.stack([part.classes, kinds]), axis=1, return_inverse=True)[1].reshape(-1)
    return Automaton.build(
        (part.start, False), step, lambda s: bool(part.accept[s[0]]), len(vocabulary), classes=classes
    )


@lru_cache(maxsize=64)
def _last(part: Automaton, vocabulary: Vocabulary) -> Automaton:
    """The keyword is written anew behind each stop that something follows."""
    kinds = _kinds(vocabulary)

    def step(state: tuple[int, bool], token: int) -> tuple[int, bool] | None:
        q, stopped = state
        kind = kinds[token]
        if kind == 3:
            return None
        if stopped and kind in (1, 4):
            q, stopped = part.start, False
        return int(part.delta[q, part.classes[token]]), stopped or kind in (2, 4)

    classes = np.unique(np.stack([part.classes, kinds]), axis=1, return_inverse=True)[1].reshape(-1)
    return Automaton.build(
        (part.start, False), step, lambda s: bool(part.accept[s[0]]), len(vocabulary), classes=classes
    )


@lru_cache(maxsize=16)
def _kinds(vocabulary: Vocabulary) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """[V]: 0 says nothing and holds no stop; 1 says something; 2 holds a stop and says nothing; 4 says
    something before its stops; 3 says something behind a stop."""
    kinds = np.zeros(len(vocabulary), dtype=np.int64)
    for token, raw in enumerate(vocabulary.token_bytes):
        text = (raw or b"\xff").decode(errors="replace")
        says = [k for k, char in enumerate(text) if is_word(char) or ord(char) > 127]
        stops = [k for k, char in enumerate(text) if char in STOPS]
        if stops:
            kinds[token] = 2 if not says else 3 if says[-1] > stops[0] else 4
        else:
            kinds[token] = int(bool(says))
    return kinds
