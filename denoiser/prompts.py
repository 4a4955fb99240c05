"""The prompts of a run: one for all texts, or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.step import Prompt

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser


@dataclass(frozen=True)
class Prompts:
    """Text k stands behind `texts[k]`; with `chat` each is a user's message in the model's chat template."""

    texts: tuple[str, ...]
    condition: Mapping[str, str]
    chat: bool = False

    @classmethod
    def of(
        cls,
        prompt: str | Sequence[str],
        samples: int | None,
        condition: Mapping[str, str] | None,
        chat: bool,
    ) -> Prompts:
        """Raises `InvalidGuideError` where the numbers of prompts and of samples do not agree."""
        if not isinstance(prompt, str) and not (
            isinstance(prompt, Sequence) and len(prompt) and all(isinstance(text, str) for text in prompt)
        ):
            raise InvalidGuideError(
                f"prompt is {prompt!r}: use text, or a list with one text for each sample"
            )
        if samples is None:
            samples = 1 if isinstance(prompt, str) else len(prompt)
        if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= 1_000_000:
            raise InvalidGuideError(f"samples is {samples!r}: use a whole number from 1 to 1000000")
        texts = (prompt,) * samples if isinstance(prompt, str) else tuple(prompt)
        if len(texts) != samples:
            raise InvalidGuideError(
                f"{len(texts)} prompts for {samples} samples: give one prompt, or one for each"
            )
        return cls(texts, dict(condition or {}), bool(chat))

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, begin: int, end: int) -> Prompts:
        """Those of the texts from `begin` to before `end`."""
        return Prompts(self.texts[begin:end], self.condition, self.chat)

    @property
    def shared(self) -> str:
        """The prompt that all texts have; "" where they differ."""
        return self.texts[0] if len(set(self.texts)) == 1 else ""

    def ready(self, denoiser: Denoiser, times: int = 1) -> Prompt:
        """Encoded, `times` neighbouring rows for each text."""
        same = len(set(self.texts)) == 1
        more: dict[str, Any] = {"chat": True} if self.chat else {}
        given: Any = self.texts[0] if same else [text for text in self.texts for _ in range(times)]
        return denoiser.prepare(given, len(self.texts) * times, self.condition, **more)

    def room(self, denoiser: Denoiser) -> int:
        """The longest canvas that fits behind every one of them, in tokens.

        Raises `InvalidGuideError` where a prompt leaves none.
        """
        each = tuple(dict.fromkeys(self.texts))
        limit = denoiser.longest(Prompts(each, self.condition, self.chat).ready(denoiser))
        if limit < 1:
            longest = max(map(len, each))
            raise InvalidGuideError(
                f"the prompt of {longest} characters leaves {denoiser.name} no canvas: shorten it"
            )
        return limit
