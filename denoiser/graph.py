"""Automata as sparse graphs: what forward and backward sums walk over, shared as far as it goes.

From one state, all classes that lead to one target act as one: their *set*'s mass is what counts, and few sets serve
many states. A *pair* is a set and a target. Pairs that the very same states have are put behind one *hub*, so that
500 forbidden phrases cost each state the few tokens that are special to it and one hub for the thousands that are
not. Two automata are joined on this form without their table of states by classes, which may have 10^8 entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.refinement import first_seen

Ints = NDArray[np.int64]

#: States from which a pair is popular, and most pairs x states that are looked at for a tree.
_POPULAR, _MOST_POPULAR = 32, 2**26


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of numbers, one after another: list k is items[first[k] : first[k + 1]]."""

    first: Ints
    items: Ints

    @staticmethod
    def of(owner: Ints, items: Ints, count: int) -> Lists:
        """From the owner of each item, in any order."""
        order = np.argsort(owner, kind="stable")
        return Lists(np.searchsorted(owner[order], np.arange(count + 1)), items[order])

    def __len__(self) -> int:
        return len(self.first) - 1

    @property
    def owner(self) -> Ints:
        """The list that each item is in."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def at(self, which: Ints) -> tuple[Ints, Ints]:
        """The items of some lists, and for each the place in `which` of its list."""
        begin, count = self.first[which], self.first[which + 1] - self.first[which]
        place = np.repeat(np.arange(len(which)), count)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        return self.items[begin[place] + offset], place

    def keep(self, which: Ints) -> Lists:
        """Only the lists `which`, in that order."""
        items, place = self.at(which)
        return Lists.of(place, items, len(which))


@dataclass(frozen=True, eq=False)
class Graph:
    """States Q, sets of classes, pairs (set, target) and hubs.

    `members` lists each set's classes; `set_of`, `target` [U] say what a pair is; `direct` lists each state's own
    pairs, `hubs` the hubs that it goes through, `inside` each hub's pairs. Dead ends are left out.
    """

    members: Lists
    set_of: Ints
    target: Ints
    direct: Lists
    hubs: Lists
    inside: Lists
    accept: NDArray[np.bool_]

    @property
    def states(self) -> int:
        """Q."""
        return len(self.direct)

    def out(self) -> tuple[Ints, Ints]:
        """Every (state, pair) there is, hubs followed through."""
        through, place = self.inside.at(self.hubs.items)
        return np.concatenate([self.direct.owner, self.hubs.owner[place]]), np.concatenate(
            [self.direct.items, through]
        )


def graph_of(
    delta: NDArray[Any], accept: NDArray[np.bool_], live: NDArray[np.bool_], group: Ints | None = None
) -> Graph:
    """The graph of a transition table [Q, C]; a set never mixes classes of different `group` [C]."""
    states, width = delta.shape
    group = np.zeros(width, dtype=np.int64) if group is None else group
    groups = int(group.max(initial=0)) + 1
    key = delta.astype(np.int64) * groups + group
    order = np.argsort(key, axis=1, kind="stable")
    key = np.take_along_axis(key, order, 1)
    head = np.ones(key.shape, dtype=bool)
    head[:, 1:] = key[:, 1:] != key[:, :-1]
    begin = np.flatnonzero(head)
    source, target = begin // width, key.ravel()[begin] // groups
    end = np.append(begin[1:], states * width)
    kept = live[target] & live[source]
    if not kept.any():
        none = Lists(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
        empty = Lists(np.zeros(states + 1, dtype=np.int64), np.zeros(0, dtype=np.int64))
        return Graph(none, none.items, none.items, empty, empty, none, accept)
    names = [np.add.reduceat(marks[order.ravel()], begin)[kept] for marks in _marks(width)]
    source, target, begin, end = source[kept], target[kept], begin[kept], end[kept]
    label, first = _alike(names)
    counts = end[first] - begin[first]
    places = np.repeat(begin[first] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    members = Lists(np.concatenate([[0], np.cumsum(counts)]), order.ravel()[places])
    code, pair = np.unique(label * states + target, return_inverse=True)
    return _with_hubs(members, code // states, code % states, source, pair.reshape(-1), states, accept)


def _marks(count: int) -> list[NDArray[np.uint64]]:
    """Two random 64-bit marks for each of `count` things."""
    rng = np.random.default_rng(count)
    return [rng.integers(0, 2**64, count, dtype=np.uint64) for _ in range(2)]


def _alike(names: list[NDArray[np.uint64]]) -> tuple[Ints, Ints]:
    """Numbers of equal sets, found by two independent 64-bit sums of their members; one place of each."""
    _, first, label = np.unique(names[0], return_index=True, return_inverse=True)
    label = label.reshape(-1)
    if not np.array_equal(names[1][first][label], names[1]):  # pragma: no cover - odds of 1 in 10^9
        _, first, label = np.unique(np.stack(names), axis=1, return_index=True, return_inverse=True)
    return label.reshape(-1).astype(np.int64), first


def _with_hubs(
    members: Lists,
    set_of: Ints,
    target: Ints,
    source: Ints,
    pair: Ints,
    states: int,
    accept: NDArray[np.bool_],
) -> Graph:
    """Put the pairs that the same states have behind a hub, where that makes fewer links."""
    order = np.argsort(pair, kind="stable")
    begin = np.searchsorted(pair[order], np.arange(len(set_of)))
    names = [np.add.reduceat(marks[source[order]], begin) for marks in _marks(states)]
    bundle, first = _alike(names)
    pairs, sources = np.bincount(bundle), np.bincount(pair, minlength=len(set_of))[first]
    worth = pairs * sources > 2 * (pairs + sources)
    number = np.where(worth, np.cumsum(worth) - 1, -1)
    hub_of_pair = number[bundle]
    count = int(worth.sum())
    hub = hub_of_pair[pair]
    links = np.unique(source[hub >= 0] * max(count, 1) + hub[hub >= 0])
    user, used = links // max(count, 1), links % max(count, 1)
    owner, held = hub_of_pair[hub_of_pair >= 0], np.flatnonzero(hub_of_pair >= 0)
    source, pair = source[hub < 0], pair[hub < 0]
    # Pairs that nearly all states have, each but for a few of its own: states as parts of a tree over these pairs.
    popular = np.bincount(pair, minlength=len(set_of)) >= _POPULAR
    if popular.any() and int(popular.sum()) * states <= _MOST_POPULAR:
        chosen = np.flatnonzero(popular)
        yes = popular[pair]
        tree, parts = by_tree(Lists.of(source[yes], (np.cumsum(popular) - 1)[pair[yes]], states), len(chosen))
        if len(tree.items) + len(parts.items) < int(yes.sum()) // 2:
            single = parts.items < len(chosen)
            source = np.concatenate([source[~yes], parts.owner[single]])
            pair = np.concatenate([pair[~yes], chosen[parts.items[single]]])
            user = np.concatenate([user, parts.owner[~single]])
            used = np.concatenate([used, count + parts.items[~single] - len(chosen)])
            owner = np.concatenate([owner, count + tree.owner])
            held = np.concatenate([held, chosen[tree.items]])
            count += len(tree)
    return Graph(
        members,
        set_of,
        target,
        Lists.of(source, pair, states),
        Lists.of(user, used, states),
        Lists.of(owner, held, count),
        accept,
    )


def by_tree(lists: Lists, size: int) -> tuple[Lists, Lists]:
    """Lists of numbers below `size` as few parts each: (what each node of a binary tree holds, each list's parts).

    A part is a number, or `size` + a node. Numbers that are in the same long lists stand side by side in the tree.
    """
    longest = np.argsort(-np.diff(lists.first), kind="stable")[:64]
    inside = np.zeros((len(longest), size), dtype=bool)
    items, place = lists.at(longest)
    inside[place, items] = True
    order = np.lexsort(inside[::-1])
    rank = np.empty(size, dtype=np.int64)
    rank[order] = np.arange(size)
    width = 1 << max(size - 1, 1).bit_length()
    owners, parts = [], []
    for begin in range(0, len(lists), 1024):
        some = np.arange(begin, min(begin + 1024, len(lists)))
        items, place = lists.at(some)
        level = np.zeros((len(some), width), dtype=bool)
        level[place, rank[items]] = True
        first = 0  # number of this level's first node; level 0 are the numbers themselves
        while True:
            count = level.shape[1]
            above = level[:, ::2] & level[:, 1::2] if count > 1 else np.zeros((len(some), 1), bool)
            row, column = np.nonzero(level & ~np.repeat(above, 2, axis=1)[:, :count])
            owners.append(some[row])
            parts.append(order[column] if count == width else size + first + column)
            first += 0 if count == width else count
            if count == 1:
                break
            level = above
    spans, node, step = [], 0, 2
    while step <= width:
        starts = np.arange(width // step)
        span = starts[:, None] * step + np.arange(step)
        spans.append((np.repeat(node + starts, (span < size).sum(1)), order[span[span < size]]))
        node, step = node + len(starts), 2 * step
    owner, part = np.concatenate(owners), np.concatenate(parts).astype(np.int64)
    used = np.unique(part[part >= size]) - size
    holders, held = (np.concatenate(both) for both in zip(*spans, strict=True))
    tree = Lists.of(holders, held, node).keep(used)
    number = np.concatenate([np.arange(size), size + np.cumsum(np.bincount(used, minlength=node)) - 1])
    return tree, Lists.of(owner, number[part], len(lists))


@dataclass(frozen=True, eq=False)
class Joined:
    """The graph of two automata at once, and which states of either make each of its states [Q]."""

    graph: Graph
    left: Ints
    right: Ints
    start: int


def join(
    left: Graph, group: Ints, start1: int, delta2: NDArray[Any], accept2: NDArray[np.bool_],
    live2: NDArray[np.bool_], start2: int, length: int, budget: int,
) -> Joined | None:  # fmt: skip
    """Both at once, on states that a word of at most `length` symbols passes; None past `budget` states.

    `group` [U of left's sets] names the column of `delta2` [Q2, groups] that a set's classes have.
    """
    right = len(delta2)
    column = group[left.set_of]

    def reached(pairs: Ints, other: Ints) -> Ints:
        after = delta2[other, column[pairs]]
        return np.where(live2[after], left.target[pairs] * right + after, -1)

    number = np.full(left.states * right, -1, dtype=np.int32)
    seen_hub = np.full(max(len(left.inside), 1) * right, -1, dtype=np.int32)
    wave = np.array([start1 * right + start2])
    states, depth = [wave], [np.zeros(1, dtype=np.int64)]
    hubs: list[Ints] = []
    number[wave] = 0
    count = 1
    while len(wave) and len(states) <= length:
        direct, place = left.direct.at(wave // right)
        through, where = left.hubs.at(wave // right)
        fresh_hubs = first_seen(through * right + (wave % right)[where], seen_hub)
        seen_hub[fresh_hubs] = np.arange(len(fresh_hubs)) + sum(map(len, hubs))
        hubs.append(fresh_hubs)
        inner, at = left.inside.at(fresh_hubs // right)
        targets = np.concatenate(
            [reached(direct, (wave % right)[place]), reached(inner, (fresh_hubs % right)[at])]
        )
        wave = first_seen(targets[targets >= 0], number)
        number[wave] = np.arange(count, count + len(wave), dtype=np.int32)
        count += len(wave)
        states.append(wave)
        depth.append(np.full(len(wave), len(states) - 1))
        if count > budget:
            return None
    every, all_hubs, far = np.concatenate(states), np.concatenate([*hubs, wave[:0]]), np.concatenate(depth)
    one, two = every // right, every % right
    # Pairs of the whole: (set, numbered target), from states and from hubs.
    direct, place = left.direct.at(one)
    inner, at = left.inside.at(all_hubs // right)
    links, where = left.hubs.at(one)
    code = np.concatenate([reached(direct, two[place]), reached(inner, (all_hubs % right)[at])])
    number = np.append(number, -1)
    goal = number[code].astype(np.int64)  # -1 for what leads nowhere, or past the length
    sets = left.set_of[np.concatenate([direct, inner])]
    hub = seen_hub[links * right + two[where]].astype(np.int64)
    ok_hub = hub >= 0
    accept = left.accept[one] & accept2[two]
    remaining = _steps(goal, np.concatenate([place, len(every) + at]), where[ok_hub], hub[ok_hub], accept)
    kept = (remaining >= 0) & (far + remaining <= length)
    if not kept[0]:
        return Joined(graph_of(np.zeros((1, 1)), np.zeros(1, bool), np.zeros(1, bool)), one[:1], two[:1], 0)
    new = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    goal = new[goal]
    names, pair = np.unique(np.where(goal >= 0, sets * (int(kept.sum()) + 1) + goal, -1), return_inverse=True)
    names, pair = names[names >= 0], pair.reshape(-1) - int((names < 0).any())
    from_state = np.arange(len(pair)) < len(direct)
    own = (pair >= 0) & from_state & np.concatenate([kept[place], np.zeros(len(inner), bool)])
    inside = (pair >= 0) & ~from_state
    linked = ok_hub & kept[where]
    graph = Graph(
        left.members,
        names // (int(kept.sum()) + 1),
        names % (int(kept.sum()) + 1),
        Lists.of(new[np.concatenate([place, at])[own]], pair[own], int(kept.sum())),
        Lists.of(new[where[linked]], hub[linked], int(kept.sum())),
        Lists.of(np.concatenate([place, at])[inside], pair[inside], len(all_hubs)),
        accept[kept],
    )
    return Joined(graph, one[kept], two[kept], 0)


def _steps(goal: Ints, source: Ints, user: Ints, hub: Ints, accept: NDArray[np.bool_]) -> Ints:
    """Fewest symbols from each state to an accepting one; -1 where there is no way.

    `goal`, `source` are moves (a source past the states is a hub); `user`, `hub` are the hubs that states go through.
    """
    states = len(accept)
    back = Lists.of(goal[goal >= 0], source[goal >= 0], states)
    users = Lists.of(hub, user, int(hub.max(initial=-1)) + 1)
    result = np.where(accept, 0, -1).astype(np.int64)
    seen = np.where(accept, 0, -1).astype(np.int32)
    done = np.full(len(users), -1, dtype=np.int32)
    wave, step = np.flatnonzero(accept), 0
    while len(wave):
        step += 1
        before, _ = back.at(wave)
        hubs = before[before >= states] - states
        hubs = first_seen(hubs[hubs < len(users)], done)
        done[hubs] = 0
        through, _ = users.at(hubs)
        wave = first_seen(np.concatenate([before[before < states], through]), seen)
        seen[wave] = 0
        result[wave] = step
    return result
