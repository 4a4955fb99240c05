"""The page: one section a text, self-contained, readable without a script, safe for any text."""

from __future__ import annotations

from collections.abc import Sequence

from redraft.denoiser.card import MARKS, curve, escaped, marked
from redraft.denoiser.guide import Verdict
from redraft.denoiser.result import Result
from redraft.recipes.page.film import commits, fates, film
from redraft.recipes.page.pieces import Pieces
from redraft.recipes.page.pushes import FULL, positions, pushed
from redraft.recipes.page.recorder import Frame, Recorder
from redraft.recipes.page.style import CSS, SCRIPT, policy
from redraft.recipes.recipe import Recipe
from redraft.recipes.toml import toml
from redraft.recipes.writing import complete

_LEGEND = (
    '<p class="note">The number above a token is the step that committed it, its shade goes from early to late. '
    '<span class="key anchor">Underlined</span>: committed because a guide anchored it; '
    '<span class="key only">dotted</span>: the guarantees left no other token; the rest by the selection.</p>'
)
_FILM = (
    '<p class="note">The whole text at every step: committed before, <span class="key new">committed now</span>, '
    '<span class="key open">only drafted</span>, <span class="key back">reopened</span>.</p>'
)


def page(results: Sequence[Result], recorder: Recorder, recipe: Recipe) -> str:
    """A whole HTML page that explains the results of a run that `recorder` observed.

    Raises `InvalidRecipeError` where the recorder saw another number of texts.
    """
    each = recorder.of(results)
    title = recipe.title or "Redraft"
    pieces = Pieces(recorder.pieces)
    pairs = list(zip(results, each, strict=True))
    sections = "".join(_section(k, *pair, recipe, pieces, len(pairs) > 1) for k, pair in enumerate(pairs, 1))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{CSS}</style>\n</head>\n<body><main>\n"
        f"<h1>{escaped(title)}</h1>\n{_opening(recipe)}{_contents(results)}{sections}\n"
        f"</main><script>{SCRIPT}</script></body>\n</html>\n"
    )


def _opening(recipe: Recipe) -> str:
    about = f'<p class="soft">{escaped(recipe.description)}</p>' if recipe.description else ""
    prompt = f'<p class="soft">Written behind the prompt <code>{escaped(recipe.prompt)}</code></p>'
    return about + (prompt if recipe.prompt else "")


def _contents(results: Sequence[Result]) -> str:
    if len(results) < 2:
        return ""
    items = "".join(
        f'<li><a href="#text-{k}">{escaped(_shortened(result.text))}</a></li>'
        for k, result in enumerate(results, 1)
    )
    return f"<nav><ol>{items}</ol></nav>"


def _section(
    number: int, result: Result, frames: Sequence[Frame], recipe: Recipe, pieces: Pieces, several: bool
) -> str:
    end = fates(result.tokens, frames)
    guides = result.guides
    each = "".join(pushed(guide, g, end, pieces) for g, guide in enumerate(guides))
    head = f'<h2 id="text-{number}">Text {number}</h2>' if several else f'<div id="text-{number}"></div>'
    spans = [s for v in result.verdicts if v.strength == "guaranteed" for s in v.spans if s.label]
    parts = [
        head,
        f'<div class="text" dir="auto">{marked(result.text, spans)}</div>',
        f'<p class="soft">seed {result.seed}, {result.forward_passes} forward passes, '
        f"canvas of {result.length} tokens, {result.timing.total_ms / 1e3:.1f} s with the recording</p>",
        "<h3>Verdicts</h3>",
        f'<ul class="verdicts">{"".join(_verdict(v, result.text) for v in result.verdicts)}</ul>'
        if result.verdicts
        else '<p class="note">There was no guide.</p>',
        f"<h3>The canvas, step by step</h3>{_FILM}{film(frames, pieces)}",
        f"<h3>Who committed what, and when</h3>{_LEGEND}{commits(end, pieces)}",
    ]
    if guides:
        parts.append(
            "<h3>What each guide pushed</h3>"
            '<p class="note">How far the guide, alone, moved the distribution of each position away from the '
            "denoiser's own, at the step that committed it: Kullback\u2013Leibler divergence in nats. "
            f'<span class="key t10">Full shade</span> from {FULL:g} nats.</p>{each}'
        )
    parts += [
        "<h3>Pressure</h3>",
        _pressure(result.pressure),
        f"<details><summary>Every position</summary>{positions(guides, end, pieces)}</details>",
        f"<details><summary>Settings, times and the recipe that writes this text again</summary>"
        f"{_how(result, recipe)}</details>",
    ]
    return f"<section>{''.join(parts)}</section>"


def _verdict(verdict: Verdict, text: str) -> str:
    score = "" if verdict.score is None else f"score {verdict.score:.2f}"
    about = "; ".join(part for part in (verdict.note, score) if part)
    where = ""
    if verdict.spans and verdict.status != "satisfied":
        where = f'<div class="flow" dir="auto">{marked(text, verdict.spans)}</div>'
    elif verdict.spans:
        where = (
            f'<details><summary class="soft">where</summary>'
            f'<div class="flow" dir="auto">{marked(text, verdict.spans)}</div></details>'
        )
    return (
        f'<li><div class="head"><b class="{verdict.status}">{MARKS[verdict.status]} {verdict.status}</b>'
        f'<code>{escaped(verdict.guide)}</code><span class="soft">{verdict.strength}</span></div>'
        f"{f'<div class=soft>{escaped(about)}</div>' if about else ''}{where}</li>"
    )


def _pressure(values: Sequence[float]) -> str:
    if max(values, default=0.0) < 0.005:
        return '<p class="note">None: the guarantees asked for nothing that the denoiser would not have written.</p>'
    return (
        '<p class="note">How much the guarantees fought the denoiser at each step: \u2212log of the probability that '
        f'it would have kept to them by itself, in nats.</p><div class="curve">{curve(values)}</div>'
    )


def _how(result: Result, recipe: Recipe) -> str:
    said = {name: _plain(value) for name, value in result.settings.to_dict().items()}
    spent = {"denoiser": result.timing.denoiser_ms, "guides and engine": result.timing.guidance_ms}
    rows = [(name, str(value)) for name, value in said.items()]
    rows += [(f"{name}, ms", f"{ms:.0f}") for name, ms in spent.items()]
    rows += [(f"{name}, ms", f"{ms:.1f}") for name, ms in result.timing.guides_ms.items()]
    table = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in rows)
    return f"<dl>{table}</dl><pre>{escaped(toml(complete(result, recipe).to_dict()))}</pre>"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        rest = ", ".join(f"{key} {item}" for key, item in value.items() if key != "name")
        return f"{value.get('name')}{f' ({rest})' if rest else ''}"
    return value


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."
