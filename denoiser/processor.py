"""The other way round: the same guides inside `transformers`' own `generate()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.guide import Guide

if TYPE_CHECKING:
    from redraft.denoiser.generation.denoising import DenoisingProcessor
    from redraft.denoiser.generation.left_to_right import LeftToRightProcessor


def as_logits_processor(
    guides: Guide | Sequence[Guide],
    tokenizer: Any,
    *,
    prompt_length: int,
    max_new_tokens: int,
    canvas_length: int | None = None,
    max_denoising_steps: int = 48,
) -> LeftToRightProcessor | DenoisingProcessor:
    """A `transformers.LogitsProcessor` under which `generate()` keeps to the guides.

    `tokenizer` is the model's fast tokenizer or a `Vocabulary` with its EOS; `prompt_length` and
    `max_new_tokens` are those of the call (input_ids.shape[1], padding included). For an autoregressive
    model leave `canvas_length` out: hard guides hold for every text that is generated, by greedy search,
    sampling or beams, since only tokens are let through from which the languages can still be completed in the tokens
    that are left, and EOS only where they accept; soft guides add their bias to the logits, before the
    sampler's own temperature. For DiffusionGemma's `generate()` give its `canvas_length` (and its
    `max_denoising_steps`): each denoising step's scores become the exact posterior marginals, with the most
    probable word of the language on top of them, so that the canvas which `generate()` keeps is in it.

        processor = as_logits_processor(Keywords("storm"), tokenizer, prompt_length=n, max_new_tokens=40)
        model.generate(input_ids, logits_processor=[processor], max_new_tokens=40)

    Raises `InvalidGuideError` for a guide that needs a denoiser, and whatever binding the guides raises
    (`UnsatisfiableError` where no text fits `max_new_tokens`).
    """
    from redraft.denoiser.generation.bound import BoundGuides

    for name, value, least in (("prompt_length", prompt_length, 0), ("max_new_tokens", max_new_tokens, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidGuideError(f"{name} is {value!r}: use a whole number from {least}")
    chosen = (guides,) if isinstance(guides, Guide) else tuple(guides)
    for guide in chosen:
        if not isinstance(guide, Guide):
            raise InvalidGuideError(f"{guide!r} is no guide: pass objects such as Keywords('storm')")
    if canvas_length is None:
        from redraft.denoiser.generation.left_to_right import LeftToRightProcessor

        bound = BoundGuides.of(chosen, tokenizer, max_new_tokens, max_new_tokens)
        return LeftToRightProcessor(bound, prompt_length)
    from redraft.denoiser.generation.denoising import DenoisingProcessor

    if isinstance(canvas_length, bool) or not isinstance(canvas_length, int) or canvas_length < 1:
        raise InvalidGuideError(f"canvas_length is {canvas_length!r}: use the model's, config.canvas_length")
    whole = -(-max_new_tokens // canvas_length) * canvas_length
    bound = BoundGuides.of(chosen, tokenizer, whole, max_denoising_steps)
    return DenoisingProcessor(bound, prompt_length, canvas_length)
