"""Checks of a bound guide's hooks, called at the moments of a run."""

from __future__ import annotations

import inspect
from dataclasses import replace

import torch
from torch import Tensor

from redraft.denoiser.algebra import during
from redraft.denoiser.automaton import Automaton
from redraft.denoiser.guide import Bound, Guide, HardGuide, SoftGuide
from redraft.denoiser.steering import broadcasts
from redraft.denoiser.testing.examination import Check, demand
from redraft.denoiser.testing.facts import GuideFacts
from redraft.denoiser.testing.moments import HOOKS, answers, differing, hooks, tensors

_SHARED = ("language", "admit", *HOOKS, "push", "check")


def _binds(facts: GuideFacts) -> None:
    bound = facts.guide.bind(facts.scene)
    demand(isinstance(bound, Bound), f"bind returns {bound!r}, not a redraft.denoiser.Bound")
    demand(bound.guide == facts.guide, f"the bound guide speaks for {bound.guide}")


def _signatures(facts: GuideFacts) -> None:
    pairs: list[tuple[type, type, str]] = [(Bound, type(facts.bound), name) for name in _SHARED]
    base = HardGuide if facts.hard else Guide
    pairs += [(base, type(facts.guide), name) for name in ("bind", "check", "room", "language", "outer")]
    for host, own, name in pairs:
        if not hasattr(host, name):
            continue
        ours, theirs = inspect.signature(getattr(host, name)), inspect.signature(getattr(own, name))
        demand(
            list(ours.parameters) == list(theirs.parameters),
            f"{own.__name__}.{name}{theirs} is not {name}{ours}",
        )


def _language(facts: GuideFacts) -> str:
    assert isinstance(facts.guide, HardGuide)
    size = len(facts.scene.vocabulary)
    languages = {
        "language": facts.guide.language(facts.scene),
        "outer": facts.guide.outer(facts.scene),
        "the bound language": facts.bound.language(),
    }
    for name, language in languages.items():
        demand(isinstance(language, Automaton), f"{name} is {language!r}, not an Automaton")
        assert isinstance(language, Automaton)
        demand(
            language.symbols == size, f"{name} has {language.symbols} symbols, the vocabulary {size} tokens"
        )
    bound = languages["the bound language"]
    assert bound is not None
    demand(bound.same(languages["language"]), "bind(scene).language() is not language(scene)")  # type: ignore[arg-type]
    return f"{bound.minimise().states} states, {bound.minimise().delta.shape[1]} classes"


def _shapes(facts: GuideFacts) -> str:
    used = set()
    for moment in facts.moments:
        logits, canvas = moment.step.logits, moment.step.canvas
        for name in hooks():
            answer = HOOKS[name](facts.bound, moment.fresh())
            if answer is None:
                continue
            used.add(name)
            demand(isinstance(answer, Tensor), f"{name} returns {answer!r}, not a tensor or None")
            shape, wanted = tuple(answer.shape), tuple(canvas.open.shape)
            if name == "bias":
                fits = broadcasts(shape, logits.shape)
                demand(fits, f"bias has shape {shape}, which does not broadcast to {tuple(logits.shape)}")
            else:
                wanted = wanted[:1] if name == "weigh" else wanted
                demand(shape == wanted, f"{name} has shape {shape}, not {wanted}")
    return f"it uses {', '.join(sorted(used)) or 'no hook of a run'}"


def _dtypes(facts: GuideFacts) -> None:
    for moment in facts.moments:
        for name in hooks():
            answer = HOOKS[name](facts.bound, moment.fresh())
            if answer is None:
                continue
            device = moment.step.logits.device
            wanted = {"bias": (torch.float32,), "weigh": (torch.float32, torch.float64)}.get(
                name, (torch.bool,)
            )
            demand(answer.dtype in wanted, f"{name} is {answer.dtype}, not {wanted[0]}")
            demand(answer.device == device, f"{name} is on {answer.device}, the step on {device}")
            demand(not answer.requires_grad, f"{name} is not detached")


def _finite(facts: GuideFacts) -> str | None:
    most = 0.0
    for moment in facts.moments:
        for name in ("bias", "weigh"):
            answer = HOOKS[name](facts.bound, moment.fresh()) if hasattr(Bound, name) else None
            if answer is not None:
                wrong = answer[~answer.isfinite()]
                demand(not len(wrong), f"{name} holds {wrong[:1].tolist()[:1]} at step {moment.step.index}")
                most = max(most, float(answer.abs().max()))
    return f"at most {most:.3g} nats" if most else None


def _unedited(facts: GuideFacts) -> None:
    for moment in facts.moments:
        for name in hooks():
            shown = moment.fresh()
            versions = {place: tensor._version for place, tensor in tensors(shown)}
            HOOKS[name](facts.bound, shown)
            before = dict(tensors(moment))
            for place, tensor in tensors(shown):
                demand(
                    tensor._version == versions[place] and torch.equal(tensor, before[place]),
                    f"{name} changes {place} in place",
                )


