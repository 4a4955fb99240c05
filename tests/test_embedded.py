"""The embedded denoiser: the same numbers as transformers' own BERT, rows apart, and what it can be asked."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from transformers import BertForMaskedLM

from redraft.denoiser import (
    Canvas,
    Denoiser,
    Guide,
    InvalidGuideError,
    Prompt,
    Scene,
    Step,
    UnsupportedModelError,
    load,
)
from redraft.denoiser.models.embedded import HOME, Embedded
from redraft.denoiser.training.preference import log_likelihood
from redraft.denoiser.training.rows import Row
from redraft.denoiser.training.tokenizer import TextCodec
from redraft.guidance import Infill, Keywords, Sentences, Words


@pytest.fixture(scope="module")
def denoiser() -> Denoiser:
    return load()


def that_sees(denoiser: Denoiser, room: bool) -> Embedded:
    other = copy.copy(cast(Embedded, denoiser))
    other.attend_room = room
    return other


@pytest.mark.parametrize("room", [True, False])
def test_the_encoder_computes_what_transformers_does(denoiser: Denoiser, room: bool) -> None:
    denoiser = that_sees(denoiser, room)
    theirs = BertForMaskedLM.from_pretrained(HOME, dtype=torch.float32).eval()
    ids = denoiser.vocabulary.encode("The old man went home.")
    canvas = Canvas.blank(2, 24, denoiser.noise.fill)
    where = torch.zeros_like(canvas.open)
    where[:, 3 : 3 + len(ids)] = True
    tokens = canvas.tokens.clone()
    tokens[:, 3 : 3 + len(ids)] = torch.tensor(ids)
    canvas = canvas.pin(tokens, where)
    prompt = denoiser.prepare("Once", 2, {"genre": "tale", "tone": "positive"})
    ours = denoiser(canvas, prompt)
    lead = prompt.tokens
    width = lead.shape[1] + 24
    unseen = torch.zeros(2, 1, width, width)
    if not room:
        unseen[..., lead.shape[1] + 3 + len(ids) :] = -1e9  # behind the pinned text
        unseen[..., torch.arange(width), torch.arange(width)] = 0.0
    with torch.inference_mode():
        read = theirs(torch.cat([lead, canvas.tokens], 1), attention_mask=unseen)
        logits = read.logits[:, lead.shape[1] :]
    kept = ours.isfinite()
    assert (~kept).any(-1).all()
    torch.testing.assert_close(ours[kept], logits[kept], atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("prompt", ["", "It was late."])
def test_without_room_in_sight_a_canvas_of_any_width_says_the_same(denoiser: Denoiser, prompt: str) -> None:
    ids = denoiser.vocabulary.encode("The old man went home, and the dog")

    def read(width: int, room: bool, over: int | None = None) -> torch.Tensor:
        canvas = Canvas.blank(1, width, denoiser.noise.fill)
        tokens, where = canvas.tokens.clone(), torch.zeros_like(canvas.open)
        tokens[0, over or width :], where[0, over or width :] = denoiser.vocabulary.pad_id or 0, True
        for k in (0, 1, 2, 5, 7):  # holes between them are seen
            tokens[0, k], where[0, k] = ids[k], True
        canvas = canvas.commit(tokens, where, torch.ones_like(canvas.confidence))
        return that_sees(denoiser, room)(canvas, denoiser.prepare(prompt, 1))[:, :20]

    narrow, wide = read(20, room=False), read(60, room=False)
    torch.testing.assert_close(narrow, wide, atol=2e-4, rtol=1e-4)
    bounded = read(60, room=False, over=30)  # padding that a run was sure of says where no text will be: room
    torch.testing.assert_close(narrow, bounded, atol=2e-4, rtol=1e-4)
    assert not torch.allclose(read(20, room=True), read(60, room=True), atol=0.1)
    assert not torch.allclose(narrow, read(20, room=True), atol=0.1)


@pytest.mark.parametrize("prompt", ["", "The old man"])
def test_from_left_to_right_a_token_has_the_chance_it_was_trained_for(
    denoiser: Denoiser, prompt: str
) -> None:
    """The likelihood of training and preference is a run's own: no token sees what came after it."""
    codec = TextCodec.load(HOME / "tokenizer.json")
    model = BertForMaskedLM.from_pretrained(HOME, dtype=torch.float32).eval()
    ids = [*codec.encode("The old man went home, and the dog ran."), codec.eos]
    lead = len(codec.encode(prompt))
    row = Row(codec.genres["tale"], codec.tones["none"], tuple(ids[:-1]), real=False)
    with torch.inference_mode():
        trained, count = log_likelihood(model, [row], codec)
    said = 0.0
    for k, token in enumerate(ids):
        front, begun = (prompt, lead) if k >= lead else ("", 0)
        canvas = Canvas.blank(1, k - begun + 12, denoiser.noise.fill)
        tokens, where = canvas.tokens.clone(), torch.zeros_like(canvas.open)
        tokens[0, : k - begun], where[0, : k - begun] = torch.tensor(ids[begun:k], dtype=torch.int64), True
        canvas = canvas.commit(tokens, where, torch.ones_like(canvas.confidence))
        logits = denoiser(canvas, denoiser.prepare(front, 1, {"genre": "tale"}))
        said += float(logits[0, k - begun].log_softmax(-1)[token])
    assert int(count) == len(ids)
    assert said == pytest.approx(float(trained), abs=0.02)


