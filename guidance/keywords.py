"""Keywords: words and phrases that must appear, anywhere in the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Automaton, Bound, HardGuide, InvalidGuideError, Scene, Span, Step, Verdict
from redraft.denoiser.cache import cached
from redraft.denoiser.errors import UnwritableTextError
from redraft.denoiser.lift import lift
from redraft.guidance.counts import shorten
from redraft.guidance.occurrence import find, occurs, phrase, shows
from redraft.guidance.spelling import spelled_language, spellings

Alternatives = tuple[str, ...]


@dataclass(frozen=True, init=False)
class Keywords(HardGuide):
    """Every keyword (or `at_least` of them) occurs in the text, in any order.

    A keyword is a word or a phrase; a list of strings is one keyword with alternatives, such as
    inflections. `whole` words by default; case is ignored unless `exact_case`. `anchor` "early" commits
    the keywords' places in the first steps, so that the rest grows around them; "free" leaves them to the
    selection policy.
    """

    name: ClassVar[str] = "keywords"
    variadic: ClassVar[str | None] = "words"
    words: tuple[str | Alternatives, ...]
    at_least: int | None
    whole: bool
    exact_case: bool
    anchor: str

    def __init__(
        self,
        *words: str | Iterable[str],
        at_least: int | None = None,
        whole: bool = True,
        exact_case: bool = False,
        anchor: str = "early",
    ) -> None:
        if not words:
            raise InvalidGuideError("Keywords has no keyword: give at least one word or phrase")
        groups = tuple(_alternatives(word) for word in words)
        if at_least is not None and (isinstance(at_least, bool) or not 1 <= at_least <= len(groups)):
            raise InvalidGuideError(
                f"at_least is {at_least} of {len(groups)} keywords: use 1 to {len(groups)}, or leave it out for all"
            )
        if anchor not in ("early", "free"):
            raise InvalidGuideError(f'anchor is {anchor!r}: use "early" or "free"')
        shown = tuple(dict.fromkeys(group[0] if len(group) == 1 else group for group in groups))
        values = (("words", shown), ("at_least", at_least), ("whole", whole), ("exact_case", exact_case))
        for name, value in (*values, ("anchor", anchor)):
            object.__setattr__(self, name, value)

    @cached_property
    def groups(self) -> tuple[Alternatives, ...]:
        """Each keyword as the tuple of its alternatives."""
        return tuple((word,) if isinstance(word, str) else word for word in self.words)

    @property
    def needed(self) -> int:
        """How many of the keywords must occur."""
        return len(self.groups) if self.at_least is None else self.at_least

    def language(self, scene: Scene) -> Automaton:
        """Texts in which enough keywords stand as the tokenizer itself would spell them."""
        if not self.whole:
            return self.outer(scene)
        return _spelled(self, scene)

    def outer(self, scene: Scene) -> Automaton:
        """Texts in which enough keywords occur, however they are cut into tokens."""
        each = [
            lift(
                occurs(group, self.whole, self.exact_case),
                scene.vocabulary.token_bytes,
                scene.vocabulary.prefix,
            )
            for group in self.groups
        ]
        return _enough(each, self.needed)

    def bind(self, scene: Scene) -> Bound:
        return _BoundKeywords(self, scene, self.language(scene))

    def found(self, text: str) -> list[list[Span]]:
        """For each keyword the places where it (or an alternative) occurs."""
        return [
            [s for word in group for s in find(text, word, whole=self.whole, exact_case=self.exact_case)]
            for group in self.groups
        ]

    def check(self, text: str) -> Verdict:
        places = self.found(text)
        present = sum(bool(spans) for spans in places)
        missing = [group[0] for group, spans in zip(self.groups, places, strict=True) if not spans]
        note = "" if present >= self.needed else f"missing: {', '.join(missing)}"
        return self.verdict(
            present >= self.needed,
            min(1.0, present / self.needed),
            tuple(span for spans in places for span in spans),
            note,
        )

    def __str__(self) -> str:
        listed = [repr(shorten("|".join(group))) for group in self.groups]
        shown = ", ".join(listed[:8]) + (f", ... {len(listed)} in all" if len(listed) > 8 else "")
        return (
            f"Keywords({shown})" if self.at_least is None else f"Keywords({shown}, at_least={self.at_least})"
        )


class _BoundKeywords(Bound):
    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        """The draft's tokens of one keyword that is not committed yet: the surest, one a step."""
        guide = self.guide
        assert isinstance(guide, Keywords)
        if guide.anchor != "early":
            return None
        vocabulary = self.scene.vocabulary
        mark = torch.zeros_like(step.canvas.open)
        held = (~step.canvas.open).tolist()
        sure = confidence.tolist()
        for row, tokens in enumerate(draft.tolist()):
            if all(held[row]):
                continue
            text = vocabulary.decode(tokens)
            places = [
                [vocabulary.covering(tokens, text, span.start, span.end) for span in spans]
                for spans in guide.found(text)
            ]
            kept = [any(all(held[row][i] for i in place) for place in options) for options in places]
            if sum(kept) < guide.needed:
                waiting = [p for done, options in zip(kept, places, strict=True) if not done for p in options]
                best = max(
                    waiting, key=lambda place: sum(sure[row][i] for i in place) / len(place), default=[]
                )
                mark[row, best] = True
        return mark & step.canvas.open


def _alternatives(word: str | Iterable[str]) -> Alternatives:
    if isinstance(word, str) or not isinstance(word, Iterable):
        options: Alternatives = (phrase(word, "a keyword"),)
    else:
        options = tuple(dict.fromkeys(phrase(option, "an alternative of a keyword") for option in word))
    hidden = next((option for option in options if not shows(option)), None)
    if hidden is not None:
        raise InvalidGuideError(
            f"a keyword is {hidden!r}, which shows nothing by itself: give a word or phrase"
        )
    if not options:
        raise InvalidGuideError("a keyword has no alternative: give at least one")
    return options


def _at_least(each: Sequence[Automaton], needed: int) -> Automaton:
    """Words of at least `needed` of the languages: at_least(n, [a, *rest]) = a & at_least(n-1) | at_least(n)."""
    size = each[0].symbols
    row = [Automaton.all(size)] + [Automaton.none(size)] * needed
    for language in each:
        row = [row[0]] + [(language & row[n - 1]) | row[n] for n in range(1, needed + 1)]
    return row[needed]


def _spelled(guide: Keywords, scene: Scene) -> Automaton:
    vocabulary = scene.vocabulary
    each = []
    for group in guide.groups:
        own = [s for word in group for s in spellings(vocabulary, word, exact_case=guide.exact_case)]
        if not own:
            vocabulary.encode(group[0])  # says which character cannot be written
            raise UnwritableTextError(
                f"the vocabulary cannot spell {group[0]!r} as a whole word: use another word"
            )
        each.append(spelled_language(tuple(own), vocabulary))
    return _enough(each, guide.needed)


def _enough(each: Sequence[Automaton], needed: int) -> Automaton:
    """Words of at least `needed` of the languages."""
    if len(each) == 1:
        return each[0]
    return cached("enough", (tuple(a.key for a in each), needed), lambda: _join(each, needed))


def _join(each: Sequence[Automaton], needed: int) -> Automaton:
    if needed == len(each):
        return reduce(lambda a, b: a & b, each)
    if needed == 1:
        return reduce(lambda a, b: a | b, each)
    return _at_least(each, needed)
