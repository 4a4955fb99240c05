"""Classifier-free guidance, contrasts and products of experts against their formulas."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_soft_guides import MASK, SIZE, VOCABULARY, WORDS, Toy, noise
from torch import Tensor
from toys import Chaos, small_vocabulary, uniform

from redraft.denoiser import (
    Canvas,
    Denoiser,
    InvalidGuideError,
    Prompt,
    Scene,
    Settings,
    SoftGuide,
    Step,
    refine,
)
from redraft.denoiser.distribution import distributions
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.steering import Steering
from redraft.denoiser.testing import ToyDenoiser
from redraft.guidance import ClassifierFree, Contrast, Experts, during
from redraft.recipes import InvalidRecipeError, discover, from_dict, to_dict
from redraft.recipes.describe import described


class Tagged(Toy):
    """Other logits for each tone; the prompt's text does not matter."""

    conditions = {"tone": ("up", "down")}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(noise(4, 1))
        self.seen: list[Tensor] = []
        self.by_tone = {None: self.logits, "up": noise(4, 2), "down": noise(4, 3)}

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        self.seen.append(canvas.committed)
        logits = self.by_tone[prompt.condition.get("tone")].clone()
        logits[:, MASK] = -torch.inf
        return logits.expand(canvas.tokens.shape[0], -1, -1)


def guided(denoiser: Denoiser, guide: SoftGuide, temperature: float, condition: dict[str, str]) -> Tensor:
    """[L, V]: the distribution that the run draws from in its first step."""
    scene = Scene(VOCABULARY, denoiser.device, 1, 4, 4)
    steering, prompt = Steering([guide], scene), denoiser.prepare("", 1, condition)
    canvas = Canvas.blank(1, 4, MASK)
    step = Step(0, 4, canvas, denoiser(canvas, prompt), prompt, denoiser, Randomness([0]), temperature)
    settings = Settings(temperature=temperature)
    return distributions(step, steering.bias(step), settings, steering.language)[0, :, :MASK].softmax(-1)


def log_p(logits: Tensor) -> Tensor:
    return logits[:, :MASK].log_softmax(-1)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("scale", [0.0, 1.0, 2.5, -1.0])
def test_classifier_free_is_u_plus_scale_times_c_minus_u(temperature: float, scale: float) -> None:
    denoiser = Tagged()
    u, c = log_p(denoiser.by_tone[None]), log_p(denoiser.by_tone["up"])
    wanted = ((u + scale * (c - u)) / temperature).softmax(-1)
    named = guided(denoiser, ClassifierFree({"tone": "up"}, scale), temperature, {})
    torch.testing.assert_close(named, wanted, atol=1e-5, rtol=1e-4)
    dropped = guided(denoiser, ClassifierFree(scale=scale), temperature, {"tone": "up"})
    torch.testing.assert_close(dropped, wanted, atol=1e-5, rtol=1e-4)


def test_a_tag_of_the_guide_takes_the_place_of_the_run_s() -> None:
    denoiser = Tagged()
    found = guided(denoiser, ClassifierFree({"tone": "up"}, 1.0), 1.0, {"tone": "down"})
    torch.testing.assert_close(found, log_p(denoiser.by_tone["up"]).exp(), atol=1e-5, rtol=1e-4)


def test_pins_stay_in_both_branches() -> None:
    denoiser = Tagged()
    where = torch.tensor([[True, False, True, False]])
    canvas = Canvas.blank(1, 4, MASK).pin(torch.full((1, 4), WORDS.index("king")), where)
    steering = Steering([ClassifierFree({"tone": "up"}, 1.5)], Scene(VOCABULARY, denoiser.device, 1, 4, 4))
    prompt = denoiser.prepare("", 1)
    run = refine(
        denoiser, canvas, steering, prompt=prompt, settings=Settings(steps=4), random=Randomness([1])
    )
    final = list(run)[-1].canvas
    assert final.tokens[0, [0, 2]].tolist() == [WORDS.index("king")] * 2
    pairs = list(zip(denoiser.seen[::2], denoiser.seen[1::2], strict=True))
    assert len(pairs) == 2
    assert all(torch.equal(one, other) for one, other in pairs)
    assert all(one[0, 0] == one[0, 2] == WORDS.index("king") for one, _ in pairs)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_contrast_and_product(temperature: float) -> None:
    run, one, other = (Toy(noise(4, seed)) for seed in (4, 5, 6))
    p, e, a = (log_p(toy.logits) for toy in (run, one, other))
    contrast = guided(run, Contrast(one, other, 0.8), temperature, {})
    torch.testing.assert_close(
        contrast, ((p + 0.8 * (e - a)) / temperature).softmax(-1), atol=1e-5, rtol=1e-4
    )
    product = guided(run, Experts(((one, 0.6), (other, 0.3)), own=0.5), temperature, {})
    wanted = ((0.5 * p + 0.6 * e + 0.3 * a) / temperature).softmax(-1)
    torch.testing.assert_close(product, wanted, atol=1e-5, rtol=1e-4)


def test_an_expert_of_itself_and_neutral_scales_change_nothing() -> None:
    run = Toy(noise(4, 7))
    p = log_p(run.logits).exp()
    for guide in (
        Contrast(run, run, 5.0),
        Experts(((run, 0.5),), own=0.5),
        0.0 * Contrast(run, Toy(noise(4, 8))),
    ):
        torch.testing.assert_close(guided(run, guide, 1.0, {}), p, atol=1e-5, rtol=1e-4)


