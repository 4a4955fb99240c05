"""A tokenizer's chat template around one user message, with the message kept as plain text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.vocabulary import Vocabulary

_SLOT = "redraft-message-slot"


@dataclass(frozen=True)
class ChatTemplate:
    """`head message tail`: the template's own markers are tokens, the message's are text.

    `skip` is left out where the template begins with it (for an adapter that puts its begin token there itself).
    """

    tokenizer: Any
    skip: int | None = None

    def encode(self, message: str, vocabulary: Vocabulary, name: str) -> list[int]:
        """Token ids of a conversation that waits for the model's answer to `message`.

        Raises `InvalidGuideError` where the tokenizer has no template, or one that changes the message.
        """
        if not getattr(self.tokenizer, "chat_template", None):
            raise InvalidGuideError(
                f"{name} has no chat template: leave chat out and give the whole prompt, or use an instruct model"
            )
        head, slot, tail = self._rendered(_SLOT).partition(_SLOT)
        kept = next(
            (own for own in (message, message.strip()) if self._rendered(message) == head + own + tail), None
        )
        if not slot or kept is None:
            raise InvalidGuideError(
                f"{name}: its chat template changes the message: leave chat out and give the whole prompt"
            )
        inner = vocabulary.encode(kept, exact=False) if kept else []
        before = self._marked(head)
        before = before[1:] if self.skip is not None and before[:1] == [self.skip] else before
        return [*before, *inner, *self._marked(tail)]

    def _rendered(self, message: str) -> str:
        turns = [{"role": "user", "content": message}]
        text: str = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return text

    def _marked(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
        return ids
