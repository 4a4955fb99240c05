"""Guides inside generate(): every text of an autoregressive model is in the language, however it is searched."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from test_vocabulary import byte_level
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessorList,
    PreTrainedTokenizerFast,
)

from redraft.denoiser import (
    Automaton,
    Bound,
    InvalidGuideError,
    Scene,
    SoftGuide,
    Step,
    UnsatisfiableError,
    Verdict,
    as_logits_processor,
)
from redraft.denoiser.lift import lift
from redraft.guidance import Bias, Infill, Keywords, Pattern, Repetition, Tokens, Words

N = 16


def _tokenizer() -> PreTrainedTokenizerFast:
    inner = byte_level()
    inner.add_special_tokens(["<pad>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<eos>", pad_token="<pad>", padding_side="left"
    )


TOKENIZER = _tokenizer()


def _model(kind: str) -> Any:
    torch.manual_seed(3)
    ids = {"bos_token_id": 1, "eos_token_id": TOKENIZER.eos_token_id, "pad_token_id": TOKENIZER.pad_token_id}
    if kind == "gpt2":
        model: Any = GPT2LMHeadModel(
            GPT2Config(vocab_size=330, n_embd=16, n_layer=2, n_head=2, n_positions=64, **ids)
        )
    else:
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=330,
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                **ids,
            )
        )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(20)
    return model.eval()


MODELS = {kind: _model(kind) for kind in ("gpt2", "llama")}
GUIDES: dict[str, list[Any]] = {
    "keywords": [Keywords("storm", "dark"), Words(3, 5)],
    "pattern": [Pattern("[a-z]{3,9}( [a-z]{2,5}){1,3}\\.")],
    "infill": [Infill("the old ___ hit it."), 3.0 * Bias({"dark": 2.0})],
}
SEARCH: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "temperature": 1.7},
    "narrow": {"do_sample": True, "top_k": 2, "top_p": 0.5},
    "beams": {"do_sample": False, "num_beams": 3},
    "sampled beams": {"do_sample": True, "num_beams": 2},
}


def prompts(*texts: str) -> dict[str, Tensor]:
    return dict(TOKENIZER(list(texts), return_tensors="pt", padding=True, return_token_type_ids=False))


def generate(model: Any, processor: Any, inputs: dict[str, Tensor], **options: Any) -> Tensor:
    sequences: Tensor = model.generate(**inputs, logits_processor=[processor], max_new_tokens=N, **options)
    return sequences


def texts_of(sequences: Tensor, start: int) -> list[str]:
    return [TOKENIZER.decode(row[start:], skip_special_tokens=True) for row in sequences]


@pytest.mark.parametrize("kind", sorted(MODELS))
@pytest.mark.parametrize("search", sorted(SEARCH))
@pytest.mark.parametrize("which", sorted(GUIDES))
def test_every_text_is_in_the_language(kind: str, search: str, which: str) -> None:
    inputs = prompts("it was", "the storm hit the old man")
    start = inputs["input_ids"].shape[1]
    processor = as_logits_processor(GUIDES[which], TOKENIZER, prompt_length=start, max_new_tokens=N)
    torch.manual_seed(0)
    sequences = generate(MODELS[kind], processor, inputs, **SEARCH[search])
    for text, verdicts in zip(texts_of(sequences, start), processor.check(sequences), strict=True):
        hard = [guide for guide in GUIDES[which] if guide.strength == "guaranteed"]
        assert all(guide.check(text).status == "satisfied" for guide in hard), text
        assert all(v.status == "satisfied" for v in verdicts if v.strength == "guaranteed")


def test_two_hundred_seeded_texts() -> None:
    inputs = prompts(*["it"] * 25)
    start = inputs["input_ids"].shape[1]
    for which, seeds in (("keywords", range(3)), ("pattern", range(3)), ("infill", range(2))):
        processor = as_logits_processor(GUIDES[which], TOKENIZER, prompt_length=start, max_new_tokens=N)
        for seed in seeds:
            torch.manual_seed(seed)
            sequences = generate(MODELS["gpt2"], processor, inputs, do_sample=True)
            assert len(set(map(tuple, sequences.tolist()))) > 5
            for text in texts_of(sequences, start):
                for guide in GUIDES[which]:
                    assert guide.strength != "guaranteed" or guide.check(text).status == "satisfied", text


def test_a_row_is_what_it_would_be_alone() -> None:
    both = prompts("it was", "the storm hit")
    start = both["input_ids"].shape[1]
    together = as_logits_processor(GUIDES["keywords"], TOKENIZER, prompt_length=start, max_new_tokens=N)
    scores = torch.randn(2, 330, generator=torch.Generator().manual_seed(1))
    begun = torch.tensor([TOKENIZER.encode(text)[:1] for text in ("storm", "it")])
    ids = torch.cat([both["input_ids"], begun], 1)
    steered = together(ids, scores)
    for row in range(2):
        assert torch.equal(together(ids[row : row + 1], scores[row : row + 1])[0], steered[row])
    swapped = together(ids.flip(0), scores.flip(0))  # as beams are reordered: nothing is remembered
    assert torch.equal(swapped.flip(0), steered)


def test_what_is_allowed_is_what_can_be_completed() -> None:
    """Against brute force: a token is let through exactly where some word of at most N tokens begins so."""
    guides = [Pattern("(ab?c){1,2}")]
    processor = as_logits_processor(guides, TOKENIZER, prompt_length=0, max_new_tokens=3)
    vocabulary = processor.bound.vocabulary
    pieces = [raw for raw in vocabulary.token_bytes if raw]
    words = {b"abc", b"ac", b"abcac", b"acabc", b"acac", b"abcabc"}

    def splits(word: bytes, room: int) -> bool:
        if not word:
            return True
        return room > 0 and any(
            word.startswith(piece) and splits(word[len(piece) :], room - 1) for piece in pieces
        )

    def allowed(prefix: bytes, room: int) -> set[bytes]:
        rest = [word[len(prefix) :] for word in words if word.startswith(prefix)]
        return {p for p in pieces for word in rest if word.startswith(p) and splits(word[len(p) :], room - 1)}

    for spelled in ([], ["a"], ["a", "b"], ["a", "b", "c"][:2], ["a", "c"]):
        ids = torch.tensor([[vocabulary.encode(piece)[0] for piece in spelled]], dtype=torch.int64).reshape(
            1, -1
        )
        out = processor(ids, torch.zeros(1, 330))[0]
        got = {vocabulary.token_bytes[k] for k in out.isfinite().nonzero().flatten().tolist()}
        prefix = "".join(spelled).encode()
        want: set[bytes | None] = set(allowed(prefix, 3 - len(spelled)))
        assert got == want | ({None} if prefix in words else set()), prefix
        assert bool(out[vocabulary.eos_id].isfinite()) == (prefix in words)  # type: ignore[index]


def test_soft_guides_add_their_bias_and_nothing_else() -> None:
    guides = [0.5 * Bias({" dark": 4.0}), Repetition(2.0)]
    processor = as_logits_processor(guides, TOKENIZER, prompt_length=1, max_new_tokens=8)
    scores = torch.randn(1, 330, generator=torch.Generator().manual_seed(0))
    word = TOKENIZER.encode(" dark")
    assert len(word) == 1
    text_only = as_logits_processor([], TOKENIZER, prompt_length=1, max_new_tokens=8)
    ids = torch.tensor([[5, TOKENIZER.encode("it")[0]]])
    moved = processor(ids, scores) - text_only(ids, scores)
    moved = moved.nan_to_num(0.0)
    assert moved[0, word[0]] == pytest.approx(2.0)
    assert moved[0, ids[0, 1]] == pytest.approx(-2.0)
    moved[0, word[0]] = moved[0, ids[0, 1]] = 0
    assert moved.abs().max() < 1e-6
    nothing = as_logits_processor([0.0 * Bias({"dark": 9.0})], TOKENIZER, prompt_length=1, max_new_tokens=8)
    assert torch.equal(nothing(ids, scores), text_only(ids, scores))


def test_the_callers_list_and_scores_are_left_alone() -> None:
    inputs = prompts("it")
    start = inputs["input_ids"].shape[1]
    processor = as_logits_processor(GUIDES["pattern"], TOKENIZER, prompt_length=start, max_new_tokens=N)
    given = LogitsProcessorList([processor])
    before = copy.copy(list(given))
    MODELS["gpt2"].generate(
        **inputs, logits_processor=given, max_new_tokens=N, do_sample=True, temperature=0.5
    )
    assert list(given) == before
    scores = torch.randn(1, 330)
    copied = scores.clone()
    processor(inputs["input_ids"], scores)
    assert torch.equal(scores, copied)


def test_another_processor_cannot_break_the_language() -> None:
    inputs = prompts("it")
    start = inputs["input_ids"].shape[1]
    processor = as_logits_processor(
        [Pattern("storm storm storm")], TOKENIZER, prompt_length=start, max_new_tokens=N
    )
    sequences = generate(MODELS["gpt2"], processor, inputs, do_sample=True, no_repeat_ngram_size=1)
    assert texts_of(sequences, start) == ["storm storm storm"]


def test_finished_rows_are_left_as_they_are() -> None:
    processor = as_logits_processor([Pattern("a")], TOKENIZER, prompt_length=0, max_new_tokens=4)
    scores = torch.randn(1, 330)
    a, eos = TOKENIZER.encode("a")[0], TOKENIZER.eos_token_id
    assert torch.equal(processor(torch.tensor([[a, eos]]), scores), scores)
    assert torch.equal(processor(torch.tensor([[a, eos, 7, 329]]), scores), scores)


@dataclass(frozen=True)
class Asks(SoftGuide):
    name: ClassVar[str] = "asks"
    what: str = "pass"

    def bind(self, scene: Scene) -> Bound:
        return _Asks(self, scene)

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown")


class _Asks(Bound):
    def bias(self, step: Step) -> Tensor | None:
        assert isinstance(self.guide, Asks)
        return step.denoiser(step.canvas, step.prompt) if self.guide.what == "pass" else None

    def revise(self, step: Step) -> Tensor | None:
        assert isinstance(self.guide, Asks)
        return step.canvas.open if self.guide.what == "back" else None


@pytest.mark.parametrize(("what", "said"), [("pass", "another pass"), ("back", "no way back")])
def test_guides_that_need_a_denoiser_are_refused_by_name(what: str, said: str) -> None:
    with pytest.raises(
        InvalidGuideError, match=rf"Asks\(what='{what}'\) cannot steer generate\(\): .*{said}"
    ):
        as_logits_processor([Words(1, 3), 2.0 * Asks(what)], TOKENIZER, prompt_length=0, max_new_tokens=8)


def test_what_cannot_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(UnsatisfiableError, match="cannot fit"):
        as_logits_processor(Words(30), TOKENIZER, prompt_length=0, max_new_tokens=8)
    with pytest.raises(InvalidGuideError, match="max_new_tokens is 0"):
        as_logits_processor(Words(3), TOKENIZER, prompt_length=0, max_new_tokens=0)
    longer = as_logits_processor(Words(3), TOKENIZER, prompt_length=9, max_new_tokens=8)
    with pytest.raises(InvalidGuideError, match="prompt_length is 9 and generate\\(\\) has 4 tokens"):
        longer(torch.zeros(1, 4, dtype=torch.int64), torch.zeros(1, 330))
    exact = as_logits_processor(
        Tokens(8), TOKENIZER, prompt_length=0, max_new_tokens=8
    )  # no place for EOS needed
    assert exact.bound.length == 8


def test_lifting_is_used_for_the_language() -> None:
    """The processor's language is that of the guides, EOS and padding behind it."""
    bound = as_logits_processor([Pattern("a+")], TOKENIZER, prompt_length=0, max_new_tokens=4).bound
    own = lift(Automaton.of_word(b"aa"), bound.vocabulary.token_bytes)
    a, eos, pad = TOKENIZER.encode("a")[0], TOKENIZER.eos_token_id, TOKENIZER.pad_token_id
    assert own.accepts([a, a])
    assert bound.steering.automaton.accepts([a, a, eos, pad, pad])
    assert not bound.steering.automaton.accepts([a, a, pad, eos])
