"""What can go wrong: every error says the condition, the value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence


class RedraftError(Exception):
    """Base of every error that Redraft raises on purpose."""


class InvalidGuideError(RedraftError, ValueError):
    """A guide, a setting or a recipe has a value that cannot be meant."""


class GuideError(RedraftError, RuntimeError):
    """A guide's own code failed, or broke its contract, while it was bound, run or asked for a verdict."""


class UnsatisfiableError(RedraftError, ValueError):
    """No text satisfies all hard guides on this canvas; raised at bind time, before any forward pass.

    `conflict` names the smallest set of guides that contradict one another; `needed` is the shortest
    canvas (in tokens) that would do, or None where no length helps; `filled`, of a denoiser without an end
    token, the shorter canvases that texts of the conflicting guides fill exactly.
    """

    def __init__(
        self,
        message: str,
        *,
        conflict: Sequence[str] = (),
        needed: int | None = None,
        filled: Sequence[int] = (),
    ) -> None:
        super().__init__(message)
        self.filled = tuple(filled)
        self.conflict = tuple(conflict)
        self.needed = needed


class UnwritableTextError(RedraftError, ValueError):
    """A text holds a character that the vocabulary has no bytes for."""


class UnsupportedModelError(RedraftError, ValueError):
    """A model or tokenizer that no adapter can serve exactly."""


class StateBudgetError(RedraftError, ValueError):
    """A combination of languages needs more states than the budget allows; `sizes` are its parts'."""

    def __init__(self, message: str, *, sizes: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.sizes = tuple(sizes)
