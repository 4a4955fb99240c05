"""Random requests, both endings, every policy: the decoded text is what was asked for, by plain string code."""

from __future__ import annotations

import random
import re

import pytest
from toys import WORDS, Chaos, small_vocabulary

from redraft.denoiser import HardGuide, RedraftError, Uncertain
from redraft.denoiser.selection import Confidence, EntropyBound, LeftToRight, Margin, Random
from redraft.guidance import Bias, Forbid, Infill, Keywords, Pattern, Repetition, Sentences, Tokens, Words

POLICIES = [
    Random(),
    Confidence(),
    Confidence(1.0),
    Margin(),
    LeftToRight(),
    EntropyBound(0.3),
    EntropyBound(5.0),
]


def whole(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def random_guide(pick: random.Random) -> tuple[HardGuide, object]:
    """A hard guide and a plain function of the text that says whether it holds."""
    words = pick.sample(WORDS, 3)
    a, b = sorted(pick.sample(range(1, 9), 2))
    kind = pick.randrange(9)
    if kind == 0:
        return Keywords(*words[:2], anchor=pick.choice(["early", "free"])), lambda t: all(
            whole(w, t) for w in words[:2]
        )
    if kind == 1:
        return Keywords(*words, at_least=2), lambda t: sum(whole(w, t) for w in words) >= 2
    if kind == 2:
        return Keywords(
            f"{words[0]} {words[1]}", whole=False
        ), lambda t: f"{words[0]} {words[1]}" in t.lower()
    if kind == 3:
        return Words(a, b), lambda t: a <= len(t.split()) <= b
    if kind == 4:
        return Forbid(*words, "e"), lambda t: not any(whole(w, t) for w in [*words, "e"])
    if kind == 5:
        return Forbid(regexes=["[xyz0-9]", "t.e"]), lambda t: not re.search("[xyz0-9]|t.e", t)
    if kind == 6:
        blank = pick.choice(["___", f"[[{a}-{b}]]"])
        form = f"The {words[0]} {blank} by {words[1]}."
        inner = r"\S(?:[\s\S]*\S)?" if blank == "___" else rf"\S+(?:\s+\S+){{{a - 1},{b - 1}}}"
        return Infill(form), lambda t: re.fullmatch(rf"The {words[0]} {inner} by {words[1]}\.", t) is not None
    if kind == 7:
        return Sentences(1, 2), lambda t: re.search(r"[.!?][\"')\]]*\Z", t) is not None
    return Pattern(r"[A-Z][^\n]*[a-z.]"), lambda t: re.fullmatch(r"[A-Z][^\n]*[a-z.]", t) is not None


def one_run(number: int) -> int:
    """One random request; the number of texts that were checked (0 where the request cannot be met)."""
    pick = random.Random(number)
    eos = pick.random() < 0.7
    vocabulary = small_vocabulary(eos=eos, whole_first=pick.random() < 0.5)
    denoiser = Chaos(
        vocabulary, sharpness=pick.choice([0.5, 3.0, 30.0]), seed=number, length=pick.choice([12, 24, 40])
    )
    hard = [random_guide(pick) for _ in range(pick.choice([1, 1, 2, 2, 3]))]
    guides = [guide for guide, _ in hard]
    guides += pick.sample(
        [Repetition(3.0), 2.0 * Bias({"dog": 2.0, "very good": -1.0})], pick.choice([0, 0, 1, 2])
    )
    if pick.random() < 0.2:
        low = pick.randrange(0, 10)
        guides.append(Tokens(low, low + 30) if eos else Tokens(0, 96))
    try:
        results = denoiser.write(
            guides,
            samples=pick.choice([1, 1, 2, 3, 5, 16]),
            seed=number,
            steps=pick.choice([1, 2, 5, 9]),
            selection=pick.choice(POLICIES),
            temperature=pick.choice([0.0, 0.2, 1.0, 1.5]),
            top_p=pick.choice([None, None, 0.8]),
            top_k=pick.choice([None, None, 5]),
            min_p=pick.choice([None, None, 0.1]),
            revision=pick.choice([None, Uncertain(0.4, 0.0, 1.0)]),
        )
    except RedraftError:
        assert denoiser.calls == 0  # a request that cannot be met costs no forward pass
        return 0
    for result in results:
        for guide, holds in hard:
            assert holds(result.text), (number, str(guide), result.text)  # type: ignore[operator]
        assert all(v.status == "satisfied" for v in result.verdicts if v.strength == "guaranteed"), (
            number,
            result,
        )
        assert result.text == vocabulary.decode(result.tokens)
        assert "\ufffd" not in result.text
    return len(results)


@pytest.mark.parametrize("part", range(4))
def test_a_hundred_random_requests(part: int) -> None:
    assert sum(one_run(number) for number in range(25 * part, 25 * part + 25)) > 20


@pytest.mark.long
def test_a_thousand_random_requests() -> None:
    assert sum(one_run(number) for number in range(1000, 2000)) > 1500
