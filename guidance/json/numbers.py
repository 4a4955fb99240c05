"""Numbers in one spelling each: no exponent, no trailing zero behind the point, no -0."""

from __future__ import annotations

from collections.abc import Iterable
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
    return Automaton.build(
        _State(), *_machine(whole_only, low, high, multiple, unlimited), classes=byte_classes(*_bytes())
    )


def _bytes() -> Iterable[set[int]]:
    return ({byte} for byte in (*_DIGITS, _MINUS, _POINT))


def _machine(whole_only: bool, low: Limit | None, high: Limit | None, multiple: int, unlimited: bool):  # type: ignore[no-untyped-def]
    ends = {False: (low, high), True: (high, low)}  # by sign: least and greatest magnitude
    bounds: dict[bool, tuple[_Magnitude | None, _Magnitude | None] | None] = {}
    for negative, (least, most) in ends.items():
        flip = -1 if negative else 1
        if most is not None and flip * most.value < 0:
            bounds[negative] = None  # nothing of this sign
            continue
        useful = least is not None and (flip * least.value > 0 or (least.value == 0 and least.strict))
        bounds[negative] = (
            _Magnitude.of(least, negative) if least is not None and useful else None,
            _Magnitude.of(most, negative) if most is not None else None,
        )
    all_bounds = [bound for pair in bounds.values() if pair for bound in pair if bound]
    limited = (low is not None or high is not None) and not unlimited and not whole_only
    decimals = max([DECIMALS * limited, *(len(bound.rest) for bound in all_bounds)])
    most_whole = max([0, *(len(bound.whole) + 1 for bound in all_bounds)])
    counted = max(most_whole, DIGITS + 1) if limited else most_whole

    def step(state: _State, byte: int) -> _State | None:
        if byte == _MINUS:
            ok = state.phase == "start" and bounds[True] is not None
            return _State("sign", negative=True) if ok else None
        pair = bounds[state.negative]
        if pair is None:
            return None
        if byte == _POINT:
            if whole_only or state.phase not in ("zero", "whole"):
                return None
            low, high = (
                bound.pointed(order, state.whole) if bound else _EQUAL
                for bound, order in zip(pair, (state.low, state.high), strict=True)
            )
            whole = state.whole if limited else 0
            return _State("point", state.negative, whole, 0, False, low, high)
        if byte not in _DIGITS or state.phase == "zero":
            return None
        digit = chr(byte)
        orders = zip(pair, (state.low, state.high), strict=True)
        if state.phase in ("point", "rest"):
            if limited and (state.rest >= decimals or state.whole + state.rest >= DIGITS):
                return None
            low, high = (b.read_rest(order, state.rest, digit) if b else _EQUAL for b, order in orders)
            count = min(state.rest + 1, decimals + (not limited))
            return _State("rest", state.negative, state.whole, count, digit == "0", low, high)
        low, high = (b.read(order, state.whole, digit) if b else _EQUAL for b, order in orders)
        phase = "zero" if digit == "0" and state.phase in ("start", "sign") else "whole"
        remainder = (state.remainder * 10 + int(digit)) % multiple
        return _State(phase, state.negative, min(state.whole + 1, counted), 0, False, low, high, remainder)

    def accepting(state: _State) -> bool:
        pair = bounds[state.negative]
        if pair is None or state.phase not in ("zero", "whole", "rest") or state.zero or state.remainder:
            return False
        if state.negative and state.phase == "zero":
            return False
        low, high = state.low, state.high
        if state.phase == "rest":
            low, high = (b.ended(o, state.rest) if b else o for b, o in zip(pair, (low, high), strict=True))
        else:
            low, high = (
                b.ended(b.pointed(o, state.whole), 0) if b else o
                for b, o in zip(pair, (low, high), strict=True)
            )
        above = pair[0] is None or low == _MORE or (low == _EQUAL and not pair[0].strict)
        below = pair[1] is None or high == _LESS or (high == _EQUAL and not pair[1].strict)
        return above and below

    return step, accepting


def spelled(value: int | float) -> str:
    """A number in the one spelling that `number` has for it."""
    exact = Decimal(value) if isinstance(value, int) or value.is_integer() else Decimal(repr(value))
    text = format(exact, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text
