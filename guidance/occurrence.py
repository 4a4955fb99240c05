"""Phrases in texts: where they occur (plain string code), and the language of texts that hold one.

A phrase occurs at a place when its characters stand there, in any case unless `exact_case`, and, if
`whole`, no letter, digit, underscore or combining mark touches an end of it that is itself one of these (as in
"\\bphrase\\b", but for the marks). Characters are compared as they are coded: a letter with a mark composed is not
that letter and the mark.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable

import numpy as np

from redraft.denoiser import Automaton, InvalidGuideError, Span
from redraft.denoiser.cache import cached

WORD_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


def phrase(value: object, what: str) -> str:
    """`value` as a phrase: a string with something to see in it, without spaces around it."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidGuideError(f"{what} is {value!r}: give a word or phrase that is not empty")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidGuideError(f"{what} is {value!r}: half a surrogate pair is in no text; drop it")
    return value.strip()


def shows(text: str) -> bool:
    """Whether something is seen of a text by itself: not of white space, marks, control and format characters."""
    return not all(
        char.isspace() or is_mark(char) or unicodedata.category(char) in ("Cc", "Cf") for char in text
    )


def is_word(char: str) -> bool:
    """A letter, digit or underscore, as `\\w` has it."""
    return re.match(r"\w", char) is not None


def is_mark(char: str) -> bool:
    """A mark that combines with the character before it: an accent, a vowel sign, a variation selector."""
    return unicodedata.category(char)[0] == "M"


def ends_word(text: str) -> bool:
    """Whether a text's last character is a letter, digit or underscore, with the marks that it bears."""
    last = next((char for char in reversed(text) if not is_mark(char)), "")
    return bool(last) and is_word(last)


def cases(char: str) -> tuple[str, ...]:
    """The forms of a character that count as it when case is ignored: itself, lower, upper."""
    return tuple(dict.fromkeys(form for form in (char, char.lower(), char.upper()) if len(form) == 1))


def same(piece: str, wanted: str) -> bool:
    """Whether a piece of text is a phrase when case is ignored, character by character."""
    return len(piece) == len(wanted) and all(a in cases(b) for a, b in zip(piece, wanted, strict=True))


def find(text: str, wanted: str, *, whole: bool = True, exact_case: bool = False) -> list[Span]:
    """Every place where a phrase occurs in a text, from the left, overlaps included."""
    spans, size = [], len(wanted)
    for at in range(len(text) - size + 1):
        piece = text[at : at + size]
        if piece != wanted and (exact_case or not same(piece, wanted)):
            continue
        behind = text[at + size : at + size + 1]
        left = whole and is_word(wanted[0]) and ends_word(text[:at])
        right = whole and ends_word(wanted) and behind != "" and (is_word(behind) or is_mark(behind))
        if not (left or right):
            spans.append(Span(at, at + size, piece))
    return spans


def occurs(
    phrases: tuple[str, ...], whole: bool = True, exact_case: bool = False, *, sure: bool = False
) -> Automaton:
    """The texts (bytes) that hold at least one of the phrases.

    Which characters beyond ASCII are letters is not told apart here. As a rule each of them may bound a
    word, so that the language is a superset; where `sure`, none does, and it is a subset. Without `whole`
    both are exact. An Aho-Corasick automaton whose failure links only go to where a word may begin.
    """
    name = (phrases, whole, exact_case, sure)
    return cached("occurs", name, lambda: _occurs(*name))


