"""DiffusionGemma behind the loop: the native model's own numbers, caches, self-conditioning, all guides."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_noise import proposal
from toys import small_vocabulary

from redraft.denoiser import (
    Canvas,
    EntropyBound,
    Prompt,
    Reconsider,
    UnsupportedModelError,
    Vocabulary,
)
from redraft.denoiser.models.diffusion_gemma import DiffusionGemma
from redraft.denoiser.noise import Uniform
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.step import Step
from redraft.guidance import Bias, Forbid, Infill, Keywords, Pattern, Repetition, Words

native = pytest.importorskip("transformers.models.diffusion_gemma")
BLOCK, BOS = 12, 3


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return small_vocabulary(whole_first=True)


@pytest.fixture(scope="module")
def model(vocabulary: Vocabulary) -> Any:
    from transformers import DiffusionGemmaConfig, DiffusionGemmaTextConfig
    from transformers.models.gemma4 import Gemma4VisionConfig

    text = DiffusionGemmaTextConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, global_head_dim=16, max_position_embeddings=256,
        sliding_window=16, num_experts=4, top_k_experts=2, moe_intermediate_size=16, initializer_range=0.3,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        pad_token_id=2, eos_token_id=1, bos_token_id=BOS,
    )  # fmt: skip
    vision = Gemma4VisionConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, head_dim=8,
    )  # fmt: skip
    torch.manual_seed(0)
    made = native.DiffusionGemmaForBlockDiffusion(
        DiffusionGemmaConfig(
            text_config=text, vision_config=vision, canvas_length=BLOCK, initializer_range=0.3
        )
    )
    return made.eval()


@pytest.fixture
def denoiser(model: Any, vocabulary: Vocabulary) -> DiffusionGemma:
    return DiffusionGemma(model, vocabulary, name="tiny")


def shown(length: int, rows: int = 2, seed: int = 0) -> Canvas:
    canvas = Uniform(400).blank(length, Randomness(range(seed, seed + rows)))
    held = torch.arange(length).expand(rows, -1) < (length - 1) // BLOCK * BLOCK
    return canvas.commit(canvas.tokens, held, torch.ones_like(canvas.confidence))


def same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    kept = ours.isfinite()
    assert 0.9 < kept.float().mean() < 1
    torch.testing.assert_close(ours[kept], theirs[kept], rtol=1e-5, atol=1e-5)


def test_a_step_has_the_models_own_logits(
    denoiser: DiffusionGemma, model: Any, vocabulary: Vocabulary
) -> None:
    """One forward pass of the native class on prompt and finished blocks as `input_ids`, ours through the cache."""
    prompt = denoiser.prepare("the old ship", 2)
    run = denoiser.begin()
    for length in (BLOCK, 2 * BLOCK, 2 * BLOCK + 5):
        canvas = shown(length)
        start = (length - 1) // BLOCK * BLOCK
        lead = torch.cat([torch.full((2, 1), BOS), prompt.tokens, canvas.tokens[:, :start]], dim=1)
        with torch.inference_mode():
            theirs = model(input_ids=lead, decoder_input_ids=canvas.tokens[:, start:]).logits
            blind = model(input_ids=lead[:, :1], decoder_input_ids=canvas.tokens[:, start:]).logits
        assert not torch.allclose(theirs, blind, atol=1e-2)
        for way in (denoiser, run):  # encoded anew, and with what the run has encoded already
            ours = way(canvas, prompt)
            assert ours.shape == (2, length, len(vocabulary))
            same(ours[:, start:], theirs)
    assert denoiser._encoded is None
    assert len(run._encoded or {}) == 1


def test_self_conditioning_is_carried_within_a_block(denoiser: DiffusionGemma, model: Any) -> None:
    prompt, canvas = denoiser.prepare("the sea", 2), shown(BLOCK)
    run = denoiser.begin()
    logits = run(canvas, prompt)
    bias = torch.linspace(-1, 1, logits.shape[-1])[None, None]
    step = Step(0, 4, canvas, logits, prompt, run, Randomness([0, 1]))
    following = run.carry(step, bias, 0.5)
    lead = torch.cat([torch.full((2, 1), BOS), prompt.tokens], dim=1)
    with torch.inference_mode():
        theirs = model(
            input_ids=lead, decoder_input_ids=canvas.tokens, self_conditioning_logits=logits / 0.5 + bias
        ).logits
    same(following(canvas, prompt), theirs)
    assert not torch.allclose(following(canvas, prompt), logits)
    assert torch.equal(run(canvas, prompt), logits)  # the earlier step's denoiser is as it was
    longer = shown(2 * BLOCK)
    torch.testing.assert_close(
        following(longer, prompt), denoiser(longer, prompt)
    )  # a new block starts without


def test_padded_prompts_are_as_if_alone(denoiser: DiffusionGemma, vocabulary: Vocabulary) -> None:
    rows = [vocabulary.encode(text) for text in ("the old ship ran home", "a dog")]
    width = max(map(len, rows))
    tokens = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    mask = torch.tensor([[k >= width - len(row) for k in range(width)] for row in rows])
    prompt = Prompt(tokens, mask, padded=True)
    run = denoiser.begin()
    for length in (BLOCK, 2 * BLOCK):
        canvas = shown(length)
        together = run(canvas, prompt)[:, -BLOCK:]
        for row in range(2):
            single = Prompt(torch.tensor([rows[row]]), torch.ones(1, len(rows[row]), dtype=torch.bool))
            alone = denoiser(canvas.take(torch.tensor([row])), single)[:, -BLOCK:]
            torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-4, atol=1e-4)


def test_what_a_run_remembers_moves_with_its_rows(denoiser: DiffusionGemma) -> None:
    prompt, rows = denoiser.prepare("the sea", 3), torch.tensor([2, 0, 0])
    canvas = shown(2 * BLOCK, rows=3)
    run = denoiser.begin()
    step = Step(0, 4, canvas, run(canvas, prompt), prompt, run, Randomness([0, 1, 2]))
    run = run.carry(step, None, 1.0)
    before = run(canvas, prompt)
    after = run.take(rows)(canvas.take(rows), prompt)
    torch.testing.assert_close(after, before[rows], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(after[0], before[0])


GUIDES = [
    [Keywords("storm", "dog"), Words(3, 9)],
    [Infill("The storm ___ sad keeper [[2-3]] home. A <mask>!")],
    [Pattern(r"[A-Z][a-z ]*\."), Forbid("the", "was"), 1.5 * Bias({"sea": 2.0}), Repetition()],
]


@pytest.mark.parametrize("guides", GUIDES, ids=lambda g: str(g[0])[:20])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_guides_hold_and_rows_are_alone(
    denoiser: DiffusionGemma, guides: list[Any], temperature: float
) -> None:
    options = {"length": 28, "steps": 6, "temperature": temperature, "prompt": "the <mask>"}
    together = denoiser.write(guides, samples=2, seed=5, **options)
    for k, result in enumerate(together):
        assert result.satisfied, result.text
        (alone,) = denoiser.write(guides, seed=5 + k, **options)
        assert (alone.tokens, alone.steps) == (result.tokens, result.steps)


def test_scale_zero_is_no_guide_and_runs_leave_nothing_behind(denoiser: DiffusionGemma) -> None:
    options = {"seed": 1, "samples": 2, "steps": 5, "length": 20, "selection": EntropyBound(4.0)}
    first = denoiser.write([0.0 * Bias({"dog": 5.0})], **options)
    second = denoiser.write(**options)
    assert [(r.tokens, r.trace) for r in first] == [(r.tokens, r.trace) for r in second]
    assert denoiser._encoded is denoiser._echo is None


def test_an_early_stop_saves_passes(denoiser: DiffusionGemma) -> None:
    """The stock sampler's own meaning: all positions are judged anew, the last step settles."""
    (result,) = denoiser.write(seed=1, length=BLOCK, steps=6, stop=None)
    assert result.steps == 6
    assert isinstance(result.settings.revision, Reconsider)
    from redraft.denoiser import Patience

    (early,) = denoiser.write(seed=1, length=BLOCK, steps=6, stop=Patience(0, 50.0))
    assert early.steps == 1


def test_a_vocabulary_of_another_size_is_refused(model: Any) -> None:
    with pytest.raises(UnsupportedModelError, match="read the vocabulary with size="):
        DiffusionGemma(model, small_vocabulary(fragments=False), name="tiny")


def test_entropy_bound_accepts_what_the_native_sampler_accepts() -> None:
    from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
        EntropyBoundSampler,
        EntropyBoundSamplerConfig,
    )

    logits = torch.randn(6, 16, 12, generator=torch.Generator().manual_seed(0)) * 4
    sizes = set()
    for bound in (0.05, 0.5, 2.0, 8.0):
        native = EntropyBoundSampler(EntropyBoundSamplerConfig(bound), 16, 12, 9)
        blank = torch.zeros(6, 16, dtype=torch.int64)
        native.accept_canvas(blank, blank, logits, 9)
        ours = EntropyBound(bound)(proposal(logits))
        assert torch.equal(ours, native.accepted_token_mask)
        sizes |= set(ours.sum(-1).tolist())
    assert len(sizes) > 5
