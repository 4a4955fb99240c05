"""The denoiser that ships inside the package, and any folder that `redraft train` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
import torch
from torch import Tensor

from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import InvalidGuideError, UnsupportedModelError
from redraft.denoiser.models.encoder import Encoder, read_encoder
from redraft.denoiser.models.layout import positions
from redraft.denoiser.models.sequence import OneSequence
from redraft.denoiser.particles import Drafts
from redraft.denoiser.settings import Settings
from redraft.denoiser.step import Prompt
from redraft.denoiser.vocabulary import Vocabulary

FORMAT = 1
FILES = ("redraft.json", "config.json", "model.safetensors", "tokenizer.json")
HOME = Path(__file__).resolve().parent.parent / "embedded"


class Embedded(OneSequence):
    """A small BERT-shaped diffusion model: `[genre] [tone] prompt canvas`, EOS then padding to the end.

    `attend_room`: whether positions see the open ones behind all text that is committed, and so how wide the canvas
    is. If not, a text ends where it would end on any canvas, and one that has no holes is read from left to right: no
    token sees what came after it. They see all where the canvas is `fitted` to the text.
    `conditions` has the kinds "genre" and "tone"; a kind that is not given is the tag "none".
    """

    pads = True

    def __init__(
        self, folder: Path, model: Encoder, tokenizer: tokenizers.Tokenizer, card: Mapping[str, Any]
    ) -> None:
        special = card["special"]
        vocabulary = Vocabulary.from_tokenizer(
            tokenizer, mask_id=special["mask"], eos_id=special["eos"], pad_id=special["pad"], whole_first=True
        )
        positions = int(model.max_positions)
        super().__init__(model, vocabulary, name=folder.name, max_positions=positions)
        self.folder = folder
        self.max_length = min(int(card["canvas"]), positions - 2)
        self.length = int(card.get("length", 48))
        self.settings = Settings.from_dict(card["decoding"])
        self.drafts = _drafts(folder, card)
        self.attend_room = bool(card.get("attend_room", True))
        self._tags: dict[str, dict[str, int]] = {"genre": dict(card["genres"]), "tone": dict(card["tones"])}
        self.conditions = {kind: tuple(values) for kind, values in self._tags.items()}

    def lead(self, text: str, condition: Mapping[str, str], *, chat: bool = False) -> list[int]:
        tags = [self._tags[kind][condition.get(kind, "none")] for kind in ("genre", "tone")]
        return [*tags, *super().lead(text, condition, chat=chat)]

    @torch.inference_mode()
    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        """As `OneSequence`, with the head computed for the canvas alone."""
        tokens = torch.cat([prompt.tokens, canvas.tokens], dim=1)
        place = None
        if prompt.padded:
            place = positions(torch.cat([prompt.mask, torch.ones_like(canvas.open)], dim=1))
        logits: Tensor = self.model(tokens, prompt.tokens.shape[1], self.seen(canvas, prompt), place)
        return logits.float().index_fill_(-1, self._never, -torch.inf)

    def seen(self, canvas: Canvas, prompt: Prompt) -> Tensor | None:
        """bool [B, N, N]: what a position sees of prompt and canvas, beside itself; None: all of it."""
        if not (self.attend_room or prompt.fitted):
            return self._in_order(canvas, prompt)
        if not prompt.padded:
            return None
        whole = torch.cat([prompt.mask, torch.ones_like(canvas.open)], dim=1)
        return whole[:, None, :].expand(-1, whole.shape[1], -1)

    def _in_order(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        """bool [B, N, N]: what is written; where that has no holes, what stands further left of it, as in training's
        first stream (`denoiser/training/streams.py`). The tags are read together."""
        written = self._written(canvas)
        known = torch.cat([prompt.mask, written], dim=1)
        tags = prompt.mask & (prompt.mask.cumsum(-1) <= len(self._tags))
        tags = torch.nn.functional.pad(tags, (0, written.shape[1]))
        holes = (written & canvas.open).any(-1)
        before = torch.ones(known.shape[1], known.shape[1], dtype=torch.bool, device=known.device).tril()
        before = before | (tags[:, :, None] & tags[:, None, :]) | holes[:, None, None]
        return known[:, None, :] & before

    def _written(self, canvas: Canvas) -> Tensor:
        """bool [B, L]: up to the last token committed. Padding does not count: that a text is over by then is room."""
        held = ~canvas.open & (canvas.tokens != self.vocabulary.pad_id)
        return held.flip(-1).cummax(-1).values.flip(-1)


def _drafts(folder: Path, card: Mapping[str, Any]) -> int:
    try:
        return Drafts(card.get("drafts", 1)).count
    except InvalidGuideError as error:
        raise UnsupportedModelError(f"{folder / 'redraft.json'}: drafts: {error}") from error


def load_folder(
    folder: Path, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> Embedded:
    """Load a folder that holds config.json, model.safetensors, tokenizer.json and redraft.json."""
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise UnsupportedModelError(
            f"{folder} lacks {', '.join(missing)}: install the package again, or make the folder with `redraft train`"
        )
    card = json.loads((folder / "redraft.json").read_text(encoding="utf-8"))
    if card.get("format") != FORMAT:
        raise UnsupportedModelError(
            f"{folder / 'redraft.json'} has format {card.get('format')!r} and this Redraft reads {FORMAT}: "
            "make the folder again with `redraft train`"
        )
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = read_encoder(config, folder / "model.safetensors", dtype)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return Embedded(folder, model.to(device), tokenizer, card)
