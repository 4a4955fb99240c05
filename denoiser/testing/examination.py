"""Checks of a contract: each with a name, a reason and a remedy, run once and after those it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from redraft.denoiser.errors import InvalidGuideError, RedraftError

Outcome = Literal["passed", "failed", "expected", "skipped"]


class ContractError(RedraftError, AssertionError):
    """A subject breaks its contract; the message has each failed check with its reason and remedy."""


@dataclass(frozen=True)
class Check:
    """One thing that a contract asks for.

    `run(facts)` returns a note (figures to show, or nothing) and raises where the subject falls short;
    `reason` says why the contract asks for it, `remedy` what to do. A check is skipped where one of the
    checks in `needs` fails, or where `applies(facts)` is false.
    """

    name: str
    reason: str
    remedy: str
    run: Callable[[Any], str | None]
    needs: tuple[str, ...] = ()
    applies: Callable[[Any], bool] = lambda facts: True


@dataclass(frozen=True)
class CheckResult:
    """What one check found; "expected" is a failure that was declared beforehand."""

    name: str
    outcome: Outcome
    reason: str
    remedy: str
    note: str = ""

    def __str__(self) -> str:
        found = f": {self.note}" if self.note else ""
        if self.outcome != "failed":
            return f"{self.name} {self.outcome}{found}"
        return f"{self.name} failed{found}\n    why it matters: {self.reason}\n    remedy: {self.remedy}"


class Examination:
    """A subject's facts under a list of checks.

    `expected_failures` maps names of checks to the reason why they may fail; one that passes all the same
    is a failure, so that the declaration does not outlive its cause.
    Raises `InvalidGuideError` for a name that no check has or a reason that is empty.
    """

    def __init__(
        self,
        subject: object,
        facts: Any,
        checks: Sequence[Check],
        expected_failures: Mapping[str, str] | None = None,
    ) -> None:
        self.subject, self.facts = subject, facts
        self.checks = {check.name: check for check in checks}
        self.expected = dict(expected_failures or {})
        self._results: dict[str, CheckResult] = {}
        self._blocked: set[str] = set()
        for name, reason in self.expected.items():
            if name not in self.checks:
                raise InvalidGuideError(
                    f"expected_failures names {name!r}, which is no check: use one of {', '.join(self.checks)}"
                )
            if not isinstance(reason, str) or not reason.strip():
                raise InvalidGuideError(f"the expected failure {name!r} has no reason: give one")

    def result(self, name: str) -> CheckResult:
        """The result of one check, after those it needs."""
        if name not in self._results:
            self._results[name] = self._run(self.checks[name])
        return self._results[name]

    def results(self) -> list[CheckResult]:
        """All results, in the order of the checks."""
        return [self.result(name) for name in self.checks]

    def report(self, *, raises: bool = True) -> list[CheckResult]:
        """All results; raises `ContractError` where one failed, unless `raises` is false."""
        results = self.results()
        failed = [result for result in results if result.outcome == "failed"]
        if failed and raises:
            raise ContractError(
                f"{self.subject} fails {len(failed)} of {len(results)} checks:\n"
                + "\n".join(map(str, failed))
            )
        return results

    def _run(self, check: Check) -> CheckResult:
        def result(outcome: Outcome, note: str = "") -> CheckResult:
            return CheckResult(check.name, outcome, check.reason, check.remedy, note)

        for name in check.needs:
            if name in self.checks and (
                self.result(name).outcome in ("failed", "expected") or name in self._blocked
            ):
                self._blocked.add(check.name)
                return result("skipped", f"it needs {name}")
        try:
            if not check.applies(self.facts):
                return result("skipped", "it does not apply")
            note = check.run(self.facts) or ""
        except Exception as error:  # whatever the subject's own code raises is its failure
            found = str(error) if isinstance(error, ContractError) else f"{type(error).__name__}: {error}"
            if check.name in self.expected:
                return result("expected", f"{self.expected[check.name]} ({found})")
            return result("failed", found)
        if check.name in self.expected:
            return result(
                "failed",
                f"it was expected to fail ({self.expected[check.name]}) and passes: drop the declaration",
            )
        return result("passed", note)


def demand(held: bool, message: str) -> None:
    """Raise `ContractError` with the message unless `held`."""
    if not held:
        raise ContractError(message)
