"""What each guide pushed where, as tinted text and as a table of every position."""

from __future__ import annotations

import math
from collections.abc import Sequence

from redraft.denoiser.card import escaped
from redraft.denoiser.guide import Guide
from redraft.recipes.page.film import Fate, in_text, split
from redraft.recipes.page.pieces import Pieces
from redraft.recipes.page.style import LEVELS

FULL = 4.0  # nats at which the tint is full; below it goes with the root, so that small pushes show


def pushed(guide: Guide, number: int, end: Sequence[Fate], pieces: Pieces) -> str:
    """The final text tinted by how much a guide pushed each position at the step that committed it."""
    shown = in_text(end, pieces)
    values = [push(fate, number) for fate in shown]
    known = [value for value in values if not math.isnan(value)]
    most = sorted(zip(values, shown, strict=True), key=lambda pair: -pair[0] if pair[0] == pair[0] else 0.0)[
        :3
    ]
    places = ", ".join(
        f"<code>{escaped(pieces.text(fate.token))}</code> {value:.2f}"
        for value, fate in most
        if value >= 0.005
    )
    said = f"in all {sum(known):.2f} nats" + (f", most at {places}" if places else "")
    parts = []
    for value, fate in zip(values, shown, strict=True):
        space, text = split(pieces.text(fate.token))
        hint = f"position {fate.position}: {amount(value)} nats"
        parts.append(f'{space}<span class="t t{level(value)}" title="{hint}">{text}</span>')
    said = f'<span class="soft places">{guide.strength}; {said}</span>'
    return (
        f'<div class="head push"><code>{escaped(guide)}</code>{said}</div>'
        f'<div class="flow" dir="auto">{"".join(parts)}</div>'
    )


def positions(guides: Sequence[Guide], end: Sequence[Fate], pieces: Pieces) -> str:
    """Every position of the canvas: token, step, who, confidence, times reopened, each guide's push."""
    heads = "".join(f'<th class="wrap"><code>{escaped(guide)}</code></th>' for guide in guides)
    rows = []
    for fate in end:
        i, frame = fate.position, fate.frame
        step = "" if frame is None else str(frame.index + 1)
        sure = "" if frame is None else f"{frame.confidence[i]:.3f}"
        each = "".join(f"<td>{amount(push(fate, g))}</td>" for g in range(len(guides)))
        whole = "" if frame is None else amount(frame.together[i])
        rows.append(
            f'<tr data-position="{i}"><td>{i}</td><td class="l"><code>{escaped(_visible(pieces.text(fate.token)))}'
            f'</code></td><td>{step}</td><td class="l">{escaped(fate.who)}</td><td>{sure}</td>'
            f"<td>{fate.reopened or ''}</td>{each}<td>{whole}</td></tr>"
        )
    said = "Under each guide: its push in nats at the step named."
    return (
        f'<p class="note">{said}</p><div class="scroll"><table>'
        '<thead><tr><th></th><th class="l">token</th><th>step</th>'
        f'<th class="l">committed by</th><th>confidence</th><th>reopened</th>{heads}<th>all guides</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def push(fate: Fate, number: int) -> float:
    """KL in nats by which a guide moved a position when it was committed for good; NaN where not known."""
    return math.nan if fate.frame is None else fate.frame.pushes[number][fate.position]


def level(value: float) -> int:
    """A push as one of the tints, 0 for none."""
    return 0 if math.isnan(value) else min(LEVELS, math.ceil(LEVELS * math.sqrt(value / FULL) - 0.5))


def amount(value: float) -> str:
    """A push in figures."""
    return "\u2013" if math.isnan(value) else f"{value:.2f}"


def _visible(piece: str) -> str:
    return piece.replace("\n", "\u21b5").replace("\t", "\u21e5").replace(" ", "\u2423")
