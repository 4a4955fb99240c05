"""Numbers in one spelling each: no exponent, no trailing zero behind the point, no -0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from redraft.denoiser.automaton import Automaton, byte_classes

#: Significant digits of a bounded number with a point: any two such are different doubles.
DIGITS = 15
#: Digits behind the point of a bounded number, unless its bounds have more.
DECIMALS = 6
#: Largest `multipleOf`: the automaton counts remainders.
MOST_MULTIPLE = 1000

_DIGITS, _MINUS, _POINT = range(0x30, 0x3A), 0x2D, 0x2E
_LESS, _EQUAL, _MORE = -1, 0, 1


@dataclass(frozen=True)
class Limit:
    """An end of a range; `strict` where it is not in the range itself."""

    value: Decimal
    strict: bool = False


@dataclass(frozen=True)
class _Magnitude:
    """A bound on the digits of a number without its sign: digits before and behind the point."""

    whole: str
    rest: str
    strict: bool

    @classmethod
    def of(cls, limit: Limit, negative: bool) -> _Magnitude:
        text = format(-limit.value if negative else limit.value, "f")
        whole, _, rest = text.partition(".")
        return cls(whole.lstrip("0") or "0", rest.rstrip("0"), limit.strict)

    def read(self, order: int, count: int, digit: str) -> int:
        """The order of the whole digits so far against the first `count` + 1 of the bound."""
        if count >= len(self.whole):
            return _MORE
        return order or (digit > self.whole[count]) - (digit < self.whole[count])

    def pointed(self, order: int, count: int) -> int:
        """The order once `count` whole digits are all."""
        return _LESS if count < len(self.whole) else order

    def read_rest(self, order: int, count: int, digit: str) -> int:
        wanted = self.rest[count] if count < len(self.rest) else "0"
        return order or (digit > wanted) - (digit < wanted)

    def ended(self, order: int, count: int) -> int:
        return _LESS if order == _EQUAL and count < len(self.rest) else order


@dataclass(frozen=True)
class _State:
    phase: str = "start"  # start, sign, zero, whole, point, rest
    negative: bool = False
    whole: int = 0  # digits before the point, as far as they count
    rest: int = 0
    zero: bool = False  # the last digit behind the point is 0
    low: int = _EQUAL
    high: int = _EQUAL
    remainder: int = 0

    def against(
        self, pair: tuple[_Magnitude | None, _Magnitude | None]
    ) -> Iterator[tuple[_Magnitude | None, int]]:
        """Each bound with how the digits so far compare with it."""
        return zip(pair, (self.low, self.high), strict=True)


@lru_cache(maxsize=256)
def number(
    whole_only: bool = False,
    low: Limit | None = None,
    high: Limit | None = None,
    multiple: int = 1,
    unlimited: bool = False,
) -> Automaton:
    """Decimal spellings of the numbers from `low` to `high`: -?(0|[1-9][0-9]*)(\\.[0-9]*[1-9])?, never -0.

    `whole_only` leaves out fractions; `multiple` (whole, with `whole_only`) keeps its multiples. A number with
    bounds and a point has at most DIGITS digits, DECIMALS of them (or as many as its bounds) behind the point:
    it then compares as a double as it does as a decimal. `unlimited` drops this.
    """
    reader = _Reader.of(whole_only, low, high, multiple, unlimited)
    alphabet = byte_classes(*({byte} for byte in (*_DIGITS, _MINUS, _POINT)))
    return Automaton.build(_State(), reader.step, reader.accepting, classes=alphabet)


_Pair = tuple[_Magnitude | None, _Magnitude | None]  # least and greatest magnitude; None: no such bound


@dataclass(frozen=True)
class _Reader:
    """Reads a number digit by digit; `bounds` by sign, None where no number of that sign is in the range."""

    bounds: dict[bool, _Pair | None]
    whole_only: bool
    limited: bool
    decimals: int
    counted: int
    multiple: int

    @classmethod
    def of(
        cls, whole_only: bool, low: Limit | None, high: Limit | None, multiple: int, unlimited: bool
    ) -> _Reader:
        bounds = {False: _pair(low, high, False), True: _pair(high, low, True)}
        known = [bound for pair in bounds.values() if pair for bound in pair if bound]
        limited = (low is not None or high is not None) and not unlimited and not whole_only
        decimals = max([DECIMALS * limited, *(len(bound.rest) for bound in known)])
        counted = max([(DIGITS + 1) * limited, *(len(bound.whole) + 1 for bound in known)])
        return cls(bounds, whole_only, limited, decimals, counted, multiple)

    def step(self, state: _State, byte: int) -> _State | None:
        if byte == _MINUS:
            ok = state.phase == "start" and self.bounds[True] is not None
            return _State("sign", negative=True) if ok else None
        pair = self.bounds[state.negative]
        if pair is None:
            return None
        if byte == _POINT:
            return self._point(state, pair)
        if byte not in _DIGITS or state.phase == "zero":
            return None
        return (self._behind if state.phase in ("point", "rest") else self._before)(state, pair, chr(byte))

    def _before(self, state: _State, pair: _Pair, digit: str) -> _State:
        phase = "zero" if digit == "0" and state.phase in ("start", "sign") else "whole"
        low, high = (
            bound.read(order, state.whole, digit) if bound else _EQUAL for bound, order in state.against(pair)
        )
        remainder = (state.remainder * 10 + int(digit)) % self.multiple
        count = min(state.whole + 1, self.counted)
        return _State(phase, state.negative, count, 0, False, low, high, remainder)

    def _point(self, state: _State, pair: _Pair) -> _State | None:
        if self.whole_only or state.phase not in ("zero", "whole"):
            return None
        low, high = (
            bound.pointed(order, state.whole) if bound else _EQUAL for bound, order in state.against(pair)
        )
        return _State("point", state.negative, state.whole * self.limited, 0, False, low, high)

    def _behind(self, state: _State, pair: _Pair, digit: str) -> _State | None:
        if self.limited and (state.rest >= self.decimals or state.whole + state.rest >= DIGITS):
            return None
        low, high = (
            bound.read_rest(order, state.rest, digit) if bound else _EQUAL
            for bound, order in state.against(pair)
        )
        count = min(state.rest + 1, self.decimals + (not self.limited))
        return _State("rest", state.negative, state.whole, count, digit == "0", low, high)

    def accepting(self, state: _State) -> bool:
        pair = self.bounds[state.negative]
        if pair is None or state.phase not in ("zero", "whole", "rest") or state.zero or state.remainder:
            return False
        if state.negative and state.phase == "zero":
            return False
        behind = state.phase == "rest"
        low, high = (
            bound.ended(order if behind else bound.pointed(order, state.whole), state.rest)
            if bound
            else order
            for bound, order in state.against(pair)
        )
        above = pair[0] is None or low == _MORE or (low == _EQUAL and not pair[0].strict)
        below = pair[1] is None or high == _LESS or (high == _EQUAL and not pair[1].strict)
        return above and below


def _pair(least: Limit | None, most: Limit | None, negative: bool) -> _Pair | None:
    """The range of the digits of the numbers of one sign."""
    flip = -1 if negative else 1
    if most is not None and flip * most.value < 0:
        return None
    binds = least is not None and (flip * least.value > 0 or (least.value == 0 and least.strict))
    return (
        _Magnitude.of(least, negative) if least is not None and binds else None,
        _Magnitude.of(most, negative) if most is not None else None,
    )


def spelled(value: int | float) -> str:
    """A number in the one spelling that `number` has for it."""
    exact = Decimal(value) if isinstance(value, int) or value.is_integer() else Decimal(repr(value))
    text = format(exact, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
