"""A vocabulary knows the exact bytes of every token; decoding is concatenation, nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from redraft.denoiser.errors import UnsupportedModelError, UnwritableTextError
from redraft.denoiser.token_bytes import byte_reader

if TYPE_CHECKING:
    import tokenizers


class Vocabulary:
    """Tokens as byte strings: `text = concat(bytes(token)) - prefix`, in UTF-8.

    `token_bytes[v]` is the exact byte string of token v, None for a special token (mask, EOS, padding,
    tags), which never stands for text. `prefix` is what a tokenizer adds before every text (a space, for
    those that mark word starts) and is taken off again on decoding. `encoder` maps a text to token ids
    without special tokens; a literal mask marker in a text is text. `whole_first` keeps tokens that are
    only a part of a character for texts that cannot be written without them (for a model that never
    learnt to use them, this spares every language the states that watch over them).
    """

    def __init__(
        self,
        token_bytes: Sequence[bytes | None],
        encoder: Callable[[str], list[int]],
        *,
        mask_id: int | None = None,
        eos_id: int | None = None,
        pad_id: int | None = None,
        prefix: bytes = b"",
        whole_first: bool = False,
    ) -> None:
        self.token_bytes = tuple(token_bytes)
        self._encoder = encoder
        self.mask_id, self.eos_id, self.pad_id = mask_id, eos_id, pad_id
        self.prefix = prefix
        self.whole_first = whole_first
        for name, token in (("mask", mask_id), ("EOS", eos_id), ("padding", pad_id)):
            if token is not None and not 0 <= token < len(self.token_bytes):
                raise UnsupportedModelError(
                    f"the {name} id {token} lies outside the vocabulary of {len(self.token_bytes)} tokens"
                )

    def __len__(self) -> int:
        return len(self.token_bytes)

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that close a text: EOS, and padding where that is another token; none without an EOS."""
        if self.eos_id is None:
            return ()
        return (self.eos_id,) if self.pad_id in (None, self.eos_id) else (self.eos_id, self.pad_id)

    @cached_property
    def is_text(self) -> tuple[bool, ...]:
        """Which tokens write text; specials do not."""
        return tuple(raw is not None for raw in self.token_bytes)

    @cached_property
    def has_letter(self) -> tuple[bool, ...]:
        """Which tokens hold a whole letter."""
        spelled = ((raw or b"").decode("utf-8", "ignore") for raw in self.token_bytes)
        return tuple(any(map(str.isalpha, text)) for text in spelled)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, key {self.key[:12]})"

    @cached_property
    def key(self) -> str:
        """Hash of everything that decides what token sequences mean; equal keys, equal languages."""
        digest = hashlib.sha256(
            repr((self.prefix, self.mask_id, self.eos_id, self.pad_id, self.whole_first)).encode()
        )
        for token in self.token_bytes:
            digest.update(b"\xff" if token is None else len(token).to_bytes(4, "big") + token)
        return digest.hexdigest()

    def encode(self, text: str, *, exact: bool = True) -> list[int]:
        """Token ids of `text`, specials off; raises `UnwritableTextError` where decoding would not give it back.

        With `exact` off (for a prompt, which is read and never written) the tokenizer may fold case or move
        white space; a character that it knows no token for is an error all the same.
        """
        lone = next((k for k, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
        if lone is not None:
            raise UnwritableTextError(
                f"character {lone} of the text is half a surrogate pair ({text[lone]!r}), which no text holds: drop it"
            )
        ids = list(self._encoder(text))
        back = self.decode(ids)
        unknown = any(self.token_bytes[token] is None for token in ids)
        if unknown or (exact and back != text):
            at = next((k for k, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), len(back))
            near = text[at : at + 1] or text[-1:]
            raise UnwritableTextError(
                f"the vocabulary cannot write {near!r} (character {at} of {text[:40]!r}): "
                "leave it out, or use a model whose tokenizer covers it"
            )
        return ids

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of a token sequence: concatenated bytes without the prefix; special tokens are no text."""
        raw = _joined(self.token_bytes, tokens)
        return raw.removeprefix(self.prefix).decode("utf-8", errors="replace")

    def covering(self, tokens: Sequence[int], text: str, start: int, end: int) -> list[int]:
        """Positions of the tokens that write characters [start, end) of their decoded `text`."""
        first, last = len(text[:start].encode()), len(text[:end].encode())
        ends = self.byte_ends(tokens)
        return [k for k, stop in enumerate(ends) if stop > first and (ends[k - 1] if k else 0) < last]

    def byte_ends(self, tokens: Sequence[int]) -> list[int]:
        """End offset in the decoded text's bytes of each token (specials are empty)."""
        begun = _joined(self.token_bytes, tokens).startswith(self.prefix)
        ends, at = [], -len(self.prefix) if begun else 0
        for token in tokens:
            at += len(self.token_bytes[token] or b"")
            ends.append(max(at, 0))
        return ends

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: tokenizers.Tokenizer,
        *,
        mask_id: int | None = None,
        eos_id: int | None = None,
        pad_id: int | None = None,
        size: int | None = None,
        whole_first: bool = False,
        written: Collection[str] = (),
    ) -> Vocabulary:
        """Read the bytes of every token off a `tokenizers.Tokenizer` (byte-level BPE, SentencePiece, WordPiece).

        Special tokens, and added tokens that look like markers (`<think>`, `[unused1]`), are never written,
        and their spelling in a text is text; `written` names markers that are tokens of the text after all.
        `size` is the model's vocabulary where that is larger. Raises `UnsupportedModelError` for a decoder
        whose text is not the concatenation of its tokens.
        """
        spec: dict[str, Any] = json.loads(tokenizer.to_str())
        reader = byte_reader(spec)
        for entry in spec.get("added_tokens", []):
            entry["special"] = entry["content"] not in written and (
                entry["special"] or _MARKER.fullmatch(entry["content"]) is not None
            )
        special = {entry["id"] for entry in spec.get("added_tokens", []) if entry["special"]}
        special |= {token for token in (mask_id, eos_id, pad_id) if token is not None}
        plain = {entry["id"] for entry in spec.get("added_tokens", [])} - special
        table: list[bytes | None] = [None] * max(size or 0, tokenizer.get_vocab_size(with_added_tokens=True))
        for piece, token in tokenizer.get_vocab(with_added_tokens=True).items():
            if token not in special:
                table[token] = (piece.encode() if token in plain else reader.read(piece)) or None
        own = type(tokenizer).from_str(json.dumps(spec))  # a copy: the caller's tokenizer stays as it is
        own.encode_special_tokens = True
        own.no_truncation()
        own.no_padding()
        space = reader.prefix.decode()

        def encoder(text: str) -> list[int]:
            ids: list[int] = own.encode(text, add_special_tokens=False).ids
            if space and text.startswith(space) and _joined(table, ids) == text.encode():
                ids = own.encode(space + text, add_special_tokens=False).ids  # it was taken for the prefix
            return ids

        ids = {"mask_id": mask_id, "eos_id": eos_id, "pad_id": pad_id}
        return cls(table, encoder, **ids, prefix=reader.prefix, whole_first=whole_first)


_MARKER = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]|\|{2,3}\S+\|{2,3}")


def _joined(table: Sequence[bytes | None], ids: Iterable[int]) -> bytes:
    return b"".join(table[token] or b"" for token in ids)
