"""Array algorithms behind `Automaton`: reachable products, partition refinement to the canonical minimum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
Parts = tuple[IntArray, IntArray, int, BoolArray]  # classes [A], delta [Q, C], start, accept [Q]

#: Largest table of state pairs that a product keeps; beyond it pairs are numbered by sorting.
_TABLE = 2**26
#: Largest number of state pairs whose fates are all looked up beforehand.
_PAIRS = 2**21
#: Rounds of a search that look at all states that are left, before it turns to the transitions by their target.
_ROUNDS = 8
#: Entries of a transition table that are hashed at a time, so that they stay in cache.
_CHUNK = 2**18


def canonical(
    classes: IntArray, delta: IntArray, start: int, accept: BoolArray, *, distinct: bool = False
) -> Parts:
    """The minimal automaton of the same language, states and classes numbered by first visit.

    Moore refinement: b_0 = (accept, distances to each kind of fate) and
    b_{n+1}(q) = (b_n(q), b_n(delta[q, :])) until no block splits. Signatures are random 64-bit sums; the
    fixed point is checked to be a congruence, so the result is exact. Cost O(rounds * Q * C). `distinct`
    promises that no two states are equivalent, and spares the refinement.
    """
    classes, delta = _trim_classes(classes, delta)
    delta, accept = _reach(delta, start, accept)
    if distinct:
        return *_trim_classes(classes, delta), 0, accept
    block = _refine(delta, accept)
    first = np.empty(int(block.max()) + 1, dtype=np.int64)
    first[block[::-1]] = np.arange(len(block) - 1, -1, -1)
    if len(first) < len(delta):
        delta, accept = block[delta[first]].astype(np.int32), accept[first]
        delta, accept = _reach(delta, int(block[0]), accept)
    return *_trim_classes(classes, delta), 0, accept


def product(left: Parts, right: Parts, truth: tuple[bool, bool, bool, bool], budget: int) -> Parts | None:
    """Reachable product of two complete automata, accepted where truth[2 * a + b]; None past `budget` states.

    A pair whose fate is settled (its language is empty or everything, whatever follows) becomes one state.
    """
    classes1, delta1, start1, accept1 = left
    classes2, delta2, start2, accept2 = right
    states1, states2, width = len(delta1), len(delta2), delta2.shape[1]
    used = np.zeros(delta1.shape[1] * width, dtype=bool)
    joint = classes1.astype(np.int64) * width + classes2
    used[joint] = True
    column1, column2 = np.divmod(np.flatnonzero(used), width)
    classes = (np.cumsum(used) - 1)[joint].astype(np.int32)
    fate1, fate2 = fates(delta1, accept1), fates(delta2, accept2)
    # Whatever is settled is looked up by (fate of one, fate of other): -1 open, else the settled value.
    verdict = _settled(truth)
    total = states1 * states2
    table = _Numbering(total + 2)

    def settle(code: NDArray[np.int64]) -> NDArray[np.int64]:
        state1, state2 = np.divmod(code, states2)
        value = verdict[fate1[state1], fate2[state2]]
        return np.where(value < 0, code, total + value)

    # The moves of either side, as codes; settling is one gather, as every pair's answer is looked up.
    moves1 = delta1[:, column1].astype(np.int64) * states2
    moves2 = delta2[:, column2].astype(np.int64)
    if total <= _PAIRS:
        every = np.arange(total, dtype=np.int64)
        target = settle(every)
    else:
        target = None
    start = settle(np.array([start1 * states2 + start2], dtype=np.int64))
    table.add(start)
    order, rows, codes = [start], [], start
    while len(codes):
        inside = codes < total
        state1, state2 = np.divmod(np.where(inside, codes, 0), states2)
        following = moves1[state1]
        following += moves2[state2]
        following = settle(following) if target is None else target[following]
        following[~inside] = codes[~inside, None]
        codes = table.add(following.ravel())
        rows.append(table.of(following))
        order.append(codes)
        if table.count > budget:
            return None
    states = np.concatenate(order)
    state1, state2 = np.divmod(np.where(states < total, states, 0), states2)
    answer = np.array(truth)[2 * accept1[state1] + accept2[state2]]
    accept = np.where(states < total, answer, states - total == 1)
    return classes, np.concatenate(rows), 0, accept.astype(np.bool_)


class _Numbering:
    """Numbers for codes in the order in which they are first seen."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self._table = np.full(size, -1, dtype=np.int32) if size <= _TABLE + 2 else None
        self._known: dict[int, int] = {}

    def add(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number the codes that are new, and return them, each once."""
        if self._table is None:
            fresh = np.array([c for c in np.unique(codes).tolist() if c not in self._known], dtype=np.int64)
            self._known.update(zip(fresh.tolist(), range(self.count, self.count + len(fresh)), strict=True))
        else:
            fresh = first_seen(codes, self._table)
            self._table[fresh] = np.arange(self.count, self.count + len(fresh), dtype=np.int32)
        self.count += len(fresh)
        return fresh

    def of(self, codes: NDArray[np.int64]) -> IntArray:
        """The numbers of codes that have been added."""
        if self._table is not None:
            return self._table[codes]
        names, inverse = np.unique(codes, return_inverse=True)
        known = np.array([self._known[name] for name in names.tolist()], dtype=np.int32)
        return known[inverse.reshape(codes.shape)]


def first_seen(items: NDArray[np.int64] | IntArray, number: IntArray) -> NDArray[np.int64]:
    """Items whose `number` is negative, each once, in the order of their first place; no sorting.

    Spoils `number` at those items: the caller gives them their numbers.
    """
    fresh = items[number[items] < 0]
    place = np.arange(len(fresh), dtype=number.dtype)
    number[fresh[::-1]] = place[::-1]  # of equal items the first is written last, and stays
    kept: NDArray[np.int64] = fresh[number[fresh] == place].astype(np.int64)
    return kept


def fates(delta: IntArray, accept: BoolArray) -> NDArray[np.int64]:
    """What each state's language is [Q]: 0 empty, 1 everything, 2 neither."""
    back = Searches(delta)
    empty, full = back.distance(accept) < 0, back.distance(~accept) < 0
    return np.where(empty, 0, np.where(full, 1, 2))


def _settled(truth: tuple[bool, bool, bool, bool]) -> NDArray[np.int64]:
    """[3, 3] by the fates of both sides: the value that their combination is settled to, or -1."""
    found = np.full((3, 3), -1, dtype=np.int64)
    for a in (0, 1, 2):
        for b in (0, 1, 2):
            values = {
                truth[2 * x + y] for x in ((a,) if a < 2 else (0, 1)) for y in ((b,) if b < 2 else (0, 1))
            }
            if len(values) == 1:
                found[a, b] = int(values.pop())
    return found


class Searches:
    """Distances in a transition table [Q, C], for several goals."""

    def __init__(self, delta: IntArray) -> None:
        self._delta = delta
        self._back: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def distance(self, goal: BoolArray) -> NDArray[np.int64]:
        """Fewest symbols from each state to a `goal` state [Q]; -1 where there is no way."""
        result = np.where(goal, 0, -1).astype(np.int64)
        there, left = goal.copy(), np.flatnonzero(~goal)
        # Most states of a wide table are a few symbols from anything: no need to sort its transitions.
        for step in range(1, _ROUNDS + 1):
            if not len(left):
                return result
            hit = there[self._delta[left]].any(1)
            if not hit.any():
                return result
            result[left[hit]] = step
            there[left[hit]] = True
            left = left[~hit]
        frontier = np.flatnonzero(result == _ROUNDS)
        seen = np.where(there, 0, -1).astype(np.int32)
        step = _ROUNDS
        while len(frontier) and len(left):
            step += 1
            frontier = first_seen(self._into(frontier), seen)
            seen[frontier] = 0
            result[frontier] = step
        return result

    def _into(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._back is None:
            flat = self._delta.ravel()
            # A stable sort of 16-bit numbers is a radix sort: several times faster than one of 32-bit numbers.
            order = np.argsort(flat.astype(np.uint16) if len(self._delta) <= 2**16 else flat, kind="stable")
            count = np.bincount(flat, minlength=len(self._delta))
            self._back = order // max(self._delta.shape[1], 1), np.concatenate([[0], np.cumsum(count)])
        source, first = self._back
        begin = first[states]
        counts = first[states + 1] - begin
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found: NDArray[np.int64] = source[np.repeat(begin, counts) + offsets]
        return found


def distance(delta: IntArray, goal: BoolArray) -> NDArray[np.int64]:
    """Fewest symbols from each state to a `goal` state [Q]; -1 where there is no way."""
    return Searches(delta).distance(goal)


def _trim_classes(classes: IntArray, delta: IntArray) -> tuple[IntArray, IntArray]:
    """Drop unused classes, merge equal columns, number classes by their first symbol."""
    if not len(classes):
        return classes, delta[:, :0]
    columns = np.ascontiguousarray(delta.T)
    seen: dict[bytes, int] = {}
    first = np.full(delta.shape[1], len(classes), dtype=np.int64)
    first[classes[::-1]] = np.arange(len(classes) - 1, -1, -1)
    used = np.flatnonzero(first < len(classes))
    new = np.zeros(delta.shape[1], dtype=np.int32)
    keep: list[int] = []
    for old in used[np.argsort(first[used])].tolist():
        name = columns[old].tobytes()
        new[old] = seen.setdefault(name, len(seen))
        if new[old] == len(keep):
            keep.append(old)
    return new[classes], np.ascontiguousarray(columns[keep].T)


def _reach(delta: IntArray, start: int, accept: BoolArray) -> tuple[IntArray, BoolArray]:
    """Keep the states reachable from `start`, numbered breadth first (start becomes 0)."""
    number = np.full(len(delta), -1, dtype=np.int32)
    number[start] = 0
    count, frontier, order = 1, np.array([start]), [np.array([start])]
    while len(frontier):
        frontier = first_seen(delta[frontier].ravel(), number)
        number[frontier] = np.arange(count, count + len(frontier), dtype=np.int32)
        count += len(frontier)
        order.append(frontier)
    kept = np.concatenate(order)
    if np.array_equal(kept, np.arange(len(delta))):
        return delta, accept
    return number[delta[kept]], accept[kept]


def _refine(delta: IntArray, accept: BoolArray) -> NDArray[np.int64]:
    """Coarsest partition [Q] that respects `accept` and `delta`."""
    back = Searches(delta)
    live, fall = back.distance(accept), back.distance(~accept)
    signs = np.stack([accept, live, fall, back.distance(live < 0), back.distance(fall < 0)]) + 1
    code = signs[0].astype(np.int64)
    for sign in signs[1:]:
        code = np.unique(code * (int(sign.max()) + 1) + sign, return_inverse=True)[1].reshape(-1)
    for seed in range(64):
        block = _stable(code, delta, np.random.default_rng(seed))
        count = int(block.max()) + 1
        if count == len(delta):
            return block
        first = np.empty(count, dtype=np.int64)
        first[block] = np.arange(len(block))
        if np.array_equal(block[delta], block[delta[first]][block]):
            return block
    raise RuntimeError("partition refinement met 64 hash collisions")  # pragma: no cover


def _stable(block: NDArray[np.int64], delta: IntArray, rng: np.random.Generator) -> NDArray[np.int64]:
    weights = rng.integers(1, 2**63, size=delta.shape[1] + 1, dtype=np.uint64) | np.uint64(1)
    values = rng.integers(0, 2**63, size=len(delta) + 1, dtype=np.uint64)
    count = int(block.max()) + 1
    columns = np.ascontiguousarray(delta.T)
    step = max(1, _CHUNK // len(delta))
    while count < len(delta):
        name = values[block]
        mixed = name * weights[-1]
        for begin in range(0, len(columns), step):
            part = name[columns[begin : begin + step]]
            mixed += np.einsum("cq,c->q", part, weights[begin : begin + len(part)])
        block = np.unique(mixed, return_inverse=True)[1].reshape(-1).astype(np.int64)
        grown = int(block.max()) + 1
        if grown == count:
            break
        count = grown
    return block
