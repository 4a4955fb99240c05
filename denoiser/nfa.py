"""Languages built by joining languages: concatenation, repetition, phrase sets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.automaton import Automaton
from redraft.denoiser.refinement import distance

#: Largest part whose states are compared by inclusion.
_MOST_COMPARED = 400

#: State of a subset construction: (part, state of that part) pairs that the text may be in.
Subset = frozenset[tuple[int, int]]


def concat(*parts: Automaton) -> Automaton:
    """{w_1 w_2 ... w_n: w_i in parts[i]}; raises StateBudgetError."""
    if not parts:
        return Automaton.of_word(())
    return _subsets(parts, lambda i: (i + 1,) if i + 1 < len(parts) else (), (0,), {len(parts) - 1}, False)


def repeat(part: Automaton, least: int = 0, most: int | None = None) -> Automaton:
    """Between `least` and `most` (None: any number of) words of `part` in a row; raises StateBudgetError."""
    if least < 0 or (most is not None and most < least):
        raise ValueError(f"repeat needs 0 <= least <= most, got {least} and {most}")
    if most == 0:
        return Automaton.of_word((), part.symbols)
    count = max(least, 1) if most is None else most

    def after(i: int) -> Iterable[int]:
        return (i + 1,) if i + 1 < count else (i,) if most is None else ()

    last = set(range(max(least, 1) - 1, count))
    return _subsets([part] * count, after, (0,), last, least == 0)


def star(part: Automaton) -> Automaton:
    """Any number of words of `part` in a row, also none."""
    return repeat(part)


def of_words(words: Iterable[bytes]) -> Automaton:
    """Exactly one of these byte strings."""
    children, ends = _trie(words)
    classes, alphabet = _alphabet(children)
    dead = len(children)
    delta = np.full((dead + 1, len(alphabet) + 1), dead, dtype=np.int32)
    accept = np.zeros(dead + 1, dtype=bool)
    accept[sorted(ends)] = True
    for node, following in enumerate(children):
        for byte, child in following.items():
            delta[node, classes[byte]] = child
    return Automaton(classes, delta, 0, accept).minimise()


def aho_corasick(words: Iterable[bytes]) -> Automaton:
    """Byte strings that contain one of `words` (Aho and Corasick 1975, as a complete automaton)."""
    children, ends = _trie(words)
    classes, alphabet = _alphabet(children)
    found = len(children)
    delta = np.zeros((found + 1, len(alphabet) + 1), dtype=np.int32)
    delta[found] = found
    failure = [0] * found
    queue = deque([0])
    while queue:
        node = queue.popleft()
        if node in ends:
            delta[node] = found
            continue
        if node:
            delta[node] = delta[failure[node]]
        for byte, child in children[node].items():
            column = classes[byte]
            failure[child] = int(delta[node, column]) if node else 0
            delta[node, column] = child
            if failure[child] == found or failure[child] in ends:
                ends.add(child)
            queue.append(child)
    accept = np.zeros(found + 1, dtype=bool)
    accept[[found, *ends]] = True
    return Automaton(classes, delta, 0, accept).minimise()


def _trie(words: Iterable[bytes]) -> tuple[list[dict[int, int]], set[int]]:
    children: list[dict[int, int]] = [{}]
    ends = set()
    for word in words:
        node = 0
        for byte in word:
            following = children[node].get(byte)
            if following is None:
                following = children[node][byte] = len(children)
                children.append({})
            node = following
        ends.add(node)
    return children, ends


def _alphabet(children: Sequence[dict[int, int]]) -> tuple[NDArray[np.int32], list[int]]:
    """Class 0 for bytes that never occur, one class for each that does."""
    used = sorted({byte for following in children for byte in following})
    classes = np.zeros(256, dtype=np.int32)
    classes[used] = np.arange(1, len(used) + 1)
    return classes, used


def _subsets(
    parts: Sequence[Automaton],
    after: Callable[[int], Iterable[int]],
    first: Iterable[int],
    last: set[int],
    empty: bool,
) -> Automaton:
    """Subset construction: a text in an accepting state of part i may also begin part j for j in after(i)."""
    alphabet = parts[0].symbols
    if any(part.symbols != alphabet for part in parts):
        raise ValueError(f"alphabets of {sorted({part.symbols for part in parts})} symbols cannot be joined")
    parts = [part.minimise() for part in parts]
    label = np.unique(np.stack([part.classes for part in parts]), axis=1, return_inverse=True)[1].reshape(-1)
    rows = {id(part): part.delta[:, part.classes].tolist() for part in parts}
    table = [rows[id(part)] for part in parts]
    live = [(distance(part.delta, part.accept) >= 0).tolist() for part in parts]
    ends = [part.accept.tolist() for part in parts]
    wider = {id(part): _wider(part) for part in parts}
    above = [wider[id(part)] for part in parts]

    def close(pairs: Iterable[tuple[int, int]]) -> Subset:
        found, todo = set(), list(pairs)
        while todo:
            i, q = todo.pop()
            if (i, q) not in found and live[i][q]:
                found.add((i, q))
                if ends[i][q]:
                    todo.extend((j, parts[j].start) for j in after(i))
        # A state whose continuations another one has too adds nothing; without this, counted gaps explode.
        return frozenset((i, q) for i, q in found if not any((i, r) in found for r in above[i][q]))

    def step(state: tuple[Subset, bool], symbol: int) -> tuple[Subset, bool] | None:
        following = close((i, table[i][q][symbol]) for i, q in state[0])
        return (following, False) if following else None

    def accepting(state: tuple[Subset, bool]) -> bool:
        return state[1] or any(i in last and ends[i][q] for i, q in state[0])

    start = close((i, parts[i].start) for i in first)
    return Automaton.build((start, empty), step, accepting, alphabet, classes=label)


def _wider(part: Automaton) -> list[list[int]]:
    """For each state the others that accept all it accepts and more; none for large automata."""
    if part.states > _MOST_COMPARED:
        return [[] for _ in range(part.states)]
    within = ~part.accept[:, None] | part.accept
    while True:
        smaller = within.copy()
        for column in part.delta.T:
            smaller &= smaller[column[:, None], column]
        if np.array_equal(smaller, within):
            break
        within = smaller
    np.fill_diagonal(within, False)
    return [np.flatnonzero(row).tolist() for row in within]
