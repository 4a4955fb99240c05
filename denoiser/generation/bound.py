"""Guides bound to a vocabulary alone: languages as tables, biases as hooks, without a denoiser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError, UnsupportedModelError
from redraft.denoiser.guide import Guide, Verdict
from redraft.denoiser.language import Language
from redraft.denoiser.noise import Absorbing
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.refinement import distance
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Prompt, Scene, Step
from redraft.denoiser.vocabulary import Vocabulary


class NoDenoiser(Denoiser):
    """Stands where guides look for the denoiser; any question but for its vocabulary is an error."""

    name = "generate()"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.noise = Absorbing(_filler(vocabulary))
        self.device = torch.device("cpu")

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        raise InvalidGuideError("asks the denoiser for another pass, and generate() has none to give")


@dataclass(frozen=True, eq=False)
class BoundGuides:
    """The guides of one `generate()` of up to `length` new tokens.

    A text is at most `length` tokens, or fewer and EOS; so the language is that of canvases of length + 1,
    whose last position is never written. `far` [Q] int64 counts the tokens that a state still needs at least.
    """

    steering: Steering
    length: int
    steps: int
    language: Language
    far: Tensor
    _tables: dict[torch.device, tuple[Language, Tensor]] = field(default_factory=dict)

    @classmethod
    def of(cls, guides: Sequence[Guide], tokenizer: Any, length: int, steps: int) -> BoundGuides:
        """Raises `UnsatisfiableError`, `InvalidGuideError` and `UnsupportedModelError` before anything runs."""
        vocabulary = read_vocabulary(tokenizer)
        scene = Scene(vocabulary, torch.device("cpu"), 1, length + 1, steps)
        steering = Steering(guides, scene)
        language = Language.of([steering.automaton], [0])
        far = distance(language.delta.numpy(), language.accept.numpy())
        far = np.where(far < 0, np.iinfo(np.int64).max, far)
        bound = cls(steering, length, steps, language, torch.from_numpy(far))
        bound._refuse()
        return bound

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's, with its EOS."""
        return self.steering.scene.vocabulary

    def tables(self, device: torch.device) -> tuple[Language, Tensor]:
        """The language and `far` on a device."""
        if device not in self._tables:
            own = self.language
            moved = Language(*(part.to(device) for part in (own.delta, own.classes, own.accept, own.start)))
            self._tables[device] = (moved, self.far.to(device))
        return self._tables[device]

    def states(self, written: Tensor) -> Tensor:
        """[B] int64: the language's state behind tokens [B, t]; ids outside the vocabulary end in a dead one."""
        language, far = self.tables(written.device)
        state = language.start[:1].expand(len(written))
        dead = far.argmax()
        for place in range(written.shape[1]):
            token = written[:, place]
            known = token < len(language.classes)
            moved = language.delta[state, language.classes[torch.where(known, token, 0)]]
            state = torch.where(known, moved, dead)
        return state

    def step(self, written: Tensor, scores: Tensor, index: int, open_from: int) -> Step:
        """What guides see: a canvas of the `written` tokens [B, L], open from `open_from` on; `scores` [B, L, V]
        stand for the denoiser's logits."""
        vocabulary = self.vocabulary
        batch, length = written.shape
        opened = (torch.arange(length, device=written.device) >= open_from).expand(batch, -1)
        tokens = torch.where(opened | (written >= len(vocabulary)), _filler(vocabulary), written)
        canvas = Canvas(tokens, opened, torch.zeros_like(opened), (~opened).float())
        empty = tokens[:, :0]
        return Step(
            min(index, self.steps - 1),
            self.steps,
            canvas,
            scores,
            Prompt(empty, empty.bool()),
            NoDenoiser(vocabulary),
            Randomness([0] * batch, written.device),
        )

    def bias(self, step: Step) -> Tensor | None:
        """The guides' summed bias, broadcastable to [B, L, V]."""
        return self.steering.bias(step)

    def written(self, sequences: Tensor, prompt_length: int) -> Tensor:
        """[B, t]: what stands behind the prompt; `InvalidGuideError` where the sequences are shorter than it."""
        if sequences.shape[1] < prompt_length:
            raise InvalidGuideError(
                f"prompt_length is {prompt_length} and generate() has {sequences.shape[1]} tokens: "
                "use the width of the input_ids, padding included"
            )
        return sequences[:, prompt_length:]

    def check(self, sequences: Tensor) -> list[list[Verdict]]:
        """Each text's verdicts, for tokens [B, t] behind the prompt."""
        rows = []
        for tokens in sequences.tolist():
            own = [token for token in tokens if token < len(self.vocabulary)]
            rows.append(self.steering.check(self.vocabulary.decode(own), own))
        return rows

    def _refuse(self) -> None:
        """A guide whose hooks need what `generate()` does not have is refused by name."""
        if self.steering.weighing:
            raise InvalidGuideError(
                f"{self.steering.weighing[0]} cannot steer generate(): it weighs whole drafts; "
                "leave it out, or write with a denoiser"
            )
        scores = torch.zeros(1, 2, len(self.vocabulary))
        for bound in self.steering.bound:
            try:
                for open_from in (0, 1):
                    step = self.step(torch.zeros(1, 2, dtype=torch.int64), scores, 0, open_from)
                    bound.bias(step)
                    if bound.revise(step) is not None:
                        raise InvalidGuideError("reopens positions, and generate() has no way back")
            except Exception as error:
                raise InvalidGuideError(
                    f"{bound.guide} cannot steer generate(): it {error}; leave it out, or write with a denoiser"
                ) from error


def read_vocabulary(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a fast tokenizer, with its EOS; a `Vocabulary` is taken as it is.

    Raises `UnsupportedModelError` without EOS, which is how a text ends before its last token.
    """
    if isinstance(tokenizer, Vocabulary):
        found = tokenizer
    else:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise UnsupportedModelError(
                f"{type(tokenizer).__name__} is no fast tokenizer, so its tokens' bytes are not known: convert it"
            )
        eos, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
        found = Vocabulary.from_tokenizer(backend, eos_id=eos, pad_id=eos if pad is None else pad)
    if found.eos_id is None:
        raise UnsupportedModelError("the tokenizer names no EOS token, so no text could end: set eos_token")
    return found


def _filler(vocabulary: Vocabulary) -> int:
    """What stands at an open position, of which guides only see that it is open."""
    return next(
        token for token in (vocabulary.mask_id, vocabulary.pad_id, vocabulary.eos_id, 0) if token is not None
    )
