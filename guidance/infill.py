"""Infilling: a template whose fixed text is kept exactly and whose blanks are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from redraft.denoiser import Automaton, Bound, HardGuide, InvalidGuideError, Scene, Span, Step, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import compile_regex
from redraft.guidance.counts import aim, check_range, shorten, shown, within

_PART = re.compile(
    r"\\(?P<plain>[\\_\[])|(?P<any>_{3,})|\[\[(?P<least>\d+)(?:-(?P<most>\d+))?\]\]|\[\[(?P<wrong>[^\]]*)\]\]"
)
_PIECE = re.compile(r"\w+|[^\w\s]")
_META = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")
_SPACES = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"


@dataclass(frozen=True)
class Literal:
    """Fixed text of a template."""

    text: str


@dataclass(frozen=True)
class Blank:
    """A place to fill with `least` to `most` words (None: any number), white space neither first nor last."""

    least: int = 1
    most: int | None = None

    @property
    def pattern(self) -> str:
        """The blank as a regular expression in Rust syntax."""
        if (self.least, self.most) == (1, None):
            return rf"[^{_SPACES}](?:(?s:.)*[^{_SPACES}])?"
        again = f"{{{self.least - 1},{'' if self.most is None else self.most - 1}}}"
        return rf"[^{_SPACES}]+(?:[{_SPACES}]+[^{_SPACES}]+){again}"

    def fits(self, text: str) -> bool:
        """Whether a text may stand in the blank."""
        count = len(text.split())
        return text == text.strip() and within(count, self.least, self.most)


@dataclass(frozen=True)
class Infill(HardGuide):
    """The whole text is `template`: fixed text kept to the character, blanks written.

    `___` is a blank of any width (one word or more), `[[3-6]]` a blank of 3 to 6 words, `[[4]]` of 4.
    A backslash makes the next `_`, `[` or backslash plain text. `anchor` "early" commits the fixed text in
    the first step, so that the blanks grow between it; "free" leaves its places to the selection policy.
    """

    name: ClassVar[str] = "infill"
    template: str
    anchor: str = "early"

    def __post_init__(self) -> None:
        if not isinstance(self.template, str) or not self.template.strip():
            raise InvalidGuideError(
                f"the template is {self.template!r}: write text with ___ where something is missing"
            )
        if self.anchor not in ("early", "free"):
            raise InvalidGuideError(f'anchor is {self.anchor!r}: use "early" or "free"')
        if not any(isinstance(part, Blank) for part in self.parts):
            raise InvalidGuideError(
                f"the template {self.template!r} has no blank: write ___ or [[3-6]] where text is to go"
            )
        for one, two in zip(self.parts, self.parts[1:], strict=False):
            if isinstance(one, Blank) and isinstance(two, Blank):
                raise InvalidGuideError(
                    f"two blanks of {self.template!r} touch: join them, or put text between"
                )

    @cached_property
    def parts(self) -> tuple[Literal | Blank, ...]:
        """The template in order, neighbouring text joined."""
        parts: list[Literal | Blank] = []
        text, at = "", 0
        for match in _PART.finditer(self.template):
            text += self.template[at : match.start()] + (match["plain"] or "")
            at = match.end()
            if match["plain"]:
                continue
            parts += [Literal(text)] if text else []
            parts.append(_blank(match, self.template))
            text = ""
        text += self.template[at:]
        return (*parts, *([Literal(text)] if text else []))

    def language(self, scene: Scene) -> Automaton:
        pattern = "".join(map(_pattern, self.parts))
        for part in self.parts:
            if isinstance(part, Literal):  # the space at its ends may belong to a blank's token
                scene.vocabulary.encode(part.text.strip())
        return lift(compile_regex(pattern), scene.vocabulary.token_bytes, scene.vocabulary.prefix)

    def stages(self, scene: Scene) -> list[tuple[str, Automaton]]:
        """Texts that begin with the first part, with the first two, and so on."""
        found, sofar = [], ""
        for part in self.parts[:-1]:
            sofar += _pattern(part)
            language = compile_regex(sofar + "(?s:.)*")
            found.append(
                (_named(part), lift(language, scene.vocabulary.token_bytes, scene.vocabulary.prefix))
            )
        return [*found, (_named(self.parts[-1]), self.language(scene))]

    def bind(self, scene: Scene) -> Bound:
        return _BoundInfill(self, scene, self.language(scene))

    def room(self) -> int | None:
        """Words and marks of the text, one token each, and the blanks' words: what is too much, a blank must fill."""
        text = sum(len(_PIECE.findall(p.text)) for p in self.parts if isinstance(p, Literal))
        words = sum(aim(p.least, p.most, 7) for p in self.parts if isinstance(p, Blank))
        return 1 + text + round(1.15 * words)

    def fits(self) -> bool:
        return True

    def align(self, text: str) -> list[Span] | None:
        """Where each part of the template stands in a text, or None where the text is not the template.

        Plain string code: the offsets that each part can end at, from the left, then traced back.
        """
        reached: list[dict[int, int]] = [{0: 0}]  # for each part, end offset -> the start it came from
        for part in self.parts:
            ends: dict[int, int] = {}
            for start in reached[-1]:
                if isinstance(part, Literal):
                    if text.startswith(part.text, start):
                        ends.setdefault(start + len(part.text), start)
                elif start < len(text) and not text[start].isspace():
                    for end in range(start + 1, len(text) + 1):
                        if end not in ends and not text[end - 1].isspace() and part.fits(text[start:end]):
                            ends[end] = start
            reached.append(ends)
        if len(text) not in reached[-1]:
            return None
        spans, end = [], len(text)
        for ends in reversed(reached[1:]):
            spans.append(Span(ends[end], end))
            end = ends[end]
        return spans[::-1]

    def check(self, text: str) -> Verdict:
        spans = self.align(text)
        if spans is None:
            return self.verdict(False, note="the fixed text or a blank's width is not as the template has it")
        filled = [s for s, part in zip(spans, self.parts, strict=True) if isinstance(part, Blank)]
        return self.verdict(True, None, tuple(Span(s.start, s.end, text[s.start : s.end]) for s in filled))

    def __str__(self) -> str:
        return f"Infill({shorten(self.template)!r})"