def _occurs(phrases: tuple[str, ...], whole: bool, exact_case: bool, sure: bool) -> Automaton:
    bounds = [byte not in WORD_BYTES and not (sure and byte > 0x7F) for byte in range(256)]
    children, ends_bounded, ends_free = _trie(phrases, whole, exact_case)
    free, bounded = 0, 1  # the roots: inside a word, and where a word may begin
    nodes, match = len(children), len(children)
    symbols = sorted({byte for node in children for byte in node} | {ord("a"), ord(" ")})
    column = {byte: k for k, byte in enumerate(symbols)}
    table = np.zeros(
        256, dtype=np.int64
    )  # symbol classes: each byte that occurs, others inside a word, others that bound one
    for byte in range(256):
        table[byte] = column[byte] if byte in column else len(symbols) + bounds[byte]
    width = len(symbols) + 2
    boundary = np.array([bounds[byte] for byte in symbols] + [False, True])
    delta = np.zeros((nodes + 1, width), dtype=np.int64)
    delta[match] = match
    word, done = np.zeros(nodes + 1, bool), np.zeros(nodes + 1, bool)
    word[list(ends_bounded)], done[list(ends_free)] = True, True
    delta[free] = np.where(boundary, bounded, free)
    delta[bounded] = np.where(boundary, bounded, free)
    queue: deque[tuple[int, int]] = deque()  # node, the node its failure link goes to
    for root in (free, bounded):
        for byte, child in children[root].items():
            symbol = column[byte]
            queue.append((child, int(delta[root, symbol])))
    for root in (free, bounded):
        for byte, child in children[root].items():
            delta[root, column[byte]] = child
    seen = set()
    while queue:
        node, back = queue.popleft()
        if node in seen:
            continue
        seen.add(node)
        word[node] |= word[back]
        done[node] |= done[back]
        delta[node] = delta[back]
        for byte, child in children[node].items():
            symbol = column[byte]
            queue.append((child, int(delta[back, symbol])))
            delta[node, symbol] = child
    delta[:nodes][done[:nodes]] = match
    delta[np.ix_(word[:nodes].nonzero()[0], boundary.nonzero()[0])] = match
    accept = done | word
    accept[match] = True
    return Automaton(table.astype(np.int32), delta.astype(np.int32), bounded, accept).minimise()


def _trie(
    phrases: Iterable[str], whole: bool, exact_case: bool
) -> tuple[list[dict[int, int]], set[int], set[int]]:
    """Trie of the phrases' bytes in every case; root 0 inside a word, root 1 where a word may begin.

    Returns the children of each node, the nodes at which a phrase ends that must not touch a word
    character behind it, and those at which one ends in any case.
    """
    children: list[dict[int, int]] = [{}, {}]
    ends_bounded: set[int] = set()
    ends_free: set[int] = set()
    grow = _grow_shared if not exact_case and _cases_agree(phrases) else _grow
    for text in phrases:
        bounded = whole and is_word(text[0])
        for node in grow(children, 1, text, exact_case):
            (ends_bounded if whole and ends_word(text) else ends_free).add(node)
        if not bounded:
            forms = (text[0],) if exact_case else cases(text[0])
            children[0] |= {byte: children[1][byte] for form in forms for byte in form.encode()[:1]}
    return children, ends_bounded, ends_free


def _grow(children: list[dict[int, int]], root: int, text: str, exact_case: bool) -> list[int]:
    here = [root]
    for char in text:
        reached = []
        for node in here:
            for form in (char,) if exact_case else cases(char):
                at = node
                for byte in form.encode():
                    if byte not in children[at]:
                        children[at][byte] = len(children)
                        children.append({})
                    at = children[at][byte]
                reached.append(at)
        here = reached
    return here


def _cases_agree(phrases: Iterable[str]) -> bool:
    """Whether each character's forms have the same forms and lengths, so that the cases of a phrase may share nodes."""
    return all(
        set(cases(form)) == set(cases(char)) and len(form.encode()) == len(char.encode())
        for char in set("".join(phrases))
        for form in cases(char)
    )


def _grow_shared(children: list[dict[int, int]], root: int, text: str, exact_case: bool) -> list[int]:
    """One node behind each character, whichever its case: a phrase of n letters takes n nodes and not 2^n."""
    here = root
    for char in text:
        following = None
        for form in cases(char):
            at = here
            *lead, last = form.encode()
            for byte in lead:
                if byte not in children[at]:
                    children[at][byte] = len(children)
                    children.append({})
                at = children[at][byte]
            if last in children[at]:
                following = children[at][last]
            elif following is None:
                following = children[at][last] = len(children)
                children.append({})
            else:
                children[at][last] = following
        assert following is not None
        here = following
    return [here]
