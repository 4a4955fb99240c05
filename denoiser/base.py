"""What a denoiser is: a vocabulary, a noise, a device and one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.noise import Noise
from redraft.denoiser.settings import Settings
from redraft.denoiser.step import Prompt, Step
from redraft.denoiser.vocabulary import Vocabulary

if TYPE_CHECKING:
    from redraft.denoiser.chat import ChatTemplate
    from redraft.denoiser.guide import Guide
    from redraft.denoiser.result import Result
    from redraft.denoiser.rewrite import Rewriting


class Denoiser(ABC):
    """A model that proposes a token for every position of a canvas at once.

    `max_length` is the longest canvas in tokens; `length` the canvas it writes when nothing says otherwise;
    `settings` its own decoding defaults; `drafts` how many drafts of a text a recipe writes to keep the best
    (`Drafts`), where it does not say; `conditions` the tags it takes, by kind, with their values;
    `filler` the token that pads shorter prompts; `template` its chat template; `adapter` and `why`: which
    adapter `load` took, and why.
    `block`: it writes so many positions at a time, left to right, and sees nothing behind them; None: it sees the
    whole canvas.
    """

    name: str
    vocabulary: Vocabulary
    noise: Noise
    device: torch.device
    max_length: int = 128
    length: int = 48
    settings: Settings = Settings()
    drafts: int = 1
    conditions: Mapping[str, tuple[str, ...]] = {}
    block: int | None = None
    filler: int = 0
    template: ChatTemplate | None = None
    adapter: str = ""
    why: str = ""

    def __repr__(self) -> str:
        chosen = f", adapter {self.adapter}: {self.why}" if self.adapter else ""
        return f"<{type(self).__name__} {self.name}{chosen}>"

    @abstractmethod
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        """Logits [B, L, V] float32 for the canvas's positions; -inf at tokens that are never written.

        Where `block` is set the canvas ends with the block that is being written, and what the logits are in
        finished blocks does not matter.
        """

    def begin(self) -> Denoiser:
        """The denoiser of one run: an adapter that remembers something from step to step gives a fresh copy."""
        return self

    def carry(self, step: Step, bias: Tensor | None, temperature: float) -> Denoiser:
        """The denoiser of the next step, with what it takes over from this one (self-conditioning)."""
        return self

    def take(self, rows: Tensor) -> Denoiser:
        """The denoiser after row b became what row `rows[b]` was (int64 [B]): what it remembers moves along."""
        return self

    def longest(self, prompt: Prompt) -> int:
        """The longest canvas, in tokens, that fits behind a prompt."""
        return self.max_length

    def lead(self, text: str, condition: Mapping[str, str], *, chat: bool = False) -> list[int]:
        """Token ids that stand before the canvas for one prompt, specials in the prompt off."""
        if chat and self.template is None:
            raise InvalidGuideError(
                f"{self.name} has no chat template: leave chat out and give the whole prompt"
            )
        if chat and self.template is not None:
            return self.template.encode(text, self.vocabulary, self.name)
        return self.vocabulary.encode(text, exact=False) if text else []

    def prepare(
        self,
        text: str | Sequence[str],
        batch: int,
        condition: Mapping[str, str] | None = None,
        *,
        chat: bool = False,
    ) -> Prompt:
        """Encode a prompt for `batch` rows, or one prompt a row; shorter ones are padded on the left.

        With `chat` each is a user's message in the model's chat template. Raises `InvalidGuideError` for an
        unknown condition, a wrong number of prompts or a model without a template, and `UnwritableTextError`
        for a character that the vocabulary does not know.
        """
        condition = dict(condition or {})
        for kind, value in condition.items():
            if kind not in self.conditions:
                known = ", ".join(self.conditions) or "none"
                raise InvalidGuideError(f"{self.name} has no condition {kind!r}; it takes: {known}")
            if value not in self.conditions[kind]:
                raise InvalidGuideError(f"{kind} is {value!r}: use one of {', '.join(self.conditions[kind])}")
        texts = [text] * batch if isinstance(text, str) else list(text)
        if len(texts) != batch or not all(isinstance(row, str) for row in texts):
            raise InvalidGuideError(f"{len(texts)} prompts for {batch} texts: give one text, or one for each")
        known_rows = {row: self.lead(row, condition, chat=chat) for row in dict.fromkeys(texts)}
        rows = [known_rows[row] for row in texts]
        width = max((len(row) for row in rows), default=0)
        padded = [[self.filler] * (width - len(row)) + row for row in rows]
        seen = [[False] * (width - len(row)) + [True] * len(row) for row in rows]
        return Prompt(
            torch.tensor(padded, dtype=torch.int64, device=self.device).reshape(batch, width),
            torch.tensor(seen, dtype=torch.bool, device=self.device).reshape(batch, width),
            texts[0] if texts else "",
            padded=any(len(row) < width for row in rows),
            condition=condition,
            lengths=tuple(len(row) for row in rows),
            texts=tuple(texts),
            chat=chat,
        )

    def write(self, guides: Guide | Sequence[Guide] = (), **options: Any) -> list[Result]:
        """Write texts under guides; see `redraft.denoiser.write` for the options."""
        from redraft.denoiser.write import write

        return write(self, guides, **options)

    def rewrite(self, text: str, guides: Guide | Sequence[Guide] = (), **options: Any) -> Rewriting:
        """Rewrite a text under guides, most of it kept; see `redraft.denoiser.rewrite` for the options."""
        from redraft.denoiser.rewrite import rewrite

        return rewrite(self, text, guides, **options)
