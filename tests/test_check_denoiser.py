"""The kit that checks denoisers, on denoisers that are broken in one way each."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from redraft.denoiser import Denoiser, InvalidGuideError, Vocabulary, load
from redraft.denoiser.testing import (
    DENOISER_CHECKS,
    ContractError,
    ToyDenoiser,
    check_denoiser,
    toy_vocabulary,
)

COUNT = itertools.count()
BROKEN: dict[str, type[ToyDenoiser]] = {}


def breaks(check: str) -> Any:
    def register(cls: type[ToyDenoiser]) -> type[ToyDenoiser]:
        BROKEN[check] = cls
        return cls

    return register


@breaks("described")
class Cramped(ToyDenoiser):
    def __init__(self) -> None:
        super().__init__(length=300)


@breaks("vocabulary-bytes")
class Lossy(ToyDenoiser):
    """Its tokenizer drops spaces."""

    def __init__(self) -> None:
        own = toy_vocabulary()
        super().__init__(
            Vocabulary(
                own.token_bytes, lambda text: own.encode(text.replace(" ", "")), mask_id=0, eos_id=1, pad_id=2
            )
        )


@breaks("prompt")
class Narrow(ToyDenoiser):
    def prepare(self, text, batch, condition=None):  # type: ignore[no-untyped-def]
        prompt = super().prepare(text, batch, condition)
        return replace(prompt, tokens=prompt.tokens.int())


@breaks("markers-are-text")
class Holes(ToyDenoiser):
    def prepare(self, text, batch, condition=None):  # type: ignore[no-untyped-def]
        prompt = super().prepare(text.replace("<mask>", "\0"), batch, condition)
        nul = self.vocabulary.encode("\0")[0]
        return replace(
            prompt, tokens=torch.where(prompt.tokens == nul, self.vocabulary.mask_id, prompt.tokens)
        )


@breaks("logits")
class Half(ToyDenoiser):
    def __call__(self, canvas, prompt):  # type: ignore[no-untyped-def]
        return super().__call__(canvas, prompt).half()


@breaks("longest")
class Endless(ToyDenoiser):
    def longest(self, prompt):  # type: ignore[no-untyped-def]
        return self.max_length + 1


@breaks("conditions")
class Deaf(ToyDenoiser):
    def prepare(self, text, batch, condition=None):  # type: ignore[no-untyped-def]
        return super().prepare(text, batch, None)


@breaks("never-written")
class Masked(ToyDenoiser):
    def __call__(self, canvas, prompt):  # type: ignore[no-untyped-def]
        return super().__call__(canvas, prompt).index_fill(-1, torch.tensor([0]), -3.0)


@breaks("finite-elsewhere")
class Bars(ToyDenoiser):
    def __call__(self, canvas, prompt):  # type: ignore[no-untyped-def]
        return super().__call__(canvas, prompt).index_fill(-1, torch.tensor([9]), -torch.inf)


@breaks("deterministic")
class Drops(ToyDenoiser):
    def __call__(self, canvas, prompt):  # type: ignore[no-untyped-def]
        return super().__call__(canvas, prompt) * (1 + 1e-3 * next(COUNT))


@breaks("no-edits-in-place")
class Writes(ToyDenoiser):
    def __call__(self, canvas, prompt):  # type: ignore[no-untyped-def]
        logits = super().__call__(canvas, prompt)
        canvas.confidence.fill_(0.5)
        return logits


@breaks("batch-equals-singles")
class Normalises(ToyDenoiser):
    def __call__(self, canvas, prompt):  # type: ignore[no-untyped-def]
        logits = super().__call__(canvas, prompt)
        kept = torch.where(logits.isfinite(), logits, 0.0)
        return logits - 0.1 * kept.mean(0, keepdim=True)


@breaks("writes")
class Untrue(ToyDenoiser):
    def write(self, guides=(), **options):  # type: ignore[no-untyped-def]
        return [replace(result, text=f"{result.text}!") for result in super().write(guides, **options)]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_denoiser_fails_exactly_its_check(name: str) -> None:
    results = check_denoiser(BROKEN[name](), raises=False)
    assert [r.name for r in results if r.outcome == "failed"] == [name]


def test_a_failure_is_raised_with_its_remedy() -> None:
    with pytest.raises(ContractError, match=r"(?s)toy fails 1 of 13 checks.*logits failed.*remedy: slice"):
        check_denoiser(Half())


def test_every_check_has_a_denoiser_that_fails_it() -> None:
    assert set(BROKEN) == {check.name for check in DENOISER_CHECKS}


def test_the_toy_and_the_embedded_denoiser_keep_the_contract() -> None:
    for denoiser in (ToyDenoiser(), load()):
        assert {r.outcome for r in check_denoiser(denoiser)} == {"passed"}
    assert {r.name: r.note for r in check_denoiser(load())}["conditions"] == "genre, tone"


def test_what_is_no_denoiser_is_refused() -> None:
    with pytest.raises(InvalidGuideError, match="is no denoiser"):
        check_denoiser(Denoiser)  # type: ignore[arg-type]
    declared = {"logits": "half precision on purpose"}
    results = check_denoiser(Half(), expected_failures=declared)
    assert {r.name: r.outcome for r in results}["logits"] == "expected"
