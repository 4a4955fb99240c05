"""The draft on a terminal while it is written, then the text with its verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from redraft.recipes.recipe import Recipe
from redraft.recipes.report import evidence, mark

if TYPE_CHECKING:
    from redraft.denoiser.base import Denoiser
    from redraft.denoiser.guide import Verdict
    from redraft.denoiser.refine import Refinement
    from redraft.denoiser.result import Result
    from redraft.denoiser.vocabulary import Vocabulary

OPEN, HELD, NEW = "dim", "", "bold bright_white"
_COLOURS = {"satisfied": "green", "violated": "red", "unknown": "yellow"}


def write_live(
    recipe: Recipe,
    denoiser: Denoiser,
    console: Console,
    *,
    alone: bool,
    also: Callable[[Refinement], object] | None = None,
) -> list[Result]:
    """Run a recipe with its drafts shown as they grow; they give way to the texts and one line a guide.

    `alone`: there is no other text, so that neither seeds nor rules are needed to tell them apart; `also` sees
    every step as well.
    """
    with Live(console=console, transient=True, auto_refresh=False, vertical_overflow="ellipsis") as live:

        def on_step(refinement: Refinement) -> None:
            if also is not None:
                also(refinement)
            drafts = len(refinement.draft) // recipe.samples
            view = draft_view(refinement, denoiser.vocabulary, None if alone else recipe.seed, drafts)
            live.update(view, refresh=True)

        results = recipe.run(denoiser, on_step=on_step)
    for result in results:
        console.print(shown(result, alone=alone))
    return results


def draft_view(
    refinement: Refinement, vocabulary: Vocabulary, seed: int | None, drafts: int = 1
) -> RenderableType:
    """The drafts after one step, `drafts` rows a text, with its seed where `seed` (the first text's) is given."""
    is_open, is_new = refinement.canvas.open.tolist(), refinement.committed.tolist()
    rows = [
        draft_text(
            vocabulary, tokens, [OPEN if o else NEW if n else HELD for o, n in zip(*marks, strict=True)]
        )
        for tokens, *marks in zip(refinement.draft.tolist(), is_open, is_new, strict=True)
    ]
    head = Text(f"step {refinement.step.index + 1} of {refinement.step.steps}", style="dim")
    if seed is None:
        return Group(head, *rows)
    table = Table.grid(padding=(0, 2))
    for number, row in enumerate(rows):
        label = str(seed + number // drafts) if number % drafts == 0 else ""
        table.add_row(Text(label, style="cyan"), row)
    return Group(head, table)


def draft_text(vocabulary: Vocabulary, tokens: Sequence[int], styles: Sequence[str]) -> Text:
    """Tokens as text, each in its style; what is not a whole character yet shows as one that is missing."""
    text, raw, before = Text(), b"", None
    for token, style in zip(tokens, styles, strict=True):
        if style != before:
            text.append(raw.decode("utf-8", "replace"), before)
            raw, before = b"", style
        raw += vocabulary.token_bytes[token] or b""
    text.append(raw.decode("utf-8", "replace"), before)
    return text


def shown(result: Result, *, alone: bool = True) -> RenderableType:
    """A finished text and one line a guide: mark, strength, guide, evidence."""
    table = Table.grid(padding=(0, 2))
    for verdict in result.verdicts:
        table.add_row(*_cells(verdict, result.text))
    passes = (
        f"seed {result.seed}, {result.forward_passes} forward passes, {result.timing.total_ms / 1e3:.1f} s"
    )
    head: list[RenderableType] = [] if alone else [Rule(style="dim")]
    return Group(*head, Text(result.text, style="bold"), Text(), table, Text(passes, style="dim"))


def _cells(verdict: Verdict, text: str) -> tuple[Text, ...]:
    colour = _COLOURS[verdict.status]
    return (
        Text(mark(verdict), style=colour),
        Text(verdict.strength, style="dim"),
        Text(verdict.guide),
        Text(evidence(verdict, text), style="" if verdict.status == "satisfied" else colour),
    )
