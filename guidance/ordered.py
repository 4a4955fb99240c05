"""Keywords that must appear in a given order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from redraft.denoiser import Automaton, InvalidGuideError, Scene, Span, Verdict
from redraft.denoiser.lift import lift
from redraft.guidance.anchoring import Anchoring
from redraft.guidance.sequence import group, in_turn, listed, occurs_in_turn, plain, spelled_in_turn


@dataclass(frozen=True, init=False)
class Ordered(Anchoring):
    """Every keyword occurs, each behind the one before: `Ordered("storm", "harbour", "home")`.

    Keywords are words or phrases (a list of strings is one keyword with alternatives), whole and in any
    case unless `exact_case`, as in `Keywords`. They may occur elsewhere as well.
    """

    name: ClassVar[str] = "ordered"
    variadic: ClassVar[str | None] = "words"
    words: tuple[str | tuple[str, ...], ...]
    exact_case: bool

    def __init__(self, *words: str | Iterable[str], exact_case: bool = False) -> None:
        if len(words) < 2:
            raise InvalidGuideError(f"Ordered has {len(words)} keywords: give two or more, or use Keywords")
        object.__setattr__(
            self, "words", tuple(plain(group(_listed(w), "a keyword of Ordered")) for w in words)
        )
        object.__setattr__(self, "exact_case", exact_case)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Each keyword as the tuple of its alternatives."""
        return tuple((word,) if isinstance(word, str) else word for word in self.words)

    def language(self, scene: Scene) -> Automaton:
        """The keywords stand as the tokenizer itself spells them."""
        return spelled_in_turn(scene, self.groups, self.exact_case)

    def outer(self, scene: Scene) -> Automaton:
        language = occurs_in_turn(self.groups, True, self.exact_case)
        return lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def witness(self, text: str) -> Sequence[Span]:
        chain = in_turn(text, self.groups, exact_case=self.exact_case)
        return chain if len(chain) == len(self.groups) else ()

    def check(self, text: str) -> Verdict:
        chain = in_turn(text, self.groups, exact_case=self.exact_case)
        held = len(chain) == len(self.groups)
        behind = f" behind {chain[-1].label!r}" if chain else ""
        note = "" if held else f"no {listed(self.groups[len(chain)])}{behind}"
        return self.verdict(held, len(chain) / len(self.groups), tuple(chain), note)

    def __str__(self) -> str:
        return f"Ordered({', '.join(map(listed, self.groups))})"


def _listed(word: str | Iterable[str]) -> object:
    return word if isinstance(word, str) or not isinstance(word, Iterable) else tuple(word)
