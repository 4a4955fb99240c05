"""What the checks of a guide look at: made when first asked for, shared by all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import GuideError, InvalidGuideError, UnsatisfiableError, UnwritableTextError
from redraft.denoiser.guide import Bound, Guide, HardGuide, SoftGuide, Verdict
from redraft.denoiser.lift import lift
from redraft.denoiser.particles import Particles
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.refine import Refinement, refine
from redraft.denoiser.regex import UTF8
from redraft.denoiser.settings import Settings
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Scene
from redraft.denoiser.testing.moments import Moment
from redraft.denoiser.testing.texts import ODD, near_misses
from redraft.denoiser.testing.toys import ToyDenoiser


@dataclass(frozen=True)
class Bench:
    """Where a guide is put to the proof.

    `denoiser` brings the vocabulary (by default a toy of 256 bytes and some words); `length` is the canvas
    in tokens, None: what the guide wants; `texts` are further texts to judge; `examples` >= 1 how many
    random ones a property is tried on; `samples` >= 1 how many words are drawn from a language; `tolerance`
    in nats is how far a bias may differ where it should be the same (kernels round differently); `options`
    are passed to every `write`, for guides that need one (one that weighs whole drafts gets two particles).
    """

    denoiser: Denoiser = field(default_factory=ToyDenoiser)
    length: int | None = None
    texts: tuple[str, ...] = ()
    examples: int = 40
    samples: int = 24
    tolerance: float = 1e-4
    options: Mapping[str, Any] = field(default_factory=dict)
    batch: ClassVar[int] = 3
    steps: ClassVar[int] = 4


@dataclass(frozen=True)
class Allows(HardGuide):
    """A language by itself: what another guide allows, without its hooks."""

    name: ClassVar[str] = "allows"
    automaton: Any

    def language(self, scene: Scene) -> Automaton:
        return self.automaton  # type: ignore[no-any-return]

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown")

    def __str__(self) -> str:
        return self.name


class GuideFacts:
    """A guide on a bench: its scene, its bound form, moments of a run, words of its language, texts to judge."""

    def __init__(self, guide: Guide, bench: Bench) -> None:
        self.guide, self.bench = guide, bench
        self.seeds = tuple(range(11, 11 + bench.batch))

    @property
    def hard(self) -> bool:
        return isinstance(self.guide, HardGuide)

    @property
    def soft(self) -> bool:
        return isinstance(self.guide, SoftGuide)

    @cached_property
    def scene(self) -> Scene:
        """The bench's canvas, as long as the guide wants or needs it."""
        denoiser, guide = self.bench.denoiser, self.guide
        scene = Scene(denoiser.vocabulary, denoiser.device, self.bench.batch, 1, self.bench.steps)
        room = guide.room()
        wanted = denoiser.length if room is None else room + scene.ending
        scene = replace(scene, length=min(self.bench.length or wanted, denoiser.max_length))
        try:
            Steering(_allowed(guide.bind(scene)), scene)
        except UnsatisfiableError as error:
            if error.needed is None or self.bench.length is not None or error.needed > denoiser.max_length:
                raise
            scene = replace(scene, length=min(error.needed + 4, denoiser.max_length))
        except (GuideError, InvalidGuideError):
            pass  # the checks find out what is wrong with it
        return scene

    @cached_property
    def bound(self) -> Bound:
        """The guide bound to the scene."""
        return self.guide.bind(self.scene)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The bench's options for `write`, with particles where the guide weighs whole drafts."""
        weighs = {"particles": Particles(2)} if self.bound.weighs else {}
        return weighs | dict(self.bench.options)

    def canvas(self, batch: int) -> Canvas:
        """An open canvas of the scene's length."""
        random = Randomness(range(batch), self.scene.device)
        return self.bench.denoiser.noise.blank(self.scene.length, random)

    def run(
        self, guides: Sequence[Guide], canvas: Canvas, seeds: Sequence[int], settings: Settings
    ) -> list[Refinement]:
        """The steps of a run of the bench's denoiser."""
        denoiser, scene = self.bench.denoiser, replace(self.scene, batch=len(seeds), steps=settings.steps)
        given = self.bench.options
        prompt = denoiser.prepare(given.get("prompt", ""), len(seeds), given.get("condition"))
        random = Randomness(seeds, scene.device)
        return list(
            refine(denoiser, canvas, Steering(guides, scene), prompt=prompt, settings=settings, random=random)
        )

    @cached_property
    def moments(self) -> list[Moment]:
        """The steps of a run under the guide's language alone: its other hooks have no say in them."""
        settings = Settings(steps=self.bench.steps)
        steps = self.run(_allowed(self.bound), self.canvas(self.bench.batch), self.seeds, settings)
        return [Moment(r.step, r.draft, _sureness(r), self.seeds) for r in steps]

    @cached_property
    def words(self) -> list[tuple[str, tuple[int, ...]]]:
        """Texts drawn from the language with their tokens, tame ones and wild ones."""
        found = {}
        for temperature in (1.0, 4.0):
            seeds = range(self.bench.samples // 2 or 1)
            settings = Settings(steps=1, temperature=temperature)
            last = self.run(_allowed(self.bound), self.canvas(len(seeds)), seeds, settings)[-1]
            for tokens in last.canvas.tokens.tolist():
                found[self.scene.vocabulary.decode(tokens)] = tuple(tokens)
        return list(found.items())

    @cached_property
    def texts(self) -> list[str]:
        """Near misses of drawn words, of the bench's texts and of the strings in the guide's fields."""
        given = [*self.bench.texts, *_strings(list(self.guide.fields().values()))]
        seeds = [*given, *(text for text, _ in self.words)]
        return list(dict.fromkeys([*ODD, *seeds, *near_misses([*seeds, *ODD], 3 * self.bench.examples)]))

    @cached_property
    def language(self) -> Automaton:
        """What the guide allows, of writable texts."""
        return self._writable(self._hard().language(self.scene))

    @cached_property
    def outer(self) -> Automaton:
        """What the guide may mean, of writable texts."""
        return self._writable(self._hard().outer(self.scene))

    def _hard(self) -> HardGuide:
        assert isinstance(self.guide, HardGuide)
        return self.guide

    def _writable(self, language: Automaton) -> Automaton:
        vocabulary = self.scene.vocabulary
        return language & lift(UTF8, vocabulary.token_bytes, vocabulary.prefix)

    def tokens(self, text: str) -> list[int] | None:
        """The text as the vocabulary cuts it, None where it cannot write it."""
        try:
            return self.scene.vocabulary.encode(text)
        except UnwritableTextError:
            return None


def _allowed(bound: Bound) -> list[Guide]:
    language = bound.language() if isinstance(bound, Bound) else None
    return [] if language is None else [Allows(language)]


def _sureness(r: Refinement) -> Tensor:
    """The denoiser's own probability of each drafted token, 1 where it is committed: float64 [B, L]."""
    own = r.step.logits.double().softmax(-1).gather(-1, r.draft[..., None]).squeeze(-1)
    return torch.where(r.step.canvas.open, own, 1.0)


def _strings(values: Sequence[Any]) -> list[str]:
    found = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += _strings(value)
        elif isinstance(value, Guide):
            found += _strings(list(value.fields().values()))
    return found
