"""Random requests, both endings, every policy: the decoded text is what was asked for, by plain string code."""

from __future__ import annotations

import random
import re
import unicodedata

import pytest
from toys import WORDS, Chaos, small_vocabulary

from redraft.denoiser import HardGuide, RedraftError, Uncertain
from redraft.denoiser.selection import Confidence, EntropyBound, LeftToRight, Margin, Random
from redraft.guidance import (
    Acrostic,
    Alliteration,
    Bias,
    Characters,
    EndsWith,
    Forbid,
    Infill,
    InSentence,
    Keywords,
    Lines,
    Lipogram,
    Near,
    Occurrences,
    Ordered,
    Paragraphs,
    Pattern,
    Repetition,
    Rhyme,
    Sentences,
    StartsWith,
    Syllables,
    Tidy,
    Tokens,
    Words,
)
from redraft.guidance.pronunciation import line_words, rhyme, syllables

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
    kind = pick.randrange(10)
    if kind == 9:
        return random_form(pick)
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


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def first_letters(units: list[str]) -> str:
    return "".join(next((c for c in unit if c.isalnum()), "?") for unit in units).lower()


def places(word: str, text: str) -> list[int]:
    return [
        len(text[: m.end()].split())
        for m in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    ]


def sung(line: str) -> int:
    return sum(syllables(word)[0] for _, word in line_words(line))


def random_form(pick: random.Random) -> tuple[HardGuide, object]:
    """A guide for writers and a plain function of the text that says whether it holds."""
    words = pick.sample(WORDS, 3)
    a, b = sorted(pick.sample(range(1, 7), 2))
    letter = pick.choice("aehdst")
    forms: list[tuple[HardGuide, object]] = [
        (Acrostic("sad"), lambda t: first_letters(lines_of(t)) == "sad"),
        (Acrostic("the", by="words"), lambda t: first_letters(t.split()) == "the"),
        (Lipogram(letter), lambda t: letter not in unicodedata.normalize("NFKD", t).lower()),
        (
            Alliteration(letter, at_least=a),
            lambda t: sum(first_letters([w]) == letter for w in t.split()) >= a,
        ),
        (StartsWith("The "), lambda t: t.startswith("The ")),
        (EndsWith("dog.", "sea"), lambda t: t.endswith(("dog.", "sea"))),
        (Lines(a, b), lambda t: a <= len(lines_of(t)) <= b),
        (Paragraphs(1, 2), lambda t: 1 <= len([p for p in re.split(r"\n\s*\n", t) if p.strip()]) <= 2),
        (Characters(8 * a, 8 * b), lambda t: 8 * a <= len(t) <= 8 * b),
        (
            Ordered(*words),
            lambda t: (
                re.search(r"[\s\S]*?".join(rf"(?<!\w){w}(?!\w)" for w in words), t, re.IGNORECASE) is not None
            ),
        ),
        (
            Near(words[0], words[1], within=a),
            lambda t: any(abs(x - y) <= a for x in places(words[0], t) for y in places(words[1], t)),
        ),
        (Occurrences(words[0], 1, 2), lambda t: 1 <= len(places(words[0], t)) <= 2),
        (
            InSentence(words[0], "first"),
            lambda t: whole(words[0], re.split(r"[.!?]+[\"')\]]*(?:\s|\Z)", t)[0]),
        ),
        (Syllables((a, b)), lambda t: [sung(line) for line in lines_of(t)] == [a, b]),
        (Rhyme("AA"), lambda t: rhyme(*(line_words(line)[-1][1] for line in lines_of(t)))),
        (Tidy(), lambda t: not re.search(r"\s[,;:.!?]|,,|  |\A\s|\s\Z|[,;]\w", t) and t[-1] in ".!?…\"')]”’"),
    ]
    return pick.choice(forms)


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
