"""Guides that break their contract: the run stops with an error that names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from toys import Chaos, small_vocabulary

from redraft.denoiser import Automaton, Bound, HardGuide, RedraftError, Scene, SoftGuide, Verdict
from redraft.guidance import Words


@dataclass(frozen=True)
class Broken(SoftGuide):
    """A soft guide whose bound half is whatever the test says."""

    name: ClassVar[str] = "broken"
    kind: Any

    def bind(self, scene: Scene) -> Bound:
        return self.kind(self, scene)  # type: ignore[no-any-return]

    def check(self, text: str) -> Verdict:
        return self.verdict(True)

    def __str__(self) -> str:
        return "Broken()"


class Number(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return 3.0


class Infinite(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.full((1,), -torch.inf)


class Huge(Bound):
    """Finite as float64, and as float32 on its own; the sum with itself would not be."""

    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.full((1,), 3e38)


class Wide(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.full((1,), 1e300, dtype=torch.float64)


class Sparse(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.zeros(step.logits.shape[-1]).to_sparse()


class Elsewhere(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.zeros(1, device="meta")


class Grown(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.zeros(7)


class Raises(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        raise KeyError("storm")


class Gradient(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.zeros(1, requires_grad=True)


class Overwrites(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        step.canvas.tokens.fill_(5)


class Opens(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        step.canvas.open.fill_(False)


class OverwritesLogits(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        step.logits.add_(1.0)


class OverwritesLogP(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        step.log_p.add_(1.0)


class OverwritesPrompt(Bound):
    def bias(self, step):  # type: ignore[no-untyped-def]
        step.prompt.tokens.fill_(5)


class OverwritesDraft(Bound):
    def anchors(self, step, draft, confidence):  # type: ignore[no-untyped-def]
        draft.fill_(3)


class Anchors(Bound):
    def anchors(self, step, draft, confidence):  # type: ignore[no-untyped-def]
        return 1


class Signature(Bound):
    def bias(self):  # type: ignore[no-untyped-def, override]
        return None


class Mute(Bound):
    def check(self, text, tokens=None):  # type: ignore[no-untyped-def]
        return None


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Number, r"Broken\(\): bias returned 3.0"),
        (Infinite, r"Broken\(\): bias is not finite"),
        (Huge, r"Broken\(\): bias is not finite, or beyond 1e\+30 nats"),
        (Wide, r"Broken\(\): bias is not finite"),
        (Sparse, r"Broken\(\): bias is torch.sparse_coo on cpu: return a dense tensor"),
        (Elsewhere, r"Broken\(\): bias is torch.strided on meta: return a dense tensor on scene.device, cpu"),
        (Grown, r"Broken\(\): bias is torch.float32 \(7,\), which does not broadcast"),
        (Raises, r"Broken\(\) failed: KeyError: 'storm'"),
        (Gradient, r"Broken\(\): bias returned .*detached"),
        (Overwrites, r"Broken\(\) changed the canvas"),
        (Opens, r"Broken\(\) changed the canvas"),
        (OverwritesLogits, r"Broken\(\) changed the .* logits in place"),
        (OverwritesLogP, r"Broken\(\) changed the .* logits in place"),
        (OverwritesPrompt, r"Broken\(\) changed the .* prompt"),
        (OverwritesDraft, r"Broken\(\) changed the canvas, the draft"),
        (Anchors, r"Broken\(\): anchors returned 1"),
        (Signature, r"Signature.bias\(self\) does not have the host's signature"),
        (Mute, r"Broken\(\): check returned None"),
        (lambda guide, scene: None, r"bind returned None"),
    ],
)
def test_a_broken_hook_is_named(kind: Any, message: str) -> None:
    with pytest.raises(RedraftError, match=message):
        Chaos(small_vocabulary()).write([Words(2, 6), Broken(kind)], seed=1, steps=4)


class Float(Bound):
    """A preference for one token, in the test's own type of float."""

    dtype = torch.float32

    def bias(self, step):  # type: ignore[no-untyped-def]
        flat = torch.zeros(step.logits.shape[-1], dtype=self.dtype)
        return flat.index_fill(0, torch.tensor([300]), 2.0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_a_bias_of_another_float_is_the_same_bias(dtype: torch.dtype) -> None:
    def texts(kind: Any) -> list[str]:
        made = Chaos(small_vocabulary()).write(Broken(kind), seed=1, samples=2, steps=3)
        return [result.text for result in made]

    assert texts(type("Other", (Float,), {"dtype": dtype})) == texts(Float)


@dataclass(frozen=True)
class BrokenHard(HardGuide):
    name: ClassVar[str] = "broken-hard"
    answer: Any

    def language(self, scene: Scene) -> Automaton:
        return self.answer  # type: ignore[no-any-return]

    def check(self, text: str) -> Verdict:
        return self.verdict(True)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "its language is None"),
        (3, "its language is 3"),
        (Automaton.all(), "256 symbols and the vocabulary"),
    ],
)
def test_a_language_that_is_none_is_named(answer: Any, message: str) -> None:
    denoiser = Chaos(small_vocabulary())
    with pytest.raises(RedraftError, match=message):
        denoiser.write(BrokenHard(answer), seed=1)
    assert denoiser.calls == 0
