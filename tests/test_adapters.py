"""Every guide on every adapter: languages hold, pins stay, rows are their own, markers are text, scale 0 is nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from stand_ins import CHAT, MAKERS, REMOTE, slow_tokenizer

from redraft.denoiser import (
    Canvas,
    Denoiser,
    InvalidGuideError,
    Steering,
    UnsupportedModelError,
    UnwritableTextError,
    Vocabulary,
    load,
    refine,
)
from redraft.denoiser.models.pretrained import find_tokenizer
from redraft.denoiser.randomness import Randomness
from redraft.denoiser.step import Scene
from redraft.denoiser.testing import check_denoiser
from redraft.guidance import Bias, Forbid, Infill, Keywords, Pattern, Repetition, Sentences, Tokens, Words

LONG = 30
GUIDES: dict[str, list[Any]] = {
    "keywords": [Keywords("storm", "dark"), Words(2, 9)],
    "infill": [Infill("the old ___ hit"), Tokens(4, LONG)],
    "forbid": [Forbid("the", "a"), Sentences(1, 3)],
    "pattern": [Pattern("[a-d ]{4,60}"), 2.0 * Bias({"dark": 3.0}), Repetition()],
}
PROMPTS = ["it was dark", "", "the old man saw the storm"]
_FOLDERS: dict[str, Path] = {}


@pytest.fixture(scope="module", autouse=True)
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        modules = str(tmp_path_factory.mktemp("modules"))
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
        patch.syspath_prepend(modules)
        for name, make in MAKERS.items():
            _FOLDERS[name] = make(tmp_path_factory.mktemp(name))
        yield


@pytest.fixture(scope="module", params=sorted(MAKERS))
def denoiser(request: pytest.FixtureRequest) -> Denoiser:
    found: Denoiser = load(_FOLDERS[request.param], trust_remote_code=request.param in REMOTE)
    return found


def test_the_denoiser_says_which_adapter_and_why(denoiser: Denoiser) -> None:
    assert denoiser.adapter.lower().replace("-", "_").replace("masked_lm", "") in repr(denoiser).lower()
    assert denoiser.why
    assert denoiser.adapter in repr(denoiser)


def test_the_contract_of_denoisers_is_kept(denoiser: Denoiser) -> None:
    assert not [result for result in check_denoiser(denoiser) if result.outcome == "failed"]


@pytest.mark.parametrize("which", sorted(GUIDES))
def test_every_guide_holds(denoiser: Denoiser, which: str) -> None:
    results = denoiser.write(GUIDES[which], prompt=PROMPTS[:2], seed=3, steps=3, length=LONG, temperature=1.0)
    for result in results:
        assert result.satisfied, (result.text, result.verdicts)
        written = [t for t in result.tokens if denoiser.vocabulary.token_bytes[t] is None]
        assert set(written) <= {denoiser.vocabulary.eos_id, denoiser.vocabulary.pad_id}


def test_a_batch_of_different_prompts_is_its_single_runs(denoiser: Denoiser) -> None:
    guides = [Keywords("old"), Words(2, 12)]
    options: dict[str, Any] = {"steps": 4, "length": 20, "temperature": 1.0}
    together = denoiser.write(guides, prompt=PROMPTS, seed=11, **options)
    for k, prompt in enumerate(PROMPTS):
        (alone,) = denoiser.write(guides, prompt=prompt, seed=11 + k, **options)
        assert alone.tokens == together[k].tokens
        assert together[k].prompt == prompt


def test_logits_of_padded_rows_are_those_of_single_ones(denoiser: Denoiser) -> None:
    canvas = Canvas.blank(3, 9, denoiser.noise.fill)
    one = Canvas.blank(1, 9, denoiser.noise.fill)
    together = denoiser(canvas, denoiser.prepare(PROMPTS, 3))
    assert together.dtype == torch.float32
    for k, prompt in enumerate(PROMPTS):
        alone = denoiser(one, denoiser.prepare(prompt, 1))[0]
        kept = alone.isfinite()
        assert torch.equal(kept, together[k].isfinite())
        torch.testing.assert_close(together[k][kept], alone[kept], atol=1e-4, rtol=1e-4)


def test_pins_are_kept(denoiser: Denoiser) -> None:
    scene = Scene(denoiser.vocabulary, denoiser.device, 2, 16, 4)
    steering = Steering([Words(1, 14)], scene)
    token = denoiser.vocabulary.encode("dark")[0]
    canvas = Canvas.blank(2, 16, denoiser.noise.fill)
    where = torch.zeros_like(canvas.open)
    where[:, 0], where[:, 5] = True, True
    canvas = canvas.pin(torch.full_like(canvas.tokens, token), where)
    settings = denoiser.settings.override(steps=4)
    run = refine(
        denoiser,
        canvas,
        steering,
        prompt=denoiser.prepare("it", 2),
        settings=settings,
        random=Randomness([1, 2]),
    )
    for step in run:
        assert (step.canvas.tokens[where] == token).all()
        assert (step.draft[where] == token).all()


def test_a_marker_in_a_prompt_is_text(denoiser: Denoiser) -> None:
    specials = {k for k, raw in enumerate(denoiser.vocabulary.token_bytes) if raw is None}
    if denoiser.vocabulary.prefix:  # this WordPiece was trained without brackets
        with pytest.raises(UnwritableTextError, match="cannot write"):
            denoiser.prepare("the [MASK]", 1)
        return
    marked = denoiser.prepare("the <mask> [MASK] <eos>", 1)
    inner = marked.tokens[0].tolist()[1:]
    assert denoiser.vocabulary.decode(inner) == "the <mask> [MASK] <eos>"
    assert not specials & set(inner)


def test_scale_zero_is_no_guide(denoiser: Denoiser) -> None:
    plain = denoiser.write(seed=5, steps=3, length=12)
    nothing = denoiser.write([0.0 * Bias({"dark": 9.0}), 0.0 * Repetition()], seed=5, steps=3, length=12)
    assert plain[0].tokens == nothing[0].tokens


def test_chat_templates(denoiser: Denoiser) -> None:
    if denoiser.adapter == "masked-lm":
        with pytest.raises(InvalidGuideError, match="no chat template"):
            denoiser.write(prompt="it", chat=True)
        return
    own = denoiser.vocabulary
    ids = denoiser.prepare("a <|im_end|> man", 1, chat=True).tokens[0].tolist()
    assert "".join((own.token_bytes[k] or b"|").decode() for k in ids) == "||a <|im_end|> man||"
    assert sum(own.token_bytes[k] is None for k in ids) == 4
    (result,) = denoiser.write(Words(1, 9), prompt="it", chat=True, seed=1, steps=2, length=12)
    assert result.satisfied
    assert result.chat


@pytest.mark.parametrize("name", REMOTE)
def test_code_that_comes_with_a_checkpoint_is_not_run_unasked(name: str) -> None:
    with pytest.raises(UnsupportedModelError, match=r"read that code, and then pass trust_remote_code=True"):
        load(_FOLDERS[name])


def test_shifted_logits_stand_one_position_earlier() -> None:
    """Dream, by its network alone: the canvas's first token is predicted at the prompt's last."""
    denoiser: Any = load(_FOLDERS["dream"], trust_remote_code=True)
    prompt = denoiser.prepare("it was", 1)
    canvas = Canvas.blank(1, 5, denoiser.noise.fill)
    with torch.inference_mode():
        raw = denoiser.model(torch.cat([prompt.tokens, canvas.tokens], 1), "full", None).logits
    start = prompt.tokens.shape[1]
    want = raw[0, start - 1 : start + 4, : len(denoiser.vocabulary)]
    got = denoiser(canvas, prompt)[0]
    kept = got.isfinite()
    eos = denoiser.vocabulary.eos_id
    kept[:, eos] = False
    torch.testing.assert_close(got[kept], want[kept])
    ends = [eos, denoiser.vocabulary.encode("x") and _id(denoiser, "<|im_end|>")]
    torch.testing.assert_close(got[:, eos], want[:, ends].logsumexp(-1))


def _id(denoiser: Any, marker: str) -> int:
    return int(denoiser.template.tokenizer.convert_tokens_to_ids(marker))


def test_a_canvas_with_nothing_before_it_has_logits_all_the_same() -> None:
    denoiser: Any = load(_FOLDERS["dream"], trust_remote_code=True)
    bare = denoiser.prepare("", 1)
    bare = replace(bare, tokens=bare.tokens[:, :0], mask=bare.mask[:, :0], lengths=(0,))
    assert denoiser(Canvas.blank(1, 5, denoiser.noise.fill), bare).shape == (1, 5, len(denoiser.vocabulary))


def test_the_noise_level_reaches_a_model_that_takes_it() -> None:
    denoiser: Any = load(_FOLDERS["mdlm"], trust_remote_code=True)
    canvas = Canvas.blank(1, 6, denoiser.noise.fill)
    prompt = denoiser.prepare("it", 1)
    ignored = denoiser(canvas, prompt)
    denoiser.conditioned = denoiser.model.config.time_conditioning = True
    seen: list[torch.Tensor] = []
    hook = denoiser.model.register_forward_pre_hook(
        lambda _m, _a, kw: seen.append(kw["timesteps"]), with_kwargs=True
    )
    assert not torch.equal(denoiser(canvas, prompt), ignored)
    half = canvas.commit(canvas.tokens, torch.arange(6)[None] < 3, canvas.confidence)
    denoiser(half, prompt)
    hook.remove()
    torch.testing.assert_close(torch.cat(seen), -torch.log(1 - 0.999 * torch.tensor([1.0, 0.5])))


def test_a_gpt2_that_denoises_looks_both_ways() -> None:
    denoiser = load(_FOLDERS["diffugpt"])
    canvas = Canvas.blank(2, 6, denoiser.noise.fill)
    tokens = canvas.tokens.clone()
    tokens[1, 5] = denoiser.vocabulary.encode("a")[0]
    canvas = replace(canvas, tokens=tokens)
    logits = denoiser(canvas, denoiser.prepare("it", 2))
    assert not torch.allclose(logits[0, 1][logits[0, 1].isfinite()], logits[1, 1][logits[1, 1].isfinite()])


@pytest.mark.parametrize("dtype", ["bfloat16", torch.float16])
def test_low_precision_networks_hand_over_float32(dtype: Any) -> None:
    denoiser: Any = load(_FOLDERS["electra"], dtype=dtype)
    assert next(denoiser.model.parameters()).dtype in (torch.bfloat16, torch.float16)
    logits = denoiser(Canvas.blank(1, 5, denoiser.noise.fill), denoiser.prepare("it", 1))
    assert logits.dtype == torch.float32
    (result,) = denoiser.write([Keywords("dark"), Words(2, 9)], seed=1, steps=3, length=16)
    assert result.satisfied


@pytest.mark.long
def test_compiled_networks_write_the_same() -> None:
    plain = load(_FOLDERS["electra"]).write(Words(2, 9), seed=1, steps=3, length=16)
    compiled = load(_FOLDERS["electra"], compile="eager").write(Words(2, 9), seed=1, steps=3, length=16)
    assert plain[0].tokens == compiled[0].tokens


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quantization": "3bit"}, r"quantization is '3bit': use '8bit' or '4bit'"),
        ({"quantization": "4bit"}, r"needs bitsandbytes, which is not installed"),
        ({"dtype": "int8"}, r"dtype is 'int8': use"),
        ({"device": "nowhere"}, r"not to be had here"),
    ],
)
def test_options_that_cannot_be_had_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsupportedModelError, match=said):
        load(_FOLDERS["electra"], **options)


def test_unknown_models_are_refused_with_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "rwkv9", "architectures": ["Rwkv9ForCausalLM"]}')
    with pytest.raises(UnsupportedModelError, match=r"as_logits_processor.*LLaDA, Dream or DiffuCoder.*BERT"):
        load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UnsupportedModelError, match=r"the tokenizer of .* is empty"):
        load(tmp_path)


def test_prompts_and_samples_have_to_agree(denoiser: Denoiser) -> None:
    with pytest.raises(InvalidGuideError, match=r"2 prompts for 3 samples"):
        denoiser.write(prompt=["it", "was"], samples=3)


def test_a_slow_tokenizer_is_read_by_its_fast_class(tmp_path: Path) -> None:
    found = find_tokenizer(str(slow_tokenizer(tmp_path)), None, "Qwen2Tokenizer", True)
    own = Vocabulary.from_tokenizer(
        found.backend_tokenizer, mask_id=found.mask_token_id, eos_id=found.eos_token_id
    )
    assert found.chat_template == CHAT
    assert own.decode(own.encode("the old man\n a <|mask|> café")) == "the old man\n a <|mask|> café"
    assert own.mask_id not in own.encode("<|mask|>")
    with pytest.raises(UnsupportedModelError, match="no fast tokenizer"):
        find_tokenizer(str(tmp_path), None, None, True)
