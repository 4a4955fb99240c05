"""From languages of bytes to languages of tokens."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.automaton import Automaton, of_distinct
from redraft.denoiser.cache import cached
from redraft.denoiser.ending import dead_end

IntArray = NDArray[np.int64]


class TokenTrie:
    """The byte trie of a vocabulary, level by level; made once, shared by every language lifted to it.

    `levels[d]` holds (parent, byte) of each node at depth d + 1, parents numbered within their level;
    `ends[d]` holds (token, node) of the tokens that are d + 1 bytes long. Tokens given as None (specials) or
    as b"" are in no node.
    """

    def __init__(self, token_bytes: Sequence[bytes | None]) -> None:
        texts = [text or b"" for text in token_bytes]
        self.size = len(texts)
        self._text = b"".join(texts)
        length = np.array([len(text) for text in texts], dtype=np.int64)
        offset = np.cumsum(length) - length
        data = np.frombuffer(self._text, dtype=np.uint8)
        self._length = length
        #: The bytes that are tokens by themselves, in ascending order.
        self.single: IntArray = np.unique(data[offset[length == 1]]).astype(np.int64)
        self.levels: list[tuple[IntArray, NDArray[np.uint8]]] = []
        self.ends: list[tuple[IntArray, IntArray]] = []
        token = np.flatnonzero(length > 0)
        parent = np.zeros(len(token), dtype=np.int64)
        depth = 0
        while len(token):
            names, node = np.unique(parent * 256 + data[offset[token] + depth], return_inverse=True)
            self.levels.append((names // 256, (names % 256).astype(np.uint8)))
            depth += 1
            final = length[token] == depth
            self.ends.append((token[final], node[final]))
            token, parent = token[~final], node[~final]

    @cached_property
    def key(self) -> str:
        """Stable hash of the vocabulary's bytes (hex)."""
        digest = blake2b(self._length.tobytes(), digest_size=16)
        digest.update(self._text)
        return digest.hexdigest()

    def functions(self, language: Automaton) -> tuple[IntArray, NDArray[np.int32]]:
        """Each token's effect: ids [V] into distinct functions [F, Q] of states, f[q] = the state after q.

        -1 for a token without bytes; function 0 is the identity, which a real token can be as well. Only
        distinct (function, byte class) pairs are composed: O(nodes + F * Q).
        """
        width = language.delta.shape[1]
        columns = np.ascontiguousarray(language.delta.T)
        store = _FunctionStore(np.arange(language.states, dtype=np.int32), columns)
        effect = np.full(self.size, -1, dtype=np.int64)
        above = np.zeros(1, dtype=np.int64)
        for (parent, byte), (token, node) in zip(self.levels, self.ends, strict=True):
            pair = above[parent] * width + language.classes[byte]
            marked = np.zeros(len(store) * width, dtype=bool)
            marked[pair] = True
            wanted = np.flatnonzero(marked)
            answer = np.zeros(len(marked), dtype=np.int64)
            answer[wanted] = store.compose(wanted // width, wanted % width)
            above = answer[pair]
            effect[token] = above[node]
        return effect, store.functions()


class _FunctionStore:
    """Distinct functions Q -> Q, found by their exact bytes."""

    def __init__(self, identity: NDArray[np.int32], columns: NDArray[np.int32]) -> None:
        self._columns = columns
        self._ids = {identity.tobytes(): 0}
        self._blocks = [identity[None]]
        self._table = np.full((1, len(columns)), -1, dtype=np.int64)
        self._all = identity[None]

    def __len__(self) -> int:
        return len(self._table)

    def functions(self) -> NDArray[np.int32]:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0]

    def compose(self, function: IntArray, column: IntArray) -> IntArray:
        """Ids of q -> columns[column][function[q]] for each pair."""
        known = self._table[function, column]
        new = known < 0
        if new.any():
            made = self._columns[column[new, None], self.functions()[function[new]]]
            ids = np.empty(len(made), dtype=np.int64)
            fresh: list[int] = []
            for i, row in enumerate(made):
                ids[i] = found = self._ids.setdefault(row.tobytes(), len(self._ids))
                if found == len(self._table) + len(fresh):
                    fresh.append(i)
            known[new] = self._table[function[new], column[new]] = ids
            if fresh:
                self._blocks.append(made[fresh])
                rows = np.full((len(fresh), self._table.shape[1]), -1, dtype=np.int64)
                self._table = np.concatenate([self._table, rows])
        return known


