"""A vocabulary knows the exact bytes of every token; decoding is concatenation, nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from redraft.denoiser.errors import UnsupportedModelError, UnwritableTextError

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

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, specials off; raises `UnwritableTextError` where decoding would not give it back."""
        lone = next((k for k, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
        if lone is not None:
            raise UnwritableTextError(
                f"character {lone} of the text is half a surrogate pair ({text[lone]!r}), which no text holds: drop it"
            )
        ids = list(self._encoder(text))
        back = self.decode(ids)
        if back != text or any(self.token_bytes[token] is None for token in ids):
            at = next((k for k, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), len(back))
            near = text[at : at + 1] or text[-1:]
            raise UnwritableTextError(
                f"the vocabulary cannot write {near!r} (character {at} of {text[:40]!r}): "
                "leave it out, or use a model whose tokenizer covers it"
            )
        return ids

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of a token sequence: concatenated bytes without the prefix; special tokens are no text."""
        raw = b"".join(self.token_bytes[token] or b"" for token in tokens)
        return raw.removeprefix(self.prefix).decode("utf-8", errors="replace")

    def covering(self, tokens: Sequence[int], text: str, start: int, end: int) -> list[int]:
        """Positions of the tokens that write characters [start, end) of their decoded `text`."""
        first, last = len(text[:start].encode()), len(text[:end].encode())
        ends = self.byte_ends(tokens)
        return [k for k, stop in enumerate(ends) if stop > first and (ends[k - 1] if k else 0) < last]

    def byte_ends(self, tokens: Sequence[int]) -> list[int]:
        """End offset in the decoded text's bytes of each token (specials are empty)."""
        ends, at = [], -len(self.prefix)
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
    ) -> Vocabulary:
        """Read the bytes of every token off a `tokenizers.Tokenizer` (byte-level BPE, SentencePiece, WordPiece).

        `size` is the model's vocabulary where that is larger. Raises `UnsupportedModelError` for a decoder
        whose text is not the concatenation of its tokens.
        """
        spec: dict[str, Any] = json.loads(tokenizer.to_str())
        to_bytes, prefix = _byte_reader(spec)
        special = {entry["id"] for entry in spec.get("added_tokens", []) if entry.get("special")}
        special |= {token for token in (mask_id, eos_id, pad_id) if token is not None}
        plain = {entry["id"] for entry in spec.get("added_tokens", []) if not entry.get("special")} - special
        table: list[bytes | None] = [None] * max(size or 0, tokenizer.get_vocab_size(with_added_tokens=True))
        for piece, token in tokenizer.get_vocab(with_added_tokens=True).items():
            if token not in special:
                table[token] = (piece.encode() if token in plain else to_bytes(piece)) or None
        own = type(tokenizer).from_str(tokenizer.to_str())  # a copy: the caller's tokenizer stays as it is
        own.encode_special_tokens = True
        own.no_truncation()
        own.no_padding()

        def encoder(text: str) -> list[int]:
            ids: list[int] = own.encode(text, add_special_tokens=False).ids
            return ids

        ids = {"mask_id": mask_id, "eos_id": eos_id, "pad_id": pad_id}
        return cls(table, encoder, **ids, prefix=prefix, whole_first=whole_first)


def _byte_reader(spec: dict[str, Any]) -> tuple[Callable[[str], bytes | None], bytes]:
    decoder = spec.get("decoder") or {}
    parts = decoder.get("decoders", [decoder])
    kinds = {part.get("type") for part in parts}
    if "ByteLevel" in kinds:
        table = _byte_level_table()
        return (lambda piece: _byte_level(piece, table)), b""
    if "ByteFallback" in kinds or "Metaspace" in kinds:
        return _sentence_piece, b" " if _adds_prefix_space(spec) else b""
    if "WordPiece" in kinds or spec.get("model", {}).get("type") == "WordPiece":
        mark = spec.get("model", {}).get("continuing_subword_prefix") or "##"

        def word_piece(piece: str) -> bytes | None:
            return piece.removeprefix(mark).encode() if piece.startswith(mark) else b" " + piece.encode()

        return word_piece, b" "
    raise UnsupportedModelError(
        f"the tokenizer's decoder {decoder.get('type')!r} does not say the bytes of a token: "
        "use a byte-level BPE, SentencePiece or WordPiece tokenizer"
    )


def _byte_level_table() -> dict[str, int]:
    """The printable stand-ins of the 256 bytes in byte-level BPE vocabularies (GPT-2's convention)."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in keep]
    return {chr(byte): byte for byte in keep} | {chr(0x100 + k): byte for k, byte in enumerate(rest)}


def _byte_level(piece: str, table: dict[str, int]) -> bytes | None:
    if any(char not in table for char in piece):
        return None
    return bytes(table[char] for char in piece)


def _sentence_piece(piece: str) -> bytes | None:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace("\u2581", " ").encode()


def _adds_prefix_space(spec: dict[str, Any]) -> bool:
    normalizer = spec.get("normalizer") or {}
    parts = normalizer.get("normalizers", [normalizer])
    if any(part.get("type") == "Prepend" for part in parts):
        return True
    pre = spec.get("pre_tokenizer") or {}
    pres = pre.get("pretokenizers", [pre])
    return any(p.get("type") == "Metaspace" and p.get("prepend_scheme", "always") != "never" for p in pres)
