"""The kit that checks guides, on guides that are broken in one way each: each fails exactly its check."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from redraft.denoiser import Automaton, Bound, HardGuide, InvalidGuideError, Scene, SoftGuide, Span, Verdict
from redraft.denoiser.automaton import byte_classes
from redraft.denoiser.errors import UnwritableTextError
from redraft.denoiser.guide import Strength
from redraft.denoiser.lift import lift
from redraft.denoiser.regex import compile_regex
from redraft.denoiser.steering import broadcasts
from redraft.denoiser.testing import (
    GUIDE_CHECKS,
    Bench,
    Check,
    ContractError,
    ToyDenoiser,
    check_guide,
    parametrize_with_checks,
    toy_vocabulary,
)
from redraft.denoiser.testing.guides import examine
from redraft.guidance import Tokens

BENCH = Bench(examples=10, samples=12)
COUNT = itertools.count()


@dataclass(frozen=True)
class Soft(SoftGuide):
    """A sound soft guide: a constant bias for one token."""

    name: ClassVar[str] = "soft"
    level: float = 1.0

    def bind(self, scene: Scene) -> Bound:
        return Likes(self, scene)

    def check(self, text: str) -> Verdict:
        return self.verdict("a" in text)


class Likes(Bound):
    def __init__(self, guide: Any, scene: Scene) -> None:
        super().__init__(guide, scene)
        self.vector = torch.zeros(len(scene.vocabulary), device=scene.device)
        self.vector[7] = guide.level

    def bias(self, step):  # type: ignore[no-untyped-def]
        return self.vector


@dataclass(frozen=True)
class Hard(HardGuide):
    """A sound hard guide: the text holds no `z`."""

    name: ClassVar[str] = "hard"
    level: int = 1

    def language(self, scene: Scene) -> Automaton:
        return of(scene, "[^z]*")

    def check(self, text: str) -> Verdict:
        return self.verdict("z" not in text)


def of(scene: Scene, pattern: str) -> Automaton:
    return lift(compile_regex(f"(?s:{pattern})"), scene.vocabulary.token_bytes, scene.vocabulary.prefix)


BROKEN: dict[str, SoftGuide | HardGuide] = {}


def breaks(check: str) -> Any:
    """Register a broken guide under the check that it is to fail."""

    def register(cls: Any) -> Any:
        BROKEN[check] = dataclass(frozen=True)(cls)()
        return cls

    return register


def bound(check: str) -> Any:
    """Register a broken `Bound` class, in a soft guide, under the check that it is to fail."""

    def register(cls: type[Bound]) -> type[Bound]:
        @dataclass(frozen=True)
        class Broken(Soft):
            name: ClassVar[str] = "broken"

            def bind(self, scene: Scene) -> Bound:
                return cls(self, scene)

        BROKEN[check] = Broken()
        return cls

    return register


@breaks("name-and-strength")
class Shouts(Soft):
    name: ClassVar[str] = "LOUD one"


@breaks("is-a-value")
class Unhashable(Soft):
    def __hash__(self) -> int:
        raise TypeError("unhashable")


class Doubles(Soft):
    def __init__(self, level: float = 1.0) -> None:
        object.__setattr__(self, "level", 2 * level)


BROKEN["round-trip"] = dataclass(frozen=True, init=False)(Doubles)()


@breaks("wrong-types")
class Untyped(Soft):
    level: Any = 1.0

    def __post_init__(self) -> None:
        if self.level < 0:
            raise InvalidGuideError(f"level is {self.level}: use a number from 0")


@breaks("room")
class Roomy(Soft):
    def room(self) -> int | None:
        return -5


@breaks("check-never-raises")
class Narrow(Soft):
    def check(self, text: str) -> Verdict:
        text.encode("utf-16-le").decode("ascii")
        return self.verdict(True)


@breaks("verdict")
class Overlong(Soft):
    def check(self, text: str) -> Verdict:
        return self.verdict(True, spans=(Span(0, len(text.encode())),))


@breaks("check-is-pure")
class Fickle(Soft):
    def check(self, text: str) -> Verdict:
        return self.verdict(True, note=f"asked {next(COUNT)} times")


@breaks("binds")
class Forgets(Soft):
    def bind(self, scene: Scene) -> Bound:
        Likes(self, scene)
        return None  # type: ignore[return-value]


@bound("hook-signatures")
class Renamed(Likes):
    def bias(self, now):  # type: ignore[no-untyped-def, override]
        return self.vector


@breaks("language")
class Bytes(Hard):
    def language(self, scene: Scene) -> Automaton:
        return compile_regex("[^z]*")


@bound("hook-shapes")
class Short(Likes):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return self.vector[:7]


@bound("hook-dtypes")
class Double(Likes):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return self.vector.double()


@bound("bias-finite")
class Forbids(Likes):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.where(self.vector > 0, -torch.inf, 0.0)


@bound("no-edits-in-place")
class Sorts(Likes):
    def anchors(self, step, draft, confidence):  # type: ignore[no-untyped-def]
        draft.clamp_(max=9)


@bound("deterministic")
class Dice(Likes):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return torch.rand_like(self.vector)


@bound("during")
class Remembers(Likes):
    first: Any = None

    def bias(self, step):  # type: ignore[no-untyped-def]
        if step.index == 0:
            self.first = 2.0 * self.vector
        return self.first


@bound("bind-twice")
class Grows(Likes):
    def __init__(self, guide: Any, scene: Scene) -> None:
        super().__init__(guide, scene)
        self.vector = self.vector * next(COUNT)


@bound("rows-independent")
class Averages(Likes):
    def bias(self, step):  # type: ignore[no-untyped-def]
        return -step.logits.exp().mean((0, 1)).clamp(max=3)


@breaks("zero-is-nothing")
class AtLeast(Soft):
    def __mul__(self, scale: float) -> Any:
        return super().__mul__(max(scale, 9.0))

    __rmul__ = __mul__


@bound("pins-untouched")
class Reopens(Likes):
    def revise(self, step):  # type: ignore[no-untyped-def]
        return ~step.canvas.open


@bound("early-errors")
class Late(Likes):
    def bias(self, step):  # type: ignore[no-untyped-def]
        if b"k" not in self.scene.vocabulary.token_bytes:
            raise UnwritableTextError("the vocabulary has no k")
        return self.vector


@breaks("language-within-outer")
class Inside(Hard):
    def outer(self, scene: Scene) -> Automaton:
        return of(scene, "[^yz]*")

    def check(self, text: str) -> Verdict:
        return self.verdict("unknown" if "y" in text else "z" not in text)


@breaks("sampled-words")
class Longer(Hard):
    def check(self, text: str) -> Verdict:
        return self.verdict("z" not in text and len(text) % 2 == 0)

    def outer(self, scene: Scene) -> Automaton:
        return of(scene, ".*")


@breaks("adversarial-texts")
class Latin(Hard):
    def check(self, text: str) -> Verdict:
        return self.verdict("z" not in text and "\u00a0" not in text and "\u0430" not in text)


@breaks("outer-holds-check")
class Cased(Hard):
    """The language wants none of z and Z; the check knows only z."""

    def language(self, scene: Scene) -> Automaton:
        return of(scene, "[^zZ]*")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_guide_fails_exactly_its_check(name: str) -> None:
    examination = examine(BROKEN[name], bench=BENCH)
    assert [r.name for r in examination.results() if r.outcome == "failed"] == [name]
    with pytest.raises(ContractError, match=f"(?s){name} failed: .*why it matters: .*remedy: "):
        examination.report()


def test_every_check_has_a_guide_that_fails_it() -> None:
    assert set(BROKEN) == {check.name for check in GUIDE_CHECKS} - {"cost"}
    assert all(check.reason and check.remedy for check in GUIDE_CHECKS)


@pytest.mark.parametrize("guide", [Soft(), Hard()], ids=str)
def test_a_sound_guide_passes(guide: Any) -> None:
    results = {result.name: result for result in check_guide(guide, bench=BENCH)}
    outcomes = {result.outcome for result in results.values()}
    assert outcomes == {"passed", "skipped"}
    assert {r.note for r in results.values() if r.outcome == "skipped"} == {"it does not apply"}
    assert "ms a step" in results["cost"].note


def test_expected_failures_have_reasons_and_an_end() -> None:
    declared = {"hook-dtypes": "a double is wanted here"}
    results = {r.name: r for r in check_guide(BROKEN["hook-dtypes"], expected_failures=declared, bench=BENCH)}
    assert results["hook-dtypes"].outcome == "expected"
    assert "a double is wanted here (bias is torch.float64" in results["hook-dtypes"].note
    assert results["rows-independent"].outcome == "skipped"
    with pytest.raises(ContractError, match=r"expected to fail \(old\) and passes: drop the declaration"):
        check_guide(Soft(), expected_failures={"room": "old"}, bench=BENCH)
    with pytest.raises(InvalidGuideError, match="'rooom', which is no check: use one of name-and-strength"):
        check_guide(Soft(), expected_failures={"rooom": "typo"})
    with pytest.raises(InvalidGuideError, match="'room' has no reason"):
        check_guide(Soft(), expected_failures={"room": " "})
    with pytest.raises(InvalidGuideError, match="is no guide"):
        check_guide(Soft)  # type: ignore[arg-type]


def test_further_checks_and_another_bench() -> None:
    even = Check("even", "odd ones are left over", "add one", lambda facts: 1 / (facts.guide.level % 2))
    with pytest.raises(ContractError, match="even failed: ZeroDivisionError"):
        check_guide(Hard(2), bench=BENCH, more=[even])
    words = byte_classes(b"abc ")
    assert len(set(words.tolist())) == 2
    few = Bench(ToyDenoiser(toy_vocabulary(b"abc ", ())), length=9, texts=("abc",), examples=10, samples=4)
    assert {r.name: r for r in check_guide(Tokens(2, 5), bench=few)}["language"].note.startswith("7 states")


@parametrize_with_checks(
    [Soft(), BROKEN["hook-dtypes"]],
    expected_failures=lambda guide: {} if guide == Soft() else {"hook-dtypes": "on purpose"},
    bench=BENCH,
)
def test_parametrized(guide: Any, check: Any) -> None:
    assert check(guide).outcome == "passed"
    with pytest.raises(InvalidGuideError, match="this check is of"):
        check(Hard(3))


def test_a_parametrized_check_says_what_failed() -> None:
    mark = parametrize_with_checks([BROKEN["room"]], bench=BENCH)
    cases = {case.id: case.values for case in mark.args[1]}
    guide, check = cases[f"{BROKEN['room']}-room"]
    with pytest.raises(ContractError, match=r"room\(\) is -5, not a number of tokens"):
        check(guide)


class Weighs(Likes):
    def weigh(self, step, draft):  # type: ignore[no-untyped-def]
        return (draft == 7).sum(-1).double()


@dataclass(frozen=True)
class Searching(Soft):
    """A sound guide of whole drafts: the kit runs it with particles."""

    strength: ClassVar[Strength] = "searched"

    def bind(self, scene: Scene) -> Bound:
        return Weighs(self, scene)


class Stubborn(Searching):
    def __mul__(self, scale: float) -> Any:
        return super().__mul__(max(scale, 9.0))

    __rmul__ = __mul__


def test_a_guide_that_weighs_drafts_is_run_with_particles_and_not_at_scale_0() -> None:
    for guide in (Searching(), 2.0 * Searching()):
        results = {result.name: result for result in check_guide(guide, bench=BENCH)}
        assert {result.outcome for result in results.values()} == {"passed", "skipped"}
        assert "weigh" in results["cost"].note
    failed = [r for r in check_guide(Stubborn(), bench=BENCH, raises=False) if r.outcome == "failed"]
    assert [r.name for r in failed] == ["zero-is-nothing"]
    assert "add particles" in failed[0].note


@pytest.mark.parametrize("whole", [(2, 3, 4), (1, 1, 2)])
def test_a_shape_broadcasts_where_torch_expands_it(whole: tuple[int, ...]) -> None:
    for size in range(5):
        for shape in itertools.product((1, 2, 3, 4), repeat=size):
            try:
                torch.empty(shape).expand(whole)
            except RuntimeError:
                assert not broadcasts(shape, whole)
            else:
                assert broadcasts(shape, whole)