class _BoundInfill(Bound):
    def anchors(self, step: Step, draft: Tensor, confidence: Tensor) -> Tensor | None:
        """The draft's tokens of all fixed text and of nothing else, at the first step."""
        guide = self.guide
        assert isinstance(guide, Infill)
        if guide.anchor != "early" or step.index > 0:
            return None
        vocabulary = self.scene.vocabulary
        mark = torch.zeros_like(step.canvas.open)
        for row, tokens in enumerate(draft.tolist()):
            text = vocabulary.decode(tokens)
            # Literals first: a token such as " the" covers the space before a blank, and belongs to the blank.
            parts = zip(guide.parts, guide.align(text) or [], strict=False)
            for part, span in sorted(parts, key=lambda pair: isinstance(pair[0], Blank)):
                mark[row, vocabulary.covering(tokens, text, span.start, span.end)] = isinstance(part, Literal)
        return mark & step.canvas.open


def _pattern(part: Literal | Blank) -> str:
    return f"(?:{part.pattern})" if isinstance(part, Blank) else _META.sub(r"\\\g<0>", part.text)


def _named(part: Literal | Blank) -> str:
    if isinstance(part, Literal):
        return f"the text {shorten(part.text)!r}"
    if part.most is None:
        return f"a blank of {part.least} or more words"
    return f"a blank of {shown(part.least, part.most)} words"


def _blank(match: re.Match[str], template: str) -> Blank:
    if match["any"]:
        return Blank()
    if match["wrong"] is not None:
        raise InvalidGuideError(
            f"[[{match['wrong']}]] in {template!r} is no width: write [[3-6]] or [[4]], or \\[ for a plain bracket"
        )
    least = int(match["least"])
    most = int(match["most"] or least)
    check_range(f"the width of {match.group()}", least, most, 1)
    return Blank(least, most)
