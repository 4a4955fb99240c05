"""Token languages against running every token's bytes."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.lift import TokenTrie, lift
from redraft.denoiser.nfa import aho_corasick
from redraft.denoiser.regex import UTF8, compile_regex

Tokens = list[bytes | None]
tokens = st.lists(
    st.none() | st.text("abé", max_size=4).map(str.encode) | st.sampled_from([b"\xc3", b"\xa9"]), max_size=9
)
LANGUAGES = [
    compile_regex("(a|ab)*é?"),
    aho_corasick([b"ab", b"bb"]),
    ~aho_corasick([b"aa"]),
    compile_regex("[^a]{2,4}"),
    UTF8,
]


@pytest.mark.parametrize("which", range(len(LANGUAGES)))
def test_lift_is_running_the_bytes(which: int) -> None:
    language = LANGUAGES[which]

    @given(tokens, st.sampled_from([b"", b"a", b"ab\xc3", b"zz"]))
    def check(vocabulary: Tokens, prefix: bytes) -> None:
        lifted = lift(language, vocabulary, prefix)
        assert lifted.symbols == len(vocabulary)
        for length in range(4):
            for word in itertools.product(range(len(vocabulary)), repeat=min(length, 3)):
                parts = [vocabulary[t] for t in word]
                text = b"".join(p or b"" for p in parts).removeprefix(prefix)
                expected = all(parts) and language.accepts(text)
                assert lifted.accepts(word) == expected

    check()


def test_every_token_of_a_large_vocabulary() -> None:
    rng = np.random.default_rng(0)
    vocabulary: Tokens = [None, b"", *(bytes([b]) for b in range(256))]
    vocabulary += ["".join(rng.choice(list("storm é日,"), rng.integers(2, 7))).encode() for _ in range(3000)]
    language = aho_corasick([b"storm", "é日".encode()]) & compile_regex("(?s).{3,40}")
    lifted = lift(language, vocabulary)
    for _ in range(300):
        word = rng.integers(2, len(vocabulary), rng.integers(1, 8)).tolist()
        text = b"".join(vocabulary[t] or b"" for t in word)
        assert lifted.accepts(word) == language.accepts(text)
    assert not lifted.accepts([0])
    assert not lifted.accepts([1])


def test_duplicate_tokens_share_a_class() -> None:
    lifted = lift(Automaton.of_word(b"ab"), [b"ab", b"a", b"ab", b"b"])
    assert lifted.classes[0] == lifted.classes[2]
    assert lifted.accepts([2])
    assert lifted.accepts([1, 3])


def test_caching_and_shared_trie() -> None:
    vocabulary: Tokens = [None, b"a", b"b", b"ab"]
    trie = TokenTrie(vocabulary)
    assert trie.key == TokenTrie(list(vocabulary)).key
    assert trie.key != TokenTrie([None, b"a", b"b", b"a", b"b"]).key
    language = compile_regex("a+b")
    assert lift(language, trie) is lift(language, vocabulary)
    assert lift(language, trie, b"a") is not lift(language, trie)
    assert lift(language, trie, b"a").accepts([1, 3])
    assert not lift(language, trie, b"a").accepts([3])
    began = time.perf_counter()
    for _ in range(100):
        lift(language, trie)
    assert time.perf_counter() - began < 0.1


def test_only_bytes_are_lifted() -> None:
    with pytest.raises(ValueError, match="language of bytes"):
        lift(Automaton.all(7), [b"a"])


@pytest.mark.parametrize("language", [Automaton.all(), compile_regex("[a-z]*"), compile_regex("(?s:.)*")])
def test_tokens_that_change_no_state_are_used(language: Automaton) -> None:
    """A token may map every state to itself and is still text; a token without bytes never is."""
    lifted = lift(language, [None, b"a", b"bc", b""])
    for word in ([], [1], [2, 1], [1, 1, 2]):
        assert lifted.accepts(word)
    for word in ([0], [3], [1, 0], [3, 1]):
        assert not lifted.accepts(word)