@pytest.mark.parametrize(
    ("guides", "fitted"),
    [
        ([], False),
        ([Words(5, 12)], False),
        ([Infill("The old man [[1]].")], True),
        ([Words(3, 12), Infill("The old man [[1]].") & Keywords("home")], True),
    ],
)
def test_the_room_is_seen_where_the_canvas_is_as_wide_as_the_text(
    denoiser: Denoiser, monkeypatch: pytest.MonkeyPatch, guides: list[Guide], fitted: bool
) -> None:
    """An infill's canvas tells how much is missing: with it 26 of 60 words come back, without it 15."""
    seen: list[bool] = []
    call = Embedded.__call__

    def spy(self: Embedded, canvas: Canvas, prompt: Prompt) -> torch.Tensor:
        seen.append(prompt.fitted)
        return call(self, canvas, prompt)

    monkeypatch.setattr(Embedded, "__call__", spy)
    denoiser.write(guides, seed=1, steps=2)
    assert set(seen) == {fitted}
    canvas = Canvas.blank(1, 12, denoiser.noise.fill)
    plain = denoiser.prepare("", 1)
    other = replace(plain, fitted=True)
    with_room, without = (that_sees(denoiser, room)(canvas, plain) for room in (True, False))
    torch.testing.assert_close(that_sees(denoiser, False)(canvas, other), with_room)
    assert not torch.allclose(with_room, without, atol=0.1)


def test_prompts_that_differ_by_row_are_single_runs(denoiser: Denoiser) -> None:
    prompts = ["", "It was dark.", "The old man went home, and the dog"]
    together = denoiser.write(Words(5, 12), prompt=prompts, seed=3, steps=6, condition={"genre": "tale"})
    for k, prompt in enumerate(prompts):
        (alone,) = denoiser.write(
            Words(5, 12),
            prompt=prompt,
            seed=3 + k,
            steps=6,
            condition={"genre": "tale"},
            length=together[k].length,
        )
        assert alone.tokens == together[k].tokens
        assert together[k].prompt == prompt
    with pytest.raises(InvalidGuideError, match="has no chat template"):
        denoiser.write(prompt="It", chat=True)
    with pytest.raises(InvalidGuideError, match="use text, or a list"):
        denoiser.write(prompt=7)  # type: ignore[arg-type]


def test_eight_samples_are_eight_single_runs(denoiser: Denoiser) -> None:
    guides = [Keywords("storm"), Words(5, 12)]
    together = denoiser.write(guides, samples=8, seed=3, steps=8)
    for k, result in enumerate(together):
        (alone,) = denoiser.write(guides, seed=3 + k, steps=8)
        assert alone.tokens == result.tokens
        assert result.satisfied


@pytest.mark.parametrize("text", ["<mask>", "<eos> <pad> <genre:tale>", "naïve — 😀", "\x00\n"])
def test_any_text_can_be_asked_for(denoiser: Denoiser, text: str) -> None:
    (result,) = denoiser.write(Infill(f"{text} ___"), seed=1, steps=6, prompt=text)
    assert result.satisfied
    assert result.text.startswith(text)


def test_a_condition_changes_the_text(denoiser: Denoiser) -> None:
    texts = {
        denoiser.write(seed=5, steps=6, condition={"genre": genre})[0].text
        for genre in ("tale", "casual", "none")
    }
    assert len(texts) == 3
    with pytest.raises(InvalidGuideError, match="genre is 'epic': use one of story"):
        denoiser.write(condition={"genre": "epic"})
    with pytest.raises(InvalidGuideError, match="has no condition 'mood'"):
        denoiser.write(condition={"mood": "sad"})


def test_longest_prompt(denoiser: Denoiser) -> None:
    with pytest.raises(InvalidGuideError, match="leaves embedded no canvas"):
        denoiser.write(prompt="storm " * 400)


def test_canvases_up_to_the_limit(denoiser: Denoiser) -> None:
    (result,) = denoiser.write(Sentences(6, 12), seed=1, steps=4, length=128)
    assert result.satisfied
    with pytest.raises(InvalidGuideError, match="1 to 128 tokens"):
        denoiser.write(length=129)


def test_other_models_are_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "redraft.json").write_text("{}")
    with pytest.raises(UnsupportedModelError, match=r"lacks config.json, model.safetensors, tokenizer.json"):
        load(tmp_path)
    with pytest.raises(UnsupportedModelError, match="neither 'embedded'"):
        load(tmp_path / "nothing")
    with pytest.raises(UnsupportedModelError, match="device 'warp'"):
        load(device="warp")


@pytest.mark.parametrize("blank", [" sat", " sat down"])
def test_infill_anchors_its_text_and_not_the_blank(denoiser: Denoiser, blank: str) -> None:
    """The token " sat" covers the space of the text before it, but what it says is the blank's."""
    vocabulary = denoiser.vocabulary
    assert vocabulary.eos_id is not None
    before, inside, after = (vocabulary.encode(part) for part in ("The old man", blank, " by the fire."))
    draft = torch.tensor([[*before, *inside, *after, vocabulary.eos_id]])
    guide = Infill(f"The old man [[{len(blank.split())}]] by the fire.")
    bound = guide.bind(Scene(vocabulary, denoiser.device, 1, draft.shape[1], 8))
    step = SimpleNamespace(index=0, canvas=Canvas.blank(1, draft.shape[1], denoiser.noise.fill))
    mark = bound.anchors(cast(Step, step), draft, torch.ones(draft.shape))
    assert mark is not None
    assert mark[0].tolist() == [True] * len(before) + [False] * len(inside) + [True] * len(after) + [False]


@pytest.mark.parametrize(("blank", "words"), [("[[1]]", "sat"), ("[[3]]", "sat down there")])
def test_infill_makes_room_for_its_words_and_little_more(denoiser: Denoiser, blank: str, words: str) -> None:
    around = "The old man {} by the fire. It was cold, and he was alone."
    needed = len(denoiser.vocabulary.encode(around.format(words)))
    room = Infill(around.format(blank)).room()
    assert room is not None
    assert needed <= room <= needed + 2
