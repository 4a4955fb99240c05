"""The tokens that verse is written with: whole words that are in the dictionary, marks, line feeds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from redraft.denoiser import Vocabulary
from redraft.denoiser.errors import UnwritableTextError
from redraft.guidance.pronunciation import common

PAUSES = frozenset({",", ";", ":"})
STOPS = frozenset({".", "!", "?"})
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Lexicon:
    """How a vocabulary spells words: at the text's start, at the start of a later line, and behind a word
    (with the space before it); each maps tokens to the word. Line feed and marks are single tokens."""

    first: dict[Tokens, str]
    later: dict[Tokens, str]
    inside: dict[Tokens, str]
    feed: int
    pauses: frozenset[int]
    stops: frozenset[int]


@lru_cache(maxsize=16)
def lexicon(vocabulary: Vocabulary, also: tuple[str, ...] = ()) -> Lexicon:
    """Every common word that is a single token, and the words of `also` as the tokenizer spells them.

    A line's first word may have a capital. Raises `UnwritableTextError` where the vocabulary has no line feed
    or cannot spell one of `also`.
    """
    single = {raw: token for token, raw in enumerate(vocabulary.token_bytes) if raw}
    feed = vocabulary.encode("\n")[-1]
    if vocabulary.token_bytes[feed] != b"\n":
        raise UnwritableTextError("the vocabulary has no token for a line feed: use another model for verse")
    first: dict[Tokens, str] = {}
    later: dict[Tokens, str] = {}
    inside: dict[Tokens, str] = {}
    for word in common():
        for form in (word, _capital(word)):
            own = ((first, vocabulary.prefix), (later, b""), *(((inside, b" "),) if form == word else ()))
            for table, lead in own:
                token = single.get(lead + form.encode())
                if token is not None:
                    table.setdefault((token,), word)
    for word in also:
        forms = (word, _capital(word))
        before = [len(table) for table in (first, later, inside)]
        for form in forms:
            _put(first, vocabulary, form, form)
            _put(later, vocabulary, form, form, bare=True)
        _put(inside, vocabulary, " " + word, word)
        if len(inside) == before[2] and (*vocabulary.encode(" " + word),) not in inside:
            raise UnwritableTextError(
                f"the vocabulary cannot spell {word!r} behind a space: use another word"
            )
    pauses = frozenset(single[mark.encode()] for mark in PAUSES if mark.encode() in single)
    stops = frozenset(single[mark.encode()] for mark in STOPS if mark.encode() in single)
    return Lexicon(first, later, inside, feed, pauses, stops)


def _put(
    table: dict[Tokens, str], vocabulary: Vocabulary, text: str, word: str, *, bare: bool = False
) -> None:
    tokens = tuple(vocabulary.encode(text))
    raw = b"".join(vocabulary.token_bytes[token] or b"" for token in tokens)
    lead = b"" if bare or text.startswith(" ") else vocabulary.prefix
    if raw == lead + text.encode():
        table[tokens] = word.strip()


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
