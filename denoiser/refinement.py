"""Array algorithms behind `Automaton`: reachable products, partition refinement to the canonical minimum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
Parts = tuple[IntArray, IntArray, int, BoolArray]  # classes [A], delta [Q, C], start, accept [Q]


def canonical(classes: IntArray, delta: IntArray, start: int, accept: BoolArray) -> Parts:
    """The minimal automaton of the same language, states and classes numbered by first visit.

    Moore refinement: b_0 = (accept, distances to each kind of fate) and
    b_{n+1}(q) = (b_n(q), b_n(delta[q, :])) until no block splits. Signatures are random 64-bit sums; the
    fixed point is checked to be a congruence, so the result is exact. Cost O(rounds * Q * C).
    """
    classes, delta = _trim_classes(classes, delta)
    delta, accept = _reach(delta, start, accept)
    block = _refine(delta, accept)
    _, representative = np.unique(block, return_index=True)
    delta, accept = block[delta[representative]].astype(np.int32), accept[representative]
    classes, delta = _trim_classes(classes, delta)
    delta, accept = _reach(delta, int(block[0]), accept)
    return classes, delta, 0, accept


def product(left: Parts, right: Parts, truth: tuple[bool, bool, bool, bool], budget: int) -> Parts | None:
    """Reachable product of two complete automata, accepted where truth[2 * a + b]; None past `budget` states.

    A pair whose fate is settled (its language is empty or everything, whatever follows) becomes one state.
    """
    classes1, delta1, start1, accept1 = left
    classes2, delta2, start2, accept2 = right
    width = len(delta2)
    pairs, classes = np.unique(classes1.astype(np.int64) * delta2.shape[1] + classes2, return_inverse=True)
    column1, column2 = np.divmod(pairs, delta2.shape[1])
    fate = _settled(_fates(delta1, accept1), _fates(delta2, accept2), truth)
    total = len(delta1) * width
    table = np.array(truth)

    def settle(state1: NDArray[np.int64], state2: NDArray[np.int64]) -> NDArray[np.int64]:
        codes = state1 * width + state2
        for value, decided in fate:
            codes[decided[0][state1] & decided[1][state2]] = total + value
        return codes

    start = settle(np.array([start1], dtype=np.int64), np.array([start2], dtype=np.int64))
    codes, rows, number = start, [], {int(start[0]): 0}
    order = [start]
    while len(codes):
        inside = codes < total
        state1, state2 = np.divmod(np.where(inside, codes, 0), width)
        following = settle(
            delta1[state1][:, column1].ravel().astype(np.int64),
            delta2[state2][:, column2].ravel().astype(np.int64),
        ).reshape(len(codes), len(pairs))
        following = np.where(inside[:, None], following, codes[:, None])
        targets, inverse = np.unique(following, return_inverse=True)
        known = [number.setdefault(code, len(number)) for code in targets.tolist()]
        rows.append(np.array(known, dtype=np.int32)[inverse.reshape(following.shape)])
        before = sum(map(len, order))
        fresh = np.array(
            [c for c, n in zip(targets.tolist(), known, strict=True) if n >= before], dtype=np.int64
        )
        if len(number) > budget:
            return None
        order.append(fresh)
        codes = fresh
    states = np.concatenate(order)
    state1, state2 = np.divmod(np.where(states < total, states, 0), width)
    accept = np.where(states < total, table[2 * accept1[state1] + accept2[state2]], states - total == 1)
    return classes.reshape(-1).astype(np.int32), np.concatenate(rows), 0, accept.astype(np.bool_)


def _fates(delta: IntArray, accept: BoolArray) -> dict[int, BoolArray]:
    """For each value a state's language may be settled to (0 empty, 1 everything, 2 any): where it is."""
    empty, full = ~_ancestors(delta, accept), ~_ancestors(delta, ~accept)
    return {0: empty, 1: full, 2: np.ones(len(delta), dtype=bool)}