def _deterministic(facts: GuideFacts) -> None:
    for moment in facts.moments:
        one, two = answers(facts.bound, moment), answers(facts.bound, moment)
        name = differing(one, two, facts.bench.tolerance)
        demand(
            name is None, f"{name} gives two answers at step {moment.step.index} with the same random numbers"
        )


def _during(facts: GuideFacts) -> None:
    """Called at one step alone it answers as in a run from the start; outside its period it says nothing."""
    forward = facts.guide.bind(facts.scene)
    expected = [answers(forward, moment) for moment in facts.moments]
    backward = facts.guide.bind(facts.scene)
    for moment, wanted in list(zip(facts.moments, expected, strict=True))[::-1]:
        name = differing(wanted, answers(backward, moment), facts.bench.tolerance)
        demand(
            name is None,
            f"{name} at step {moment.step.index} depends on having been called at the steps before it",
        )
    if not isinstance(facts.guide, SoftGuide):
        return
    limited = during(0.25, 0.75, facts.guide).bind(facts.scene)
    for moment, wanted in zip(facts.moments, expected, strict=True):
        got = answers(limited, moment)
        if 0.25 <= moment.step.progress < 0.75:
            demand(
                differing(wanted, got, facts.bench.tolerance) is None,
                "during(0.25, 0.75, guide) changes the guide in its period",
            )
        else:
            said = [name for name, answer in got.items() if answer is not None and bool(answer.any())]
            demand(
                not said, f"{', '.join(said)} at progress {moment.step.progress} of during(0.25, 0.75, guide)"
            )


def _twice(facts: GuideFacts) -> None:
    one, two = facts.guide.bind(facts.scene), facts.guide.bind(facts.scene)
    first, second = one.language(), two.language()
    demand(
        first is second or (first is not None and second is not None and first.same(second)),
        "bound twice it allows two languages",
    )
    for moment in facts.moments:
        name = differing(answers(one, moment), answers(two, moment), facts.bench.tolerance)
        demand(name is None, f"bound twice its {name} differs at step {moment.step.index}")


def _rows(facts: GuideFacts) -> None:
    alone = facts.guide.bind(replace(facts.scene, batch=1))
    for moment in facts.moments:
        together = answers(facts.bound, moment)
        for row in range(len(moment.seeds)):
            wanted = {
                name: None if answer is None else answer[row : row + 1] for name, answer in together.items()
            }
            name = differing(wanted, answers(alone, moment.row(row)), facts.bench.tolerance)
            demand(
                name is None,
                f"{name} of row {row} differs when the row is alone, at step {moment.step.index}",
            )


BINDING = (
    Check(
        "binds",
        "a guide is bound before a run, to one vocabulary and canvas shape",
        "return a Bound of this guide; give the bench a vocabulary or length with which it can be satisfied",
        _binds,
    ),
    Check(
        "hook-signatures",
        "the host calls the hooks; what it passes may grow by keyword only where both sides agree",
        "take exactly the host's parameters, under its names",
        _signatures,
        needs=("binds",),
    ),
    Check(
        "language",
        "the engine runs automata over the vocabulary's tokens",
        "build the automaton over bytes and lift it with scene.vocabulary, in language and outer",
        _language,
        needs=("binds", "hook-signatures"),
        applies=lambda facts: facts.hard,
    ),
    Check(
        "hook-shapes",
        "answers are added to log-probabilities [B, L, V] and to marks [B, L]",
        "return None or a tensor: bias broadcastable to [B, L, V], anchors and revise [B, L], weigh [B]",
        _shapes,
        needs=("hook-signatures", "language"),
    ),
    Check(
        "hook-dtypes",
        "a step has no hidden conversion and no copy between devices",
        "return float32 bias and bool marks on the step's device, detached",
        _dtypes,
        needs=("hook-shapes",),
    ),
    Check(
        "bias-finite",
        "an infinite preference is a prohibition without a proof, and empties drafts",
        "use a language to forbid; keep biases and weights finite",
        _finite,
        needs=("hook-dtypes",),
    ),
    Check(
        "no-edits-in-place",
        "all guides of a run see the same step",
        "make new tensors (torch.where, index_fill) instead of changing those of the step or the draft",
        _unedited,
        needs=("hook-dtypes",),
    ),
    Check(
        "deterministic",
        "the same seed writes the same text",
        "keep no state in a bound guide; draw random numbers from step.random alone",
        _deterministic,
        needs=("no-edits-in-place", "bias-finite"),
    ),
    Check(
        "bind-twice",
        "a guide is bound again for every batch",
        "keep nothing in the guide or its module that binding changes, but caches",
        _twice,
        needs=("deterministic",),
    ),
    Check(
        "during",
        "a guide may work in a part of the run only, and a run may be stopped and gone on with",
        "work out what a step needs from the step, not from what earlier calls left behind",
        _during,
        needs=("bind-twice",),
    ),
    Check(
        "rows-independent",
        "a text does not depend on its neighbours in the batch",
        "work row by row: no mean, sum or maximum over the batch",
        _rows,
        needs=("during",),
    ),
)
