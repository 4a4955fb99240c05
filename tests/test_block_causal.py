"""Block-causal models behind the loop: both calling conventions, and a cache that changes nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from toys import small_vocabulary

from redraft.denoiser import (
    Canvas,
    Confidence,
    InvalidGuideError,
    Prompt,
    Uncertain,
    UnsupportedModelError,
    Vocabulary,
)
from redraft.denoiser.models.block_causal import BlockCausal
from redraft.guidance import Bias, Forbid, Infill, Keywords, Pattern, Repetition, Words

BLOCK = 4


class Tiny(torch.nn.Module):
    """Two layers of attention with rotary-like places, called as LLaDA2.x is: 4D additive mask, a cache that grows."""

    dtype = torch.float32

    def __init__(self, size: int, width: int = 16) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(size, width)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, 4 * width) for _ in range(2))
        self.head = torch.nn.Linear(width, size)
        self.calls: list[int] = []

    def allowed(self, mask: torch.Tensor) -> torch.Tensor:
        assert mask.ndim == 4
        assert mask.is_floating_point()
        return mask[:, 0]

    def keep(self, store_kv: bool | None) -> bool:
        assert store_kv is None
        return True

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        past_key_values: Any = None,
        use_cache: bool = False,
        store_kv: bool | None = None,
    ) -> Any:
        self.calls.append(input_ids.shape[1])
        assert use_cache == (past_key_values is not None)
        rate = 1.5 ** -torch.arange(self.embed.embedding_dim)
        hidden = self.embed(input_ids)
        place = (position_ids[..., None] * rate).sin()
        for number, layer in enumerate(self.layers):
            query, key, value, gate = layer(hidden + place).chunk(4, -1)
            if past_key_values is not None:
                if store_kv is not False:
                    key, value = (
                        x[:, 0] for x in past_key_values.update(key[:, None], value[:, None], number)
                    )
                elif past_key_values.get_seq_length(number):
                    old = past_key_values.layers[number]
                    key, value = torch.cat([old.keys[:, 0], key], 1), torch.cat([old.values[:, 0], value], 1)
            score = query @ key.transpose(1, 2) * 2 + self.allowed(attention_mask)
            hidden = hidden + score.softmax(-1) @ value + torch.tanh(gate)
        return SimpleNamespace(logits=self.head(hidden) * 8)


class TinyBoolean(Tiny):
    """As SDAR is: 3D boolean mask, `store_kv`."""

    def allowed(self, mask: torch.Tensor) -> torch.Tensor:
        assert mask.ndim == 3
        assert mask.dtype == torch.bool
        return torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return small_vocabulary(whole_first=True)


def adapter(vocabulary: Vocabulary, kind: str, *, cached: bool = True, **more: Any) -> BlockCausal:
    model = (Tiny if kind == "additive" else TinyBoolean)(len(vocabulary))
    return BlockCausal(
        model,
        vocabulary,
        name="tiny",
        block=BLOCK,
        mask=kind,
        store_kv=kind == "boolean",
        cached=cached,
        **more,
    )


KINDS = ["additive", "boolean"]


def shown(vocabulary: Vocabulary, length: int, rows: int = 2) -> Canvas:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(4, len(vocabulary), (rows, 40), generator=generator)[:, :length]
    canvas = Canvas.blank(rows, length, 0)
    start = (length - 1) // BLOCK * BLOCK
    held = torch.arange(length).expand(rows, -1) < start + 1
    return canvas.commit(tokens, held, torch.ones_like(canvas.confidence))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_one_pass_under_the_block_mask(kind: str, vocabulary: Vocabulary) -> None:
    """The reference's mask, tril of ones over blocks, where the prompt fills whole blocks."""
    denoiser = adapter(vocabulary, kind, before=[3])
    prompt = Prompt(
        torch.tensor([vocabulary.encode("the dog ran home"[:3]) * 7] * 2)[:, :7], torch.ones(2, 7).bool()
    )
    run = denoiser.begin()
    for length in (4, 8, 10, 12, 15):
        canvas = shown(vocabulary, length)
        tokens = torch.cat([torch.full((2, 1), 3), prompt.tokens, canvas.tokens], dim=1)
        blocks = torch.ones(8, 8).tril().repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)
        total = tokens.shape[1]
        allowed = blocks[:total, :total].bool().expand(2, -1, -1)
        mask = allowed if kind == "boolean" else allowed.float().log()[:, None]
        with torch.inference_mode():
            theirs = denoiser.model(tokens, mask, torch.arange(total).expand(2, -1)).logits
        start = (length - 1) // BLOCK * BLOCK
        for way in (denoiser, run):  # everything anew, and through the cache
            ours = way(canvas, prompt)[:, start:]
            kept = ours.isfinite()
            assert not ours[..., vocabulary.mask_id].isfinite().any()
            torch.testing.assert_close(ours[kept], theirs[:, 8 + start :][kept], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_reads_each_finished_block_once(kind: str, vocabulary: Vocabulary) -> None:
    denoiser = adapter(vocabulary, kind)
    options = {"prompt": "the old ship", "length": 18, "steps": 10, "seed": 4, "samples": 2}
    cached = denoiser.write(Words(2, 6), **options)
    asked = denoiser.model.calls
    lead = len(vocabulary.encode("the old ship"))
    assert sum(size for size in asked if size > BLOCK or size == lead) <= lead
    assert max(asked) <= max(lead, BLOCK)
    plain = adapter(vocabulary, kind, cached=False).write(Words(2, 6), **options)
    assert [r.tokens for r in plain] == [r.tokens for r in cached]


@pytest.mark.parametrize("kind", KINDS)
def test_padded_prompts_are_as_if_alone(kind: str, vocabulary: Vocabulary) -> None:
    rows = [vocabulary.encode(text) for text in ("the old ship ran home", "a dog")]
    width = max(map(len, rows))
    tokens = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    mask = torch.tensor([[k >= width - len(row) for k in range(width)] for row in rows])
    run = adapter(vocabulary, kind, before=[3]).begin()
    prompt = Prompt(tokens, mask, padded=True)
    for length in (4, 7):
        canvas = shown(vocabulary, length)
        start = (length - 1) // BLOCK * BLOCK
        together = run(canvas, prompt)[:, start:]
        for row in range(2):
            single = Prompt(torch.tensor([rows[row]]), torch.ones(1, len(rows[row]), dtype=torch.bool))
            alone = adapter(vocabulary, kind, before=[3])(canvas.take(torch.tensor([row])), single)[:, start:]
            torch.testing.assert_close(together[row : row + 1], alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_moves_with_its_rows(kind: str, vocabulary: Vocabulary) -> None:
    denoiser, rows = adapter(vocabulary, kind).begin(), torch.tensor([2, 0, 0])
    prompt, canvas = denoiser.prepare("the sea", 3), shown(vocabulary, 7, rows=3)
    before = denoiser(canvas, prompt)
    after = denoiser.take(rows)(canvas.take(rows), prompt)
    torch.testing.assert_close(after, before[rows], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(after[0, 4:], before[0, 4:])


def test_a_native_decoder_under_the_block_mask(vocabulary: Vocabulary) -> None:
    """`transformers`' own attention and cache take the mask as it is: cached equals computed anew."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, initializer_range=0.5,
    )  # fmt: skip
    denoiser = BlockCausal(LlamaForCausalLM(config), vocabulary, name="llama", block=BLOCK, before=[3])
    prompt, run = denoiser.prepare("the old ship", 2), denoiser.begin()
    other = denoiser.begin()
    for length in (4, 8, 11):
        canvas = shown(vocabulary, length)
        torch.testing.assert_close(run(canvas, prompt), denoiser(canvas, prompt), rtol=1e-4, atol=1e-4)
    later = canvas.tokens.clone()
    later[:, 10] = 20
    moved = other(Canvas(later, *(getattr(canvas, n) for n in ("open", "pinned", "confidence"))), prompt)
    assert not torch.allclose(
        moved[:, 9], run(canvas, prompt)[:, 9], atol=1e-3
    )  # it sees its block to the right


GUIDES = [
    [Keywords("storm", "dog"), Words(3, 9)],
    [Infill("The storm ___ sad keeper [[2-3]] home. A <mask>!")],
    [Pattern(r"[A-Z][a-z ]*\."), Forbid("the", "was"), 1.5 * Bias({"sea": 2.0}), Repetition()],
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("guides", GUIDES, ids=lambda g: str(g[0])[:20])
def test_guides_hold_and_rows_are_alone(kind: str, guides: list[Any], vocabulary: Vocabulary) -> None:
    denoiser = adapter(vocabulary, kind)
    options = {
        "length": 26,
        "steps": 8, "prompt": "the <mask>", "selection": Confidence(), "revision": Uncertain(0.4, 0, 1)
    }  # fmt: skip
    together = denoiser.write(guides, samples=2, seed=5, **options)
    assert all(result.satisfied for result in together)
    (alone,) = denoiser.write(guides, seed=6, **options)
    assert (alone.tokens, alone.steps) == (together[1].tokens, together[1].steps)


def test_scale_zero_is_no_guide_and_greedy_has_no_seed(vocabulary: Vocabulary) -> None:
    denoiser, options = adapter(vocabulary, "additive"), {"length": 12, "steps": 6, "samples": 2}
    zero, none = (denoiser.write(guides, seed=2, **options) for guides in ([0.0 * Bias({"dog": 5.0})], []))
    assert [(r.tokens, r.trace) for r in zero] == [(r.tokens, r.trace) for r in none]
    greedy = denoiser.write(Keywords("sea"), seed=1, temperature=0.0, selection=Confidence(), **options)
    assert greedy[0].satisfied
    assert greedy[0].tokens == greedy[1].tokens


def test_what_cannot_be_served_is_refused(vocabulary: Vocabulary) -> None:
    bare = Vocabulary(vocabulary.token_bytes, vocabulary.encode)
    with pytest.raises(UnsupportedModelError, match="has no mask token"):
        BlockCausal(Tiny(8), bare, name="tiny", block=4)
    with pytest.raises(InvalidGuideError, match="block length it was trained with"):
        BlockCausal(Tiny(8), vocabulary, name="tiny", block=0)
