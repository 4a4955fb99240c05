"""Two automata at once, joined on their sparse graphs: only pairs of states that a canvas can use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.graph import Graph, Ints, Lists, graph_of
from redraft.denoiser.refinement import first_seen


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
