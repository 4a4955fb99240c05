"""Forms for writers: brute force on tiny alphabets, odd inputs, refusals, and texts by a wild denoiser."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch
from toys import Chaos, small_vocabulary

from redraft.denoiser import HardGuide, InvalidGuideError, Scene, UnsatisfiableError, Vocabulary
from redraft.denoiser.errors import StateBudgetError
from redraft.guidance import (
    Acrostic,
    Alliteration,
    Characters,
    EndsWith,
    InSentence,
    Keywords,
    Lines,
    Lipogram,
    Near,
    Occurrences,
    Ordered,
    Paragraphs,
    ReadingLevel,
    Rhyme,
    Sentences,
    StartsWith,
    Syllables,
    Tidy,
    Words,
)
from redraft.guidance.lipogram import barred, base_letters
from redraft.guidance.pronunciation import common, estimate, line_words, rhyme, syllables
from redraft.guidance.reading_level import flesch_kincaid

SYMBOLS = ["a", "A", "b", " ", "\n", ".", ","]
TINY = Vocabulary(
    [*(s.encode() for s in SYMBOLS), None],
    lambda text: [SYMBOLS.index(c) if c in SYMBOLS else len(SYMBOLS) for c in text],
    mask_id=len(SYMBOLS),
)
SCENE = Scene(TINY, torch.device("cpu"), 1, 6, 6)
SEQUENCES = [
    seq
    for n, begin in (
        (0, 7),
        (1, 7),
        (2, 7),
        (3, 7),
        (4, 7),
        (5, 2),
    )  # five symbols where they begin with a or A
    for seq in itertools.product(range(len(SYMBOLS)), repeat=n)
    if not seq or seq[0] < begin
]

WHOLE = [  # guides whose language is exactly what their check says
    Acrostic("ab", by="words"),
    Alliteration("a"),
    Alliteration("b", at_least=2),
    Characters(2, 3),
    EndsWith("a.", " b"),
    Lipogram("b"),
    StartsWith("a\n", "A", ignore_case=True),
]
PART = [
    Acrostic("aa"),
    Acrostic("aB", by="sentences"),
    Alliteration("a", at_least=0.5),
    Lines(1, 2),
    Near("a", "b", within=2),
    Occurrences("a", 1, 1),
    Occurrences(("a", "b"), 2),
    Ordered("a", "b"),
    Paragraphs(2, 2),
    Tidy(),
]


@pytest.mark.parametrize("guide", [*WHOLE, *PART], ids=str)
def test_every_short_text(guide: HardGuide) -> None:
    language, outer = guide.language(SCENE), guide.outer(SCENE)
    written = meant = 0
    for seq in SEQUENCES:
        held = guide.check(TINY.decode(seq)).status == "satisfied"
        inside = language.accepts(seq)
        assert inside <= held <= outer.accepts(seq), TINY.decode(seq)
        assert inside == held or guide in PART, TINY.decode(seq)
        written, meant = written + inside, meant + held
    assert 0 < written <= meant < len(SEQUENCES)


@pytest.mark.parametrize(
    ("guide", "text", "held"),
    [
        (Acrostic("HOPE"), 'Hi\r\n\r\n"On\nPast\u2028even', True),
        (Acrostic("HOPE"), "Hi\nOn\nPast", False),
        (Acrostic("éa"), "Été\nart", True),
        (Acrostic("éa"), "Ete\nart", False),
        (Acrostic("ab", by="words"), "(alpha) *Beta*", True),
        (Acrostic("ab", by="words"), "alpha — beta", False),
        (Acrostic("ab", by="sentences"), "A dog. Mr. Hill.", False),
        (Acrostic("ab", by="sentences"), '"A dog." Big Mr. Hill.', True),
        (Lipogram("e"), "", True),
        (Lipogram("e"), "caf\u00e9", False),
        (Lipogram("e"), "cafe\u0301", False),
        (Lipogram("e"), "Ｅ", False),
        (Lipogram("s"), "Straße", False),
        (Lipogram("f"), "ﬁn", False),
        (Lipogram("e"), "😀 – 12", True),
        (Alliteration("s"), "She sells — 'sea' shells!", True),
        (Alliteration("s"), "", False),
        (Alliteration("s"), "— !", False),
        (Alliteration("s", at_least=0.5), "sea and sun now", True),
        (Alliteration("s", at_least=0.55), "sea and sun now", False),
        (StartsWith("É"), "E\u0301t", False),
        (StartsWith("the", ignore_case=True), "THEN", True),
        (StartsWith("the"), "", False),
        (EndsWith("\r\n"), "a\r\n", True),
        (EndsWith("ß", ignore_case=True), "SS", False),
        (Lines(2, 2), "a\r\n \r\nb\n", True),
        (Lines(1), " \n", False),
        (Paragraphs(2, 2), "a\nb\r\n\r\nc\n", True),
        (Paragraphs(1, 1), "a\r\nb", True),
        (Characters(0, 0), "", True),
        (Characters(2, 2), "e\u0301", True),
        (Characters(1, 1), "😀", True),
        (Ordered("storm", "sea"), "The sea. A Storm, the SEA", True),
        (Ordered("storm", "sea"), "The sea, the storm", False),
        (Ordered("a a", "a"), "a a", False),
        (Near("storm", "sea", within=2), "sea: a storm", True),
        (Near("storm", "sea", within=1), "sea: a storm", False),
        (Near("storm", "storm"), "storm", False),
        (Occurrences("no", 2, 2), "no no", True),
        (Occurrences("no no", 1, 1), "No no no", True),
        (Occurrences("storm", 0, 0), "stormy", True),
        (InSentence("storm", "first"), "Dr. Storm left. No.", True),
        (InSentence("storm", "last"), "No. A storm came", True),
        (InSentence("storm", "last"), "A storm. Then quiet.", False),
        (Syllables([5, 7, 5]), "An old silent pond\nA frog jumps into the pond\nSplash! Silence again", True),
        (Syllables([2]), "😀", False),
        (Syllables([1]), "3", False),
        (Syllables([1], unknown="estimate"), "3", False),
        (Syllables([1]), "", False),
        (Syllables([1]), "...", False),
        (Syllables([2]), "xyzzy", False),
        (Syllables([2], unknown="estimate"), "xyzzy", True),
        (Syllables([1, 2]), "fire\r\n\r\nFire", True),  # one or two syllables
        (Rhyme("AA"), "the day\nthey say", True),
        (Rhyme("AA"), "the day\na Day", False),
        (Rhyme("AA"), "the day\nthe sea", False),
        (Rhyme("AA"), "xyzzy\nxyzzies", False),
        (Rhyme("A-A"), "so blue\n\n!\nthe shoe.", True),
        (Rhyme("AA"), "", False),
        (Tidy(), 'He said, "No." Then he left.', True),
        (Tidy(), "One,, two.", False),
        (Tidy(), "He said.Then he left.", False),
        (Tidy(), "He said ,then.", False),
        (Tidy(), "It cost 3.50 at 10:30, or 3,000.", True),
        (Tidy(), "Wait... what?", True),
        (Tidy(), "He left. then he came.", False),
        (Tidy(), "", False),
        (Tidy(), "Hi", False),
        (Tidy(), "É bien.", True),
        (Tidy(), "Hi.\r\nHo.", False),
        (Tidy(), "Hi 😀.", True),
    ],
)
def test_odd_inputs(guide: HardGuide, text: str, held: bool) -> None:
    verdict = guide.check(text)
    assert (verdict.status == "satisfied") == held, verdict
    assert all(0 <= span.start <= span.end <= len(text) for span in verdict.spans)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Acrostic(""), "give a word such as"),
        (lambda: Acrostic("A-B"), "'-' is no letter or digit"),
        (lambda: Acrostic("AB", by="verses"), "goes by 'verses': use 'lines', 'sentences', 'words'"),
        (lambda: Lipogram("e1"), "give letters"),
        (lambda: Lipogram("é"), "'é' is a form of 'e'"),
        (lambda: Alliteration("st"), "give one letter"),
        (lambda: Alliteration("s", at_least=0), "is 0 words"),
        (lambda: Alliteration("s", at_least=0.33), "multiple of 0.05"),
        (lambda: StartsWith(), "StartsWith has no text"),
        (lambda: EndsWith(""), "''"),
        (lambda: EndsWith("\ud800"), "surrogate"),
        (lambda: Lines(0), "is 0: use a whole number from 1"),
        (lambda: Characters(5, 3), "runs from 5 to 3"),
        (lambda: Ordered("storm"), "two or more"),
        (lambda: Near("a", " "), "give a word or phrase"),
        (lambda: Near("a", "b", within=0), "within is 0 words"),
        (lambda: Occurrences("a", 0), "asks for nothing"),
        (lambda: Occurrences("a", 60), "counts further than 50"),
        (lambda: InSentence("a", "middle"), "the place of InSentence is 'middle'"),
        (lambda: InSentence("Mr. Hill", "last"), "holds a stop"),
        (lambda: InSentence("-", "last"), "says nothing"),
        (lambda: Syllables([]), "has 0 lines"),
        (lambda: Syllables([0]), "has 0: use a whole number"),
        (lambda: Syllables("575"), "counts is '575': use a tuple of whole numbers"),
        (lambda: Syllables([5], also=("xyzzy",)), "does not know 'xyzzy'"),
        (lambda: Syllables([5], also=("old dog",)), "is not one word"),
        (lambda: Syllables([5], unknown="guess"), 'use "refuse" or "estimate"'),
        (lambda: Rhyme(""), "give one such as"),
        (lambda: Rhyme("AB"), "rhymes nothing"),
        (lambda: Rhyme("A1"), "'1' is no letter"),
        (lambda: Rhyme("AA", families=0), "families is 0"),
        (lambda: ReadingLevel(20), "use 0 to 18"),
        (lambda: ReadingLevel(math.nan), "finite"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    with pytest.raises(InvalidGuideError, match=re.escape(message)):
        make()  # type: ignore[operator]


def test_a_scheme_that_needs_too_many_states_names_the_budget() -> None:
    scene = Scene(small_vocabulary(), torch.device("cpu"), 1, 60, 8)
    with pytest.raises(StateBudgetError, match="no 9 common words that rhyme"):
        Rhyme("AAAAAAAAA").language(scene)


@pytest.mark.parametrize("letter", "eis")
def test_a_lipogram_bars_every_form_of_its_letter(letter: str) -> None:
    every = {c for c in map(chr, range(0x20000)) if c.isalpha() and letter in base_letters(c)}
    assert every <= barred(letter)
    assert all(letter in base_letters(c) for c in barred(letter))


def test_syllables_and_rhymes_of_words() -> None:
    assert syllables("storm") == (1,)
    assert set(syllables("fire")) == {1, 2}
    assert syllables("Don’t") == (1,)
    assert syllables("sea-green") == (2,)
    assert syllables("3") == syllables("😀") == syllables("") == ()
    assert rhyme("Storm", "form")
    assert not rhyme("storm", "STORM")
    assert not rhyme("storm", "harbour")
    assert not rhyme("xyzzy", "dizzy")
    assert [word for _, word in line_words('The "old" sea—\'twas (cold)... -- !')] == [
        "The",
        "old",
        "sea",
        "'twas",
        "cold",
    ]


def test_the_estimate_agrees_with_the_dictionary_for_most_words() -> None:
    agree = [estimate(word) in syllables(word) for word in common()]
    assert sum(agree) / len(agree) > 0.94


def test_the_grade_is_the_formula() -> None:
    text = "The dog sat. The happy sailor remembered 3 storms!"
    words, count = 9, 1 + 1 + 1 + 1 + 2 + 2 + 3 + 1 + 1
    assert flesch_kincaid(text) == pytest.approx(0.39 * words / 2 + 11.8 * count / words - 15.59)
    assert flesch_kincaid("... 😀"[:3]) is None
    assert ReadingLevel(2).check("").status == "unknown"
    assert ReadingLevel(2).check(text).status == "satisfied"


def test_a_higher_grade_prefers_longer_words_and_fewer_stops() -> None:
    vocabulary = small_vocabulary()
    scene = Scene(vocabulary, torch.device("cpu"), 1, 8, 8)
    low, high = (ReadingLevel(grade).bind(scene).bias(None) for grade in (0, 12))  # type: ignore[arg-type]
    assert low is not None
    assert high is not None
    table = list(vocabulary.token_bytes)
    short, long, stop, none = (table.index(raw) for raw in (b" sea", b" lighthouse", b". ", b" "))
    s = (12 + 15.59 - 0.39 * 19) / 11.8
    assert float(high[long] - high[short]) == pytest.approx((s - 1.21) / 0.24, rel=1e-5)
    assert low[long] < low[short]
    assert high[stop] < 0 < low[stop]
    assert high[none] == 0
    assert all(high[k] == 0 for k, raw in enumerate(table) if raw is None)


@pytest.mark.parametrize("guide", [Tidy(), ~Tidy()], ids=str)
def test_tidy_knows_no_control_character_but_the_line_break(guide: HardGuide) -> None:
    scene = Scene(small_vocabulary(), torch.device("cpu"), 1, 12, 8)
    language, outer = guide.language(scene), guide.outer(scene)
    for code in (*range(0x20), *range(0x7F, 0xA0)):
        text = f"He{chr(code)}ran."
        tokens = scene.vocabulary.encode(text)
        held = (code == ord("\n")) == (guide == Tidy())
        assert (guide.check(text).status == "satisfied") == held, ascii(text)
        assert language.accepts(tokens) == outer.accepts(tokens) == held, ascii(text)


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def sounded(line: str) -> list[str]:
    return [word for _, word in line_words(line)]


@pytest.mark.parametrize(
    ("guides", "holds"),
    [
        (
            [Acrostic("SAD"), Keywords("storm"), Words(6, 12)],
            lambda t: [re.sub(r"^[\W_]+", "", line)[0].lower() for line in lines_of(t)] == ["s", "a", "d"],
        ),
        ([Lipogram("e"), Keywords("storm"), Words(4, 9)], lambda t: "e" not in t.lower() and "é" not in t),
        (
            [Alliteration("s", at_least=3), Tidy(), Keywords("dog")],
            lambda t: sum(w.strip("\"'([{-.,")[:1].lower() == "s" for w in t.split()) >= 3 and ",," not in t,
        ),
        (
            [Tidy(), Words(4, 9), Keywords("storm", "sea")],
            lambda t: re.search(r"[A-Z0-9]", t) and t.rstrip("\"')]”’")[-1] in ".!?…" and "  " not in t,
        ),
        ([StartsWith("The "), EndsWith("sea."), Words(4, 8)], lambda t: t[:4] == "The " and t[-4:] == "sea."),
        ([Lines(3, 3), Characters(20, 60)], lambda t: len(lines_of(t)) == 3 and 20 <= len(t) <= 60),
        (
            [Ordered("storm", "ship", "home"), Words(5, 14)],
            lambda t: re.search(r"\bstorm\b[\s\S]*\bship\b[\s\S]*\bhome\b", t, re.I),
        ),
        (
            [Occurrences("dog", 2, 2), Words(5, 12)],
            lambda t: len(re.findall(r"\bdog\b", t, re.I)) == 2,
        ),
        (
            [Near("storm", "sea", within=3), Words(8, 14)],
            lambda t: any(
                abs(i - j) <= 3
                for i, a in enumerate(t.split())
                for j, b in enumerate(t.split())
                if re.search(r"\bstorm\b", a, re.I) and re.search(r"\bsea\b", b, re.I)
            ),
        ),
        (
            [InSentence("dog", "first"), InSentence("cat", "last"), Sentences(2, 3)],
            lambda t: (
                re.search(r"\A[^.!?]*\bdog\b", t, re.I) and re.search(r"\bcat\b[^.!?]*[.!?]\W*\Z", t, re.I)
            ),
        ),
        (
            [Syllables([3, 4, 3]), Keywords("storm")],
            lambda t: [sum(syllables(w)[0] for w in sounded(line)) for line in lines_of(t)] == [3, 4, 3],
        ),
        ([Rhyme("AA"), Words(4, 14)], lambda t: rhyme(*(sounded(line)[-1] for line in lines_of(t)))),
    ],
)
def test_texts_by_a_wild_denoiser(guides: list[HardGuide], holds: object) -> None:
    denoiser = Chaos(small_vocabulary(), length=36, seed=3)
    for result in denoiser.write(guides, samples=2, seed=5, steps=6):
        assert holds(result.text), result.text  # type: ignore[operator]
        assert all(verdict.status == "satisfied" for verdict in result.verdicts), result


def test_contradictions_are_named_early() -> None:
    denoiser = Chaos(small_vocabulary())
    for guides in (
        [Acrostic("HOPE"), Lines(3, 3)],
        [Lipogram("e"), Keywords("sea")],
        [Syllables([1]), Words(2)],
    ):
        with pytest.raises(UnsatisfiableError) as caught:
            denoiser.write(guides, seed=1)
        assert len(caught.value.conflict) == 2
    assert denoiser.calls == 0