def _settled(
    one: dict[int, BoolArray], two: dict[int, BoolArray], truth: tuple[bool, bool, bool, bool]
) -> list[tuple[int, tuple[BoolArray, BoolArray]]]:
    found = []
    for a in (0, 1, 2):
        for b in (0, 1, 2):
            values = {
                truth[2 * x + y] for x in ((a,) if a < 2 else (0, 1)) for y in ((b,) if b < 2 else (0, 1))
            }
            if len(values) == 1:
                found.append((int(values.pop()), (one[a], two[b])))
    return found


def _ancestors(delta: IntArray, goal: BoolArray) -> BoolArray:
    return distance(delta, goal) >= 0


def distance(delta: IntArray, goal: BoolArray) -> NDArray[np.int64]:
    """Fewest symbols from each state to a `goal` state [Q]; -1 where there is no way."""
    states, width = delta.shape
    order = np.argsort(delta.ravel(), kind="stable")
    source = order // max(width, 1)
    first = np.searchsorted(delta.ravel()[order], np.arange(states + 1))
    result = np.where(goal, 0, -1).astype(np.int64)
    frontier, step = np.flatnonzero(goal), 0
    while len(frontier):
        step += 1
        counts = first[frontier + 1] - first[frontier]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        before = source[np.repeat(first[frontier], counts) + offsets]
        frontier = np.unique(before[result[before] < 0])
        result[frontier] = step
    return result


def _trim_classes(classes: IntArray, delta: IntArray) -> tuple[IntArray, IntArray]:
    """Drop unused classes, merge equal columns, number classes by their first symbol."""
    if not len(classes):
        return classes, delta[:, :0]
    columns = np.ascontiguousarray(delta.T)
    seen: dict[bytes, int] = {}
    used, first = np.unique(classes, return_index=True)
    new = np.zeros(delta.shape[1], dtype=np.int32)
    keep: list[int] = []
    for old in used[np.argsort(first)].tolist():
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
        following = delta[frontier].ravel()
        following = following[number[following] < 0]
        states, where = np.unique(following, return_index=True)
        frontier = states[np.argsort(where)]
        number[frontier] = np.arange(count, count + len(frontier), dtype=np.int32)
        count += len(frontier)
        order.append(frontier)
    kept = np.concatenate(order)
    return number[delta[kept]], accept[kept]


def _refine(delta: IntArray, accept: BoolArray) -> NDArray[np.int64]:
    """Coarsest partition [Q] that respects `accept` and `delta`."""
    signs = np.stack([accept, distance(delta, accept), distance(delta, ~accept)], axis=1).astype(np.int64)
    dead = signs[:, 1] < 0
    full = signs[:, 2] < 0
    signs = np.column_stack([signs, distance(delta, dead), distance(delta, full)])
    base = np.unique(signs, axis=0, return_inverse=True)[1].reshape(-1)
    for seed in range(64):
        block = _stable(base, delta, np.random.default_rng(seed))
        _, representative = np.unique(block, return_index=True)
        if np.array_equal(block[delta], block[delta[representative]][block]):
            return block
    raise RuntimeError("partition refinement met 64 hash collisions")  # pragma: no cover


def _stable(block: NDArray[np.int64], delta: IntArray, rng: np.random.Generator) -> NDArray[np.int64]:
    weights = rng.integers(1, 2**63, size=delta.shape[1] + 1, dtype=np.uint64) | np.uint64(1)
    values = rng.integers(0, 2**63, size=len(delta) + 1, dtype=np.uint64)
    count = int(block.max()) + 1
    while count < len(delta):
        name = values[block]
        mixed = name * weights[-1]
        for column in range(delta.shape[1]):
            mixed += name[delta[:, column]] * weights[column]
        block = np.unique(mixed, return_inverse=True)[1].reshape(-1).astype(np.int64)
        grown = int(block.max()) + 1
        if grown == count:
            break
        count = grown
    return block