_TRIES: OrderedDict[int, tuple[tuple[bytes | None, ...], TokenTrie]] = OrderedDict()
_VOCABULARIES = 8


def trie_of(token_bytes: Sequence[bytes | None] | TokenTrie) -> TokenTrie:
    """The trie of a vocabulary; that of a tuple (as `Vocabulary.token_bytes` is) is made once and kept."""
    if isinstance(token_bytes, TokenTrie):
        return token_bytes
    if not isinstance(token_bytes, tuple):
        return TokenTrie(token_bytes)
    found = _TRIES.get(id(token_bytes))
    if found is None or found[0] is not token_bytes:
        found = _TRIES[id(token_bytes)] = (token_bytes, TokenTrie(token_bytes))
        if len(_TRIES) > _VOCABULARIES:
            _TRIES.popitem(last=False)
    return found[1]


def lift(
    language: Automaton, token_bytes: Sequence[bytes | None] | TokenTrie, prefix: bytes = b""
) -> Automaton:
    """Token sequences whose text is in the byte `language`: an automaton over V tokens.

    The text is the tokens' bytes joined, without `prefix` where they begin with it (a vocabulary whose
    tokenizer puts a space before every text takes it off again). So lift(~L) = ~lift(L), on real tokens.
    Tokens that are None (special) or b"" are never used. Give a `TokenTrie`, or a vocabulary's own tuple, to share
    the vocabulary's work between languages; results are cached by (language, vocabulary, prefix). Raises ValueError
    when the alphabet of `language` is not bytes.
    """
    if language.symbols != 256:
        raise ValueError(f"lift takes a language of bytes; this one is over {language.symbols} symbols")
    trie = trie_of(token_bytes)
    return cached(
        "lift", (language.key, trie.key, prefix), lambda: _lifted(behind(prefix, language).minimise(), trie)
    )


def _lifted(least: Automaton, trie: TokenTrie) -> Automaton:
    effect, functions = trie.functions(least)
    sink = dead_end(least)
    dead = least.states if sink is None else sink
    # Row k of `functions` is the effect of class k; the last class is that of tokens that are no text.
    classes = np.where(effect < 0, len(functions), effect).astype(np.int32)
    delta = np.full((max(dead + 1, least.states), len(functions) + 1), dead, dtype=np.int32)
    delta[: least.states, :-1] = functions.T
    accept = np.append(least.accept, False)[: len(delta)]
    parts = (classes, delta, least.start, accept)
    # With a token for every class of bytes no two states are alike to tokens that were different to bytes.
    single = np.unique(least.classes[trie.single])
    return of_distinct(*parts) if len(single) == least.delta.shape[1] else Automaton(*parts).minimise()


def behind(prefix: bytes, language: Automaton) -> Automaton:
    """Byte words that are in `language` once `prefix` is taken off them, where they begin with it."""
    if not prefix:
        return language

    def step(state: tuple[int, int], byte: int) -> tuple[int, int]:
        seen, inner = state  # bytes of the prefix seen so far, or -1 behind it; the language's own state
        if seen < 0 or byte != prefix[seen]:
            return -1, int(language.delta[inner, language.classes[byte]])
        if seen + 1 == len(prefix):
            return -1, language.start
        return seen + 1, int(language.delta[inner, language.classes[byte]])

    own = {byte: language.delta.shape[1] + k for k, byte in enumerate(sorted(set(prefix)))}
    classes = [own.get(byte, int(label)) for byte, label in enumerate(language.classes)]
    return Automaton.build(
        (0, language.start), step, lambda state: bool(language.accept[state[1]]), classes=classes
    )
