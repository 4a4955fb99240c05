"""Checks that a hard guide's languages and its verdicts agree: language <= what check satisfies <= outer."""

from __future__ import annotations

from redraft.denoiser.guide import Verdict
from redraft.denoiser.testing.examination import Check, demand
from redraft.denoiser.testing.facts import GuideFacts
from redraft.denoiser.testing.texts import for_all, strategy


def _nested(facts: GuideFacts) -> None:
    stray = facts.language - facts.outer
    demand(stray.empty(), f"language allows a text of {stray.shortest()} tokens that outer does not")


def _sampled(facts: GuideFacts) -> str:
    unknown = 0
    for text, tokens in facts.words:
        verdict = facts.bound.check(text, tokens)
        unknown += verdict.status == "unknown"
        demand(verdict.status != "violated", f"{text!r} is of the language and is judged {_said(verdict)}")
    return f"{len(facts.words)} texts" + (f", {unknown} of them with verdict unknown" if unknown else "")


def _near(facts: GuideFacts) -> str:
    allowed = 0

    def law(text: str) -> None:
        nonlocal allowed
        tokens = facts.tokens(text)
        if tokens is None or not facts.language.accepts(tokens):
            return
        allowed += 1
        verdict = facts.bound.check(text, tokens)
        demand(
            verdict.status != "violated", f"the language allows {text!r}, which is judged {_said(verdict)}"
        )

    _over(facts, law)
    return f"{allowed} texts that it allows"


def _held(facts: GuideFacts) -> str:
    satisfied = 0

    def law(text: str) -> None:
        nonlocal satisfied
        tokens = facts.tokens(text)
        if tokens is None or facts.bound.check(text, tokens).status != "satisfied":
            return
        satisfied += 1
        demand(facts.outer.accepts(tokens), f"{text!r} is judged satisfied and outer does not hold it")

    _over(facts, law)
    return f"{satisfied} texts that satisfy it"


def _over(facts: GuideFacts, law: object) -> None:
    assert callable(law)
    for text in facts.texts:
        law(text)
    for_all(strategy(facts.texts), law, examples=facts.bench.examples)


def _said(verdict: Verdict) -> str:
    return f"{verdict.status} ({verdict.note})" if verdict.note else verdict.status


LANGUAGES = (
    Check(
        "language-within-outer",
        "~guide takes the complement of outer, and must not allow what the guide allows",
        "let outer hold every text that language holds",
        _nested,
        needs=("language",),
        applies=lambda facts: facts.hard,
    ),
    Check(
        "sampled-words",
        "what is guaranteed must come out of the check as satisfied",
        "narrow language, or mend check: they are written apart so that they catch each other out",
        _sampled,
        needs=("language", "hook-shapes", "verdict"),
        applies=lambda facts: facts.hard,
    ),
    Check(
        "adversarial-texts",
        "models write what nobody thought of: look-alikes, odd spaces, the empty text",
        "decide what such a text means, in language and check alike; a language may be narrower",
        _near,
        needs=("sampled-words",),
        applies=lambda facts: facts.hard,
    ),
    Check(
        "outer-holds-check",
        "~guide promises that check is violated; it can where outer holds all that satisfies check",
        "widen outer (it may be a superset), or mend check",
        _held,
        needs=("language-within-outer", "sampled-words"),
        applies=lambda facts: facts.hard,
    ),
)
