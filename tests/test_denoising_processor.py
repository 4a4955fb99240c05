"""Guides inside DiffusionGemma's own generate(): a processor that is called once a denoising step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_vocabulary import byte_level
from transformers import PreTrainedTokenizerFast

from redraft.denoiser import InvalidGuideError, as_logits_processor
from redraft.guidance import Bias, Infill, Keywords, Pattern, Words

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch.jit:DeprecationWarning"
)  # of torch itself, as it imports
native = pytest.importorskip("transformers.models.diffusion_gemma")
CANVAS, STEPS = 10, 4


def _tokenizer() -> PreTrainedTokenizerFast:
    inner = byte_level()
    inner.add_special_tokens(["<pad>"])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>", pad_token="<pad>")


TOKENIZER = _tokenizer()


def tiny_config(size: int, **ids: int) -> Any:
    from transformers import DiffusionGemmaConfig, DiffusionGemmaTextConfig
    from transformers.models.gemma4 import Gemma4VisionConfig

    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8}
    text = DiffusionGemmaTextConfig(
        vocab_size=size,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        global_head_dim=8,
        max_position_embeddings=128,
        sliding_window=16,
        num_experts=2,
        top_k_experts=1,
        moe_intermediate_size=16,
        layer_types=["sliding_attention", "full_attention"],
        **heads,
        **ids,
    )
    vision = Gemma4VisionConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=1, **heads)
    return DiffusionGemmaConfig(
        text_config=text, vision_config=vision, canvas_length=CANVAS, image_token_id=size - 1
    )


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = tiny_config(
        330, pad_token_id=TOKENIZER.pad_token_id, eos_token_id=TOKENIZER.eos_token_id, bos_token_id=1
    )
    return native.DiffusionGemmaForBlockDiffusion(config).eval()


def generate(model: Any, guides: Any, tokens: int, rows: int = 2, **options: Any) -> tuple[Any, torch.Tensor]:
    ids = torch.tensor([TOKENIZER.encode("it was dark")] * rows)
    processor = as_logits_processor(
        guides,
        TOKENIZER,
        prompt_length=ids.shape[1],
        max_new_tokens=tokens,
        canvas_length=CANVAS,
        max_denoising_steps=STEPS,
    )
    out = model.generate(
        ids,
        logits_processor=_list(processor),
        max_new_tokens=tokens,
        max_denoising_steps=STEPS,
        pad_token_id=TOKENIZER.pad_token_id,
        eos_token_id=TOKENIZER.eos_token_id,
        **options,
    )
    return processor, out.sequences


def _list(processor: Any) -> Any:
    from transformers import LogitsProcessorList

    return LogitsProcessorList([processor])


@pytest.mark.parametrize(
    "guides",
    [
        [Keywords("storm", "dark")],
        [Pattern("[a-z]{2,12}( [a-z]{1,4}){1,2}")],
        [Infill("the ___ hit"), Words(3, 5)],
    ],
)
@pytest.mark.parametrize("canvases", [1, 2])
def test_every_canvas_that_is_kept_is_in_the_language(model: Any, guides: Any, canvases: int) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        processor, sequences = generate(model, [*guides, 2.0 * Bias({"dark": 2.0})], canvases * CANVAS)
        for verdicts in processor.check(sequences):
            assert all(v.status == "satisfied" for v in verdicts if v.strength == "guaranteed")
        start = processor.prompt_length
        for row in sequences:
            text = TOKENIZER.decode(row[start:], skip_special_tokens=True)
            assert all(guide.check(text).status == "satisfied" for guide in guides), text


def test_scores_are_the_exact_marginals_but_for_the_word_on_top() -> None:
    """A language of two words: marginals by hand."""
    processor = as_logits_processor(
        [Pattern("ab|cd")],
        TOKENIZER,
        prompt_length=0,
        max_new_tokens=2,
        canvas_length=2,
        max_denoising_steps=STEPS,
    )
    a, b, c, d = (TOKENIZER.encode(letter)[0] for letter in "abcd")
    scores = torch.full((1, 2, 330), -20.0)
    scores[0, 0, a], scores[0, 0, c], scores[0, 1, b], scores[0, 1, d] = 0.0, 1.0, 2.0, 0.5
    out = processor(torch.zeros(1, 0, dtype=torch.int64), scores, cur_step=STEPS)
    assert out.dtype == torch.float32
    odds = torch.tensor([0.0 + 2.0, 1.0 + 0.5])
    first, second = odds.softmax(0).log()
    assert out[0, 0, c] == pytest.approx(float(second), abs=1e-4)
    assert out[0, 0, a] == pytest.approx(float(first), abs=2e-3)
    assert out[0].argmax(-1).tolist() == [a, b]
    assert out.isfinite().all()
    assert out[0, 0, b] <= -1e4


def test_the_best_of_the_marginals_is_no_word_and_what_is_kept_is() -> None:
    """ab, ac, dc with weights .4, .25, .35: the marginals' best is a then c (.65, .6), and so is a word; with
    ab .4, dc .35, de .25 it is d then b, which is none."""
    processor = as_logits_processor(
        [Pattern("ab|dc|de")],
        TOKENIZER,
        prompt_length=0,
        max_new_tokens=2,
        canvas_length=2,
        max_denoising_steps=STEPS,
    )
    a, b, c, d, e = (TOKENIZER.encode(letter)[0] for letter in "abcde")
    scores = torch.full((1, 2, 330), -30.0)
    for place, token, weight in ((0, a, 0.4), (0, d, 0.6), (1, b, 0.4), (1, c, 0.32), (1, e, 0.28)):
        scores[0, place, token] = torch.tensor(weight).log()
    word = processor(torch.zeros(1, 0, dtype=torch.int64), scores, cur_step=1)[0].argmax(-1).tolist()
    assert word in ([a, b], [d, c], [d, e])


def test_a_canvas_length_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidGuideError, match="canvas_length is 0"):
        as_logits_processor(Words(2), TOKENIZER, prompt_length=0, max_new_tokens=8, canvas_length=0)
