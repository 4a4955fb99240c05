"""The contract of guides, as `check_guide` and as a pytest parametrisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.guide import Guide
from redraft.denoiser.testing.binding import BINDING
from redraft.denoiser.testing.description import DESCRIPTION
from redraft.denoiser.testing.examination import Check, CheckResult, Examination
from redraft.denoiser.testing.facts import Bench, GuideFacts
from redraft.denoiser.testing.languages import LANGUAGES
from redraft.denoiser.testing.running import RUNNING
from redraft.denoiser.testing.texts import need_hypothesis

GUIDE_CHECKS: tuple[Check, ...] = (*DESCRIPTION, *BINDING, *RUNNING, *LANGUAGES)

Expected = Mapping[str, str] | Callable[[Guide], Mapping[str, str]]


def check_guide(
    guide: Guide,
    *,
    expected_failures: Mapping[str, str] | None = None,
    bench: Bench | None = None,
    more: Sequence[Check] = (),
    raises: bool = True,
) -> list[CheckResult]:
    """Hold a guide against its contract; one result a check, in order.

    `expected_failures` maps names of checks that may fail to the reason; `bench` brings another vocabulary,
    length or texts; `more` are further checks, such as `redraft.recipes.guide_checks.RECIPE_CHECKS`.
    Raises `ContractError` naming each failed check with its reason and remedy, unless `raises` is false.
    """
    return examine(guide, expected_failures, bench, more).report(raises=raises)


def examine(
    guide: Guide,
    expected_failures: Mapping[str, str] | None = None,
    bench: Bench | None = None,
    more: Sequence[Check] = (),
) -> Examination:
    """The examination behind `check_guide`: each check is run when its result is asked for."""
    need_hypothesis()
    if not isinstance(guide, Guide):
        raise InvalidGuideError(f"{guide!r} is no guide: pass an instance such as Keywords('storm')")
    return Examination(guide, GuideFacts(guide, bench or Bench()), (*GUIDE_CHECKS, *more), expected_failures)


def parametrize_with_checks(
    guides: Sequence[Guide],
    *,
    expected_failures: Expected | None = None,
    bench: Bench | None = None,
    more: Sequence[Check] = (),
) -> Any:
    """A pytest mark: the decorated test takes `guide` and `check` and calls `check(guide)`, once a pair.

    `expected_failures` maps names of checks to reasons, or is a function of a guide that gives such a map;
    they are shown as xfailed. A check that needs one that failed is skipped.

        @parametrize_with_checks([EvenWords(), Loud(2)])
        def test_contract(guide, check):
            check(guide)
    """
    import pytest

    cases = []
    for guide in guides:
        expected = expected_failures(guide) if callable(expected_failures) else expected_failures
        examination = examine(guide, expected, bench, more)
        for name in examination.checks:
            cases.append(pytest.param(guide, BoundCheck(examination, name), id=f"{guide}-{name}"[:120]))
    return pytest.mark.parametrize(("guide", "check"), cases)


class BoundCheck:
    """One check of one guide, to be called by a test."""

    def __init__(self, examination: Examination, name: str) -> None:
        self.examination, self.name = examination, name

    def __call__(self, guide: Guide) -> CheckResult:
        """Run the check; raises `ContractError` where it fails, skips and xfails as pytest does."""
        import pytest

        from redraft.denoiser.testing.examination import ContractError

        if guide is not self.examination.subject:
            raise InvalidGuideError(f"this check is of {self.examination.subject}: call it with that guide")
        result = self.examination.result(self.name)
        if result.outcome == "failed":
            raise ContractError(f"{guide}: {result}")
        if result.outcome == "skipped":
            pytest.skip(result.note)
        if result.outcome == "expected":
            pytest.xfail(result.note)
        return result

    def __repr__(self) -> str:
        return self.name