class Echo(Chaos):
    """Chaos whose first logits follow the last token of the row's own prompt, and its noise what stands behind."""

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        last = (
            prompt.tokens[:, -1:]
            if prompt.tokens.shape[1]
            else canvas.tokens.new_zeros(len(canvas.tokens), 1)
        )
        return super().__call__(canvas, prompt) + 3.0 * torch.tanh(self._in[last] @ self._out)


@pytest.mark.parametrize("block", [None, 4])
@pytest.mark.parametrize("which", ["experts", "contrast", "condition"])
def test_every_row_is_judged_behind_its_own_prompt(which: str, block: int | None) -> None:
    run, other = (Echo(small_vocabulary(), seed=seed, block=block) for seed in (1, 2))
    guide: SoftGuide = ClassifierFree(scale=2.0)
    if which != "condition":
        guide = Experts(((other, 0.7),)) if which == "experts" else Contrast(other, run)  # type: ignore[arg-type]
    texts = ["the dog", "a cat ran home", "storm"]
    options: dict[str, Any] = {"length": 12, "steps": 4}
    together = run.write(guide, prompt=texts, seed=3, **options)
    for k, text in enumerate(texts):
        (alone,) = run.write(guide, prompt=text, seed=3 + k, **options)
        assert alone.tokens == together[k].tokens


def test_an_expert_sees_its_own_noise_and_what_the_writer_sees() -> None:
    vocabulary = small_vocabulary()
    seen: list[Canvas] = []

    class Watched(Chaos):
        def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
            seen.append(canvas)
            return super().__call__(canvas, prompt)

    run = Chaos(vocabulary, noise=uniform(vocabulary))
    run.write(Experts(((Watched(vocabulary), 0.5),)), seed=1, length=8, steps=3)  # type: ignore[arg-type]
    assert seen
    assert all((canvas.tokens[canvas.open] == vocabulary.mask_id).all() for canvas in seen)
    with pytest.raises(
        InvalidGuideError, match="writes blocks of 4 tokens and the denoiser that writes whole"
    ):
        run.write(Experts(((Chaos(vocabulary, block=4), 0.5),)), seed=1, length=8)  # type: ignore[arg-type]


def test_what_cannot_work_is_refused() -> None:
    run = Toy(noise(4, 7))
    scene = Scene(VOCABULARY, run.device, 1, 4, 4)
    stranger = Chaos(small_vocabulary())
    for guide in (Contrast(stranger, run), Experts(((stranger, 1.0),))):
        with pytest.raises(InvalidGuideError, match="vocabulary"):
            guide.bind(scene)
    with pytest.raises(InvalidGuideError, match="has none"):
        run.write(ClassifierFree(), seed=1)
    with pytest.raises(InvalidGuideError, match="no condition"):
        run.write(ClassifierFree({"tone": "up"}), seed=1)
    with pytest.raises(InvalidGuideError):
        Experts({})
    with pytest.raises(InvalidGuideError, match="finite"):
        Contrast("a", "b", float("nan"))
    assert SIZE == MASK + 1


def test_a_condition_that_cannot_be_is_refused_before_any_pass() -> None:
    for guide, message in (
        (ClassifierFree(), "has none"),
        (ClassifierFree({"tone": "sideways"}), "use one of up, down"),
        (during(0.5, 1.0, ClassifierFree({"genre": "tale"})), "no condition 'genre'"),
    ):
        denoiser = Tagged()
        with pytest.raises(InvalidGuideError, match=message):
            denoiser.write(guide, seed=1)
        assert not denoiser.seen
    denoiser.write(0.0 * ClassifierFree(), seed=1)  # scale 0 is no guide, and needs nothing


class Remembering(ToyDenoiser):
    """Keeps the prompts that it is asked with."""

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        self.prompts = [*getattr(self, "prompts", []), prompt]
        return super().__call__(canvas, prompt)


def test_every_row_keeps_its_own_prompt_in_the_other_branch() -> None:
    denoiser = Remembering(conditions={"tone": ("up", "down")})
    expert = Remembering(seed=1)
    guides = [ClassifierFree({"tone": "up"}), Experts({expert: 0.5})]
    denoiser.write(guides, prompt=["the sea", "a storm"], seed=1, steps=2, length=6)
    own, other = denoiser.prompts[:2]
    assert (own.condition, other.condition) == ({}, {"tone": "up"})
    assert own.tokens.tolist() == other.tokens.tolist() == expert.prompts[0].tokens.tolist()
    assert own.texts == other.texts == ("the sea", "a storm")


def test_a_recipe_names_denoisers_and_holds_none() -> None:
    named: list[SoftGuide] = [Experts({"a": 0.5, "b": -1.0}, own=0.5), Contrast("a", "b", 2.0)]
    for guide in named:
        assert from_dict(to_dict(guide)) == guide
    toy = Toy(noise(4, 7))
    for guide in (Experts({toy: 0.5}), Contrast(toy, "b"), Contrast("a", toy)):
        with pytest.raises(InvalidRecipeError, match="cannot be put in a recipe"):
            to_dict(guide)
    assert any("models: table of number by string" in line for line in described(discover().get("experts")))
