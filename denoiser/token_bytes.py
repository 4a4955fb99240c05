"""How the three kinds of tokenizer write the bytes of a token, read off a `tokenizers` file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redraft.denoiser.errors import UnsupportedModelError

CLOSING = ".,;:!?)]}%"
"""Marks that stand right behind a word: WordPiece keeps no white space, so a rule has to say where there is none."""
_RESERVED = re.compile(r"\[unused\d+\]")


@dataclass(frozen=True)
class ByteReader:
    """`read` gives the bytes of a token's spelling, None for what is never text; `prefix`: see `Vocabulary`."""

    read: Callable[[str], bytes | None]
    prefix: bytes = b""


def byte_reader(spec: Mapping[str, Any]) -> ByteReader:
    """The reader for a tokenizer's JSON; raises `UnsupportedModelError` where its tokens have no bytes."""
    decoder = spec.get("decoder") or {}
    kinds = {part.get("type") for part in _parts(decoder, "decoders")}
    model = spec.get("model") or {}
    prefix = b" " if _adds_space(spec) else b""
    if "ByteLevel" in kinds:
        table = byte_level_table()
        return ByteReader(lambda piece: _byte_level(piece, table), prefix)
    if "ByteFallback" in kinds or "Metaspace" in kinds:
        fallback = "ByteFallback" in kinds or bool(model.get("byte_fallback"))
        return ByteReader(lambda piece: _sentence_piece(piece, fallback), prefix)
    if "WordPiece" in kinds or model.get("type") == "WordPiece":
        mark = model.get("continuing_subword_prefix") or "##"
        return ByteReader(lambda piece: _word_piece(piece, mark), b" ")
    raise UnsupportedModelError(
        f"the tokenizer's decoder {decoder.get('type')!r} does not say the bytes of a token: "
        "use a byte-level BPE, SentencePiece or WordPiece tokenizer"
    )


def byte_level_table() -> dict[str, int]:
    """The printable stand-ins of the 256 bytes in byte-level BPE vocabularies (GPT-2's convention)."""
    keep = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in keep]
    return {chr(byte): byte for byte in keep} | {chr(0x100 + k): byte for k, byte in enumerate(rest)}


def _byte_level(piece: str, table: Mapping[str, int]) -> bytes | None:
    if any(char not in table for char in piece):
        return None
    return bytes(table[char] for char in piece)


def _sentence_piece(piece: str, fallback: bool) -> bytes | None:
    if fallback and len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace("\u2581", " ").encode()


def _word_piece(piece: str, mark: str) -> bytes | None:
    if _RESERVED.fullmatch(piece):
        return None
    if piece.startswith(mark) and len(piece) > len(mark):
        return piece.removeprefix(mark).encode()
    return piece.encode() if piece in CLOSING else b" " + piece.encode()


def _parts(node: Mapping[str, Any] | None, name: str) -> Iterable[Mapping[str, Any]]:
    node = node or {}
    parts: Iterable[Mapping[str, Any]] = node.get(name, [node])
    return parts


def _adds_space(spec: Mapping[str, Any]) -> bool:
    """Whether the tokenizer puts a space before a text that begins with none."""
    if any(part.get("type") == "Prepend" for part in _parts(spec.get("normalizer"), "normalizers")):
        return True
    for part in _parts(spec.get("pre_tokenizer"), "pretokenizers"):
        kind = part.get("type")
        if kind == "Metaspace" and part.get("prepend_scheme", "always") != "never":
            return True
        if kind == "ByteLevel" and part.get("add_prefix_space"):
            return True
    return False
