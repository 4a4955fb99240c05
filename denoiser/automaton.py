"""Complete deterministic automata over a finite alphabet: the algebra of hard constraints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.refinement import canonical, distance, first_seen, product

State = TypeVar("State", bound=Hashable)
IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

#: Most reachable states that a product or a builder may make.
STATE_BUDGET = 50_000


@dataclass(frozen=True, eq=False)
class Automaton:
    """A language of symbol sequences: q_{i+1} = delta[q_i, classes[v_i]] from q_0 = start, ending in accept.

    `classes` [A] maps symbols to classes; `delta` [Q, C] is complete (a dead end is a state like any
    other); `accept` [Q]. Operators `&`, `|`, `~`, `-`, `^` act on reachable states and return the canonical
    minimal automaton; they raise ValueError on different alphabets and StateBudgetError past STATE_BUDGET.
    """

    classes: IntArray
    delta: IntArray
    start: int
    accept: BoolArray

    def __post_init__(self) -> None:
        classes = np.ascontiguousarray(self.classes, dtype=np.int32)
        delta = np.ascontiguousarray(self.delta, dtype=np.int32)
        accept = np.ascontiguousarray(self.accept, dtype=np.bool_)
        if classes.ndim != 1 or delta.ndim != 2 or accept.shape != delta.shape[:1]:
            raise ValueError(f"shapes {classes.shape}, {delta.shape}, {accept.shape}: want [A], [Q, C], [Q]")
        if not 0 <= self.start < len(delta) or (
            delta.size and not 0 <= delta.min() <= delta.max() < len(delta)
        ):
            raise ValueError(f"a transition or the start leaves the {len(delta)} states")
        if classes.size and not 0 <= classes.min() <= classes.max() < delta.shape[1]:
            raise ValueError(f"a symbol's class is outside the {delta.shape[1]} columns")
        for name, value in (
            ("classes", classes),
            ("delta", delta),
            ("accept", accept),
            ("start", int(self.start)),
        ):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @property
    def states(self) -> int:
        """Number of states Q, dead ones included."""
        return len(self.delta)

    @property
    def symbols(self) -> int:
        """Number of symbols A in the alphabet."""
        return len(self.classes)

    def run(self, word: Iterable[int], state: int | None = None) -> int:
        """The state after `word` from `state` (default: the start)."""
        q = self.start if state is None else state
        for symbol in word:
            q = int(self.delta[q, self.classes[symbol]])
        return q

    def accepts(self, word: Iterable[int]) -> bool:
        """Whether the whole `word` (bytes, or any sequence of symbols) is in the language."""
        return bool(self.accept[self.run(word)])

    def minimise(self) -> Automaton:
        """The canonical minimal automaton: equal languages give equal arrays."""
        return self if self.is_minimal else self._least

    @cached_property
    def _least(self) -> Automaton:
        return _minimal(self.classes, self.delta, self.start, self.accept)

    @property
    def is_minimal(self) -> bool:
        """Whether this is known to be the canonical minimal automaton of its language."""
        return bool(self.__dict__.get("_minimal"))

    def marked_minimal(self) -> Automaton:
        """This automaton, which the caller knows to be minimal and canonical."""
        self.__dict__["_minimal"] = True
        return self

    @cached_property
    def key(self) -> str:
        """Stable hash of the language (hex)."""
        least = self.minimise()
        digest = hashlib.blake2b(repr((least.symbols, least.delta.shape)).encode(), digest_size=16)
        for array in (least.classes, least.delta, least.accept):
            digest.update(array.tobytes())
        return digest.hexdigest()

    def __and__(self, other: Automaton) -> Automaton:
        return self._combine(other, (False, False, False, True), "&")

    def __or__(self, other: Automaton) -> Automaton:
        return self._combine(other, (False, True, True, True), "|")

    def __sub__(self, other: Automaton) -> Automaton:
        return self._combine(other, (False, False, True, False), "-")

    def __xor__(self, other: Automaton) -> Automaton:
        return self._combine(other, (False, True, True, False), "^")

    def __invert__(self) -> Automaton:
        least = self.minimise()  # its states and classes are numbered alike whatever is accepted
        return Automaton(least.classes, least.delta, least.start, ~least.accept).marked_minimal()

    def meet(self, other: Automaton, entries: int) -> Automaton | None:
        """`self & other`, or None where its table of states by classes would have more than `entries` entries."""
        joint = self.classes.astype(np.int64) * other.delta.shape[1] + other.classes
        budget = entries // max(1, int(np.count_nonzero(np.bincount(joint))))
        try:
            return self._combine(other, (False, False, False, True), "&", budget)
        except StateBudgetError:
            if budget >= STATE_BUDGET:
                raise
            return None

    def _combine(
        self,
        other: Automaton,
        truth: tuple[bool, bool, bool, bool],
        name: str,
        budget: int | None = None,
    ) -> Automaton:
        if not isinstance(other, Automaton):
            return NotImplemented
        if self.symbols != other.symbols:
            raise ValueError(f"alphabets of {self.symbols} and {other.symbols} symbols cannot be combined")
        left, right = self.minimise(), other.minimise()
        parts = product(
            (left.classes, left.delta, left.start, left.accept),
            (right.classes, right.delta, right.start, right.accept),
            truth,
            min(STATE_BUDGET, STATE_BUDGET if budget is None else budget),
        )
        if parts is None:
            raise StateBudgetError(
                f"{left.states} {name} {right.states} states need more than {STATE_BUDGET} combined states; "
                "use fewer or smaller constraints",
                sizes=(left.states, right.states),
            )
        return _minimal(*parts)

    def same(self, other: Automaton) -> bool:
        """Whether both are the same language."""
        return self.key == other.key

    def empty(self) -> bool:
        """Whether no word is accepted."""
        return self.shortest() is None

    def shortest(self) -> int | None:
        """Length of the shortest accepted word, in symbols; None if the language is empty."""
        least = self.minimise()  # every class of it is used, every state reached
        steps = least.depths[least.accept]
        return int(steps.min()) if len(steps) else None

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """Fewest classes read from the start to each state [Q]; -1 where there is no way."""
        depth = np.full(self.states, -1, dtype=np.int64)
        number = np.full(self.states, -1, dtype=np.int32)
        frontier, step = np.array([self.start]), 0
        while len(frontier):
            number[frontier] = 0
            depth[frontier] = step
            frontier, step = first_seen(self.delta[frontier].ravel(), number), step + 1
        return depth

    @cached_property
    def remaining(self) -> NDArray[np.int64]:
        """Fewest classes read from each state to an accepting one [Q]; -1 where there is no way."""
        return distance(self.delta, self.accept)

    def shortest_word(self) -> tuple[int, ...] | None:
        """A shortest accepted word; None if the language is empty."""
        least = self.minimise()  # every class of it is used
        far, state = least.remaining, least.start
        if far[state] < 0:
            return None
        word = []
        while far[state] > 0:
            column = int(np.flatnonzero(far[least.delta[state]] == far[state] - 1)[0])
            word.append(int(np.flatnonzero(least.classes == column)[0]))
            state = int(least.delta[state, column])
        return tuple(word)

    def within(self, length: int) -> Automaton:
        """The words of at most `length` symbols, and others: states that no such word passes are dead.

        Cuts states that a canvas of `length` tokens can never use; the words it keeps are right up to `length`.
        """
        least = self.minimise()
        far = (least.remaining < 0) | (least.depths + least.remaining > length)
        if far.sum() <= 1:  # the dead end, if there is one
            return least
        if far[least.start]:
            return Automaton.none(self.symbols)
        dead = int(np.flatnonzero(far)[0])
        delta = np.where(far[least.delta], dead, least.delta).astype(np.int32)
        delta[dead] = dead
        accept = least.accept & ~far
        return _minimal(least.classes, delta, least.start, accept)

    @staticmethod
    def all(alphabet: int = 256) -> Automaton:
        """Every word."""
        return _minimal(np.zeros(alphabet, np.int32), np.zeros((1, 1), np.int32), 0, np.ones(1, bool))

    @staticmethod
    def none(alphabet: int = 256) -> Automaton:
        """No word."""
        return _minimal(np.zeros(alphabet, np.int32), np.zeros((1, 1), np.int32), 0, np.zeros(1, bool))

    @staticmethod
    def of_word(word: Sequence[int], alphabet: int = 256) -> Automaton:
        """Exactly `word`."""
        end, dead = len(word), len(word) + 1
        return Automaton.build(
            0,
            lambda i, symbol: i + 1 if i < end and word[i] == symbol else dead,
            lambda i: i == end,
            alphabet,
            classes=byte_classes(*({symbol} for symbol in set(word)), alphabet=alphabet),
        )

    @staticmethod
    def build(
        start: State,
        step: Callable[[State, int], State | None],
        accepting: Callable[[State], bool],
        alphabet: int = 256,
        classes: Sequence[int] | NDArray[Any] | None = None,
        budget: int | None = None,
    ) -> Automaton:
        """Explore the hashable states that `step(state, symbol)` reaches from `start` (None: a dead end).

        `classes` [alphabet] promises that symbols of one class lead to the same states; `step` is then
        called with one symbol per class. `byte_classes(b"aeiou", b" ")` makes such an array. Example, the
        texts of exactly three lines:

            Automaton.build(0, lambda n, byte: n + 1 if n < 2 or None, lambda n: n == 2,
                            classes=byte_classes(b"\\n"))

        Raises StateBudgetError when more than `budget` (default STATE_BUDGET) states are reached.
        """
        groups = np.arange(alphabet) if classes is None else np.asarray(classes)
        if groups.shape != (alphabet,):
            raise ValueError(f"classes has shape {groups.shape}; the alphabet has {alphabet} symbols")
        _, representative, inverse = np.unique(groups, return_index=True, return_inverse=True)
        symbols = representative.tolist()
        limit = STATE_BUDGET if budget is None else budget
        index: dict[State | None, int] = {start: 0}
        order: list[State | None] = [start]
        rows: list[list[int]] = []
        while len(rows) < len(order):
            state = order[len(rows)]
            row = []
            for symbol in symbols:
                target = None if state is None else step(state, symbol)
                number = index.setdefault(target, len(order))
                if number == len(order):
                    order.append(target)
                row.append(number)
            rows.append(row)
            if len(order) > limit:
                raise StateBudgetError(
                    f"the language needs more than {limit:,} states: ask for smaller numbers or fewer things",
                    sizes=(limit,),
                )
        accept = np.array([state is not None and bool(accepting(state)) for state in order])
        delta = np.array(rows, dtype=np.int32).reshape(len(order), len(symbols))
        return _minimal(inverse.reshape(-1).astype(np.int32), delta, 0, accept)


def byte_classes(*groups: Iterable[int], alphabet: int = 256) -> IntArray:
    """Coarsest classes [alphabet] that tell the groups (iterables of symbols, such as bytes) apart."""
    label = np.zeros(alphabet, dtype=np.int64)
    for group in groups:
        member = np.zeros(alphabet, dtype=np.int64)
        member[list(group)] = 1
        label = np.unique(label * 2 + member, return_inverse=True)[1].reshape(-1)
    return label.astype(np.int32)


def of_distinct(classes: IntArray, delta: IntArray, start: int, accept: BoolArray) -> Automaton:
    """The canonical automaton of states that the caller knows to be pairwise different where they can be reached."""
    return Automaton(*canonical(classes, delta, start, accept, distinct=True)).marked_minimal()


def _minimal(classes: IntArray, delta: IntArray, start: int, accept: BoolArray) -> Automaton:
    return Automaton(*canonical(classes, delta, start, accept)).marked_minimal()
