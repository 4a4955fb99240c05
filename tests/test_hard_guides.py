"""Each hard guide's language against its own plain-code check: language <= check <= outer."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest
import torch
from forms import EXACT, FORMS
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import Chaos, small_vocabulary

from redraft.denoiser import Automaton, HardGuide, InvalidGuideError, Scene, UnsatisfiableError
from redraft.denoiser.errors import StateBudgetError
from redraft.denoiser.steering import Steering
from redraft.guidance import (
    Forbid,
    Infill,
    Keywords,
    OneOf,
    Pattern,
    Sentences,
    Tokens,
    Words,
)
from redraft.guidance.occurrence import find, occurs
from redraft.guidance.sentences import sentence_ends
from redraft.guidance.space import SPACES

VOCABULARY = small_vocabulary()
SCENE = Scene(VOCABULARY, torch.device("cpu"), 1, 40, 8)

PIECES = st.sampled_from(
    [
        "storm",
        "Storm",
        "STORM",
        "storms",
        "lighthouse",
        "light",
        " house",
        " ",
        " ",
        " ",
        "  ",
        ".",
        ". ",
        "! ",
        "?",
        "...",
        '"',
        "'",
        ")",
        "(",
        "-",
        "\n",
        "\t",
        "é",
        "—",
        "\u00a0",
        "\u2003",
        "😀",
        "a",
        "dark and stormy",
        "the ",
        "Mr",
        "Mr.",
        "SS",
        "straße",
        "STRASSE",
        "ß",
        "Dr. ",
        "3.5",
        "x",
        "1",
        "_",
        "The ",
        "dog",
        "<mask>",
        "old dog",
        " in the dark.",
        " sea",
        "Sea",
        ", ",
        "\n\n",
        "\r\n",
        "e\u0301",
        "\u2028",
        "ﬁ",
    ]
)
TEXTS = st.lists(PIECES, max_size=9).map("".join)

GUIDES: list[HardGuide] = [
    Keywords("storm"),
    Keywords("storm", "dog"),
    Keywords("storm", "dog", "light", at_least=2),
    Keywords(("storm", "storms"), exact_case=True),
    Keywords("light", whole=False),
    Keywords("dark and stormy"),
    Keywords("é"),
    Keywords("ß", "straße"),
    ~Keywords("ß"),
    Words(0),
    ~Words(0) | Keywords("dog"),
    Keywords("..."),
    Keywords("-storm"),
    Forbid("storm", "dark and stormy"),
    Forbid("the", "a", "é", whole=False),
    Forbid("storm", exact_case=True),
    Forbid("a", "é", whole=False, exact_case=True),
    Keywords("...a", exact_case=True),
    Forbid("...", "-"),
    Forbid(regexes=[r"[0-9]", "st.rm"]),
    Words(2, 5),
    Words(0, 3),
    Words(4),
    Sentences(1, 2),
    Sentences(2),
    Infill("The ___ in the dark."),
    Infill("___storm[[1-2]]"),
    Infill(r"a[[1-2]]\___"),
    Pattern("(?i)the (storm|dog)[^a]*"),
    Pattern(r"[\p{L} ]*"),
    Pattern("^storm|dog$|é", contains=True),
    ~Pattern("[sß]t", contains=True),
    OneOf(["storm", "the ", "", "é", "ß"]),
    OneOf(["Storm", "straße", "é"], ignore_case=True),
    ~OneOf(["storm", "ß"], ignore_case=True),
    ~Keywords("storm"),
    ~Words(2, 5),
    ~Forbid("storm", "é"),
    ~Sentences(1),
    Keywords("storm") & Words(1, 4),
    Keywords("storm") | Keywords("dog"),
    ~(Keywords("storm") | Forbid("dog")),
    (Keywords("storm") & ~Keywords("dog")) | Sentences(1, 1),
    *FORMS,
]


def accepts(language: Automaton, text: str) -> bool:
    return language.accepts(VOCABULARY.encode(text))


@lru_cache(maxsize=4)
def languages(guide: HardGuide) -> tuple[Automaton, Automaton]:
    """What a guide writes, and what it means at most."""
    return guide.language(SCENE), guide.outer(SCENE)


@pytest.mark.parametrize("guide", GUIDES, ids=str)
@given(text=TEXTS)
@settings(max_examples=120, deadline=None)
def test_language_within_check_within_outer(guide: HardGuide, text: str) -> None:
    held = guide.check(text).status == "satisfied"
    language, outer = languages(guide)
    if accepts(language, text):
        assert held, guide.check(text)
    if held:
        assert accepts(outer, text)


@pytest.mark.parametrize(
    "guide", [*(g for g in GUIDES if isinstance(g, (Words, Infill, Pattern))), *EXACT], ids=str
)
@given(text=TEXTS)
@settings(max_examples=120, deadline=None)
def test_exact_guides_are_exact(guide: HardGuide, text: str) -> None:
    assert accepts(languages(guide)[0], text) == (guide.check(text).status == "satisfied")


@given(
    words=st.lists(
        st.sampled_from(["a", "ab", "b a", "é", "-", "ba.", "aé", "A b", "e\u0301", "\u0301"]),
        min_size=1,
        max_size=3,
    ),
    text=st.text("abeé- .A\u0301", max_size=12),
)
@settings(max_examples=400, deadline=None)
def test_occurs_brackets_find(words: list[str], text: str) -> None:
    for whole in (True, False):
        found = any(find(text, word, whole=whole) for word in words)
        more = occurs(tuple(words), whole).accepts(text.encode())
        less = occurs(tuple(words), whole, sure=True).accepts(text.encode())
        assert less <= found <= more
        if text.isascii() and all(word.isascii() for word in words):
            assert less == found == more


@given(text=TEXTS)
@settings(max_examples=150, deadline=None)
def test_outer_sentences_are_exact_but_behind_characters_beyond_ascii(text: str) -> None:
    guide = Sentences(1, 2)
    outer, holds = accepts(guide.outer(SCENE), text), guide.check(text).status == "satisfied"
    unsure = re.search(r"[^\x00-\x7f](?:Mr|Mrs|Ms|Dr|St|Prof)\.", text)
    assert outer or not holds
    assert unsure or outer == holds


def test_spaces_are_those_of_str() -> None:
    assert {chr(code).encode() for code in range(0x110000) if chr(code).isspace()} == SPACES


@pytest.mark.parametrize(
    ("text", "count", "complete"),
    [
        ("Hello. There!", 2, True),
        ("Mr. Hill came home.", 1, True),
        ("I saw Dr. Hill. He waved.", 2, True),
        ('He said "no." Then he left', 1, False),
        ("It cost 3.50 dollars.", 1, True),
        ("Wait... what?", 2, True),
        ("... ", 0, False),
        ("Hello. ", 1, False),
        ("", 0, False),
    ],
)
def test_sentence_ends(text: str, count: int, complete: bool) -> None:
    ends = sentence_ends(text)
    assert len(ends) == count
    assert (bool(ends) and ends[-1] == len(text)) == complete


def test_keywords_find_their_places() -> None:
    verdict = Keywords("storm", ("dog", "dogs")).check("Two dogs, one Storm.")
    assert verdict.status == "satisfied"
    assert [(s.start, s.end) for s in verdict.spans] == [(14, 19), (4, 8)]
    missing = Keywords("storm", "dog").check("stormy dogs")
    assert (missing.status, missing.score, missing.note) == ("violated", 0.0, "missing: storm, dog")


@pytest.mark.parametrize("text", ["the cafe\u0301", "cafe\u0301s", "e\u0301cafe"])
def test_a_mark_belongs_to_the_word(text: str) -> None:
    """A letter that bears one is another letter."""
    assert Keywords("cafe").check(text).status == "violated"
    assert Keywords("cafe", whole=False).check(text).status == "satisfied"
    assert Keywords("cafe\u0301").check("the cafe\u0301.").status == "satisfied"


def test_a_mark_that_is_asked_for_by_itself_is_found_on_its_letter() -> None:
    assert Forbid("\u0301").check("cafe\u0301").status == "violated"
    assert (
        Keywords("sea").check("\u2764\ufe0fsea").status == "satisfied"
    )  # a mark of what is no letter bounds a word
    assert Keywords("cafe\u0301").check("cafe\u0301s").status == "violated"


def test_what_no_canvas_of_the_denoiser_holds_names_its_limit() -> None:
    denoiser = Chaos(small_vocabulary())
    for length in (None, 20):
        with pytest.raises(
            UnsatisfiableError, match=r"chaos writes at most 96 behind this prompt: relax"
        ) as caught:
            denoiser.write([Tokens(200, 300)], length=length)
        assert caught.value.needed == 201
    assert denoiser.calls == 0


def test_keywords_need_room_for_separate_words() -> None:
    with pytest.raises(
        UnsatisfiableError, match=r"Keywords\('storm', 'dog', 'cat'\) and Words\(1-2\) contradict"
    ):
        Steering([Keywords("storm", "dog", "cat"), Words(1, 2)], SCENE)


@pytest.mark.parametrize(
    ("guides", "names", "needed"),
    [
        ([Keywords("storm"), Forbid("storm")], 2, None),
        ([Words(3), Keywords("dog"), Forbid("Dog"), Sentences(1)], 2, None),
        ([Tokens(50, 60)], 1, 51),
        (
            [Infill("the cat sat on the red house and the dog ran home by the sea " * 4 + "___ storm")],
            1,
            None,
        ),
        ([Keywords("storm") & ~Keywords("storm")], 1, None),
        ([Words(1, 9), Infill("The ___ was [[9]] and the dog.")], 2, None),
    ],
)
def test_contradictions_are_named_before_anything_runs(
    guides: list[HardGuide], names: int, needed: int | None
) -> None:
    with pytest.raises(UnsatisfiableError) as caught:
        Steering(guides, SCENE)
    assert len(caught.value.conflict) == names
    assert all(name in str(caught.value) for name in caught.value.conflict)
    if needed is not None:
        assert caught.value.needed == needed
        assert str(needed) in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Keywords(), "at least one word"),
        (lambda: Keywords(""), "'': give a word or phrase"),
        (lambda: Keywords("  "), "give a word or phrase"),
        (lambda: Keywords("a", at_least=2), "at_least is 2 of 1 keywords"),
        (lambda: Keywords("a", anchor="late"), "anchor is 'late'"),
        (lambda: Words(5, 2), "runs from 5 to 2"),
        (lambda: Words(-1, 2), "is -1: use a whole number from 0"),
        (lambda: Words(True, 2), "is True"),
        (lambda: Sentences(0, 2), "is 0: use a whole number from 1"),
        (lambda: Tokens(3, 2), "runs from 3 to 2"),
        (lambda: Infill("no blank"), "has no blank"),
        (lambda: Infill("a ___[[2]] b"), "touch"),
        (lambda: Infill("a [[x]] b"), r"is no width"),
        (lambda: Infill("a [[6-3]] b"), "runs from 6 to 3"),
        (lambda: Forbid(), "nothing to forbid"),
        (lambda: Forbid(regexes=["a*"]), "matches nothing at all"),
        (lambda: Pattern("(ab"), "position"),
        (lambda: Pattern(""), "give a regular expression"),
        (lambda: Pattern(r"a\b"), "word boundary"),
        (lambda: Pattern(r"a\q"), r"unknown escape \\q at position 1"),
        (lambda: Pattern("a(?=b)", contains=True), "lookahead at position 1"),
        (lambda: OneOf([]), "no choice"),
        (lambda: OneOf("storm"), "give a list of texts"),
        (lambda: OneOf(["a", 3]), "is 3: use a string"),
        (lambda: OneOf(["\ud800"]), "use text"),
        (lambda: Forbid("\ud800"), "half a surrogate pair"),
        (lambda: Keywords("a\udfffb"), "half a surrogate pair"),
        (lambda: Keywords("\u0301"), "shows nothing by itself"),
        (lambda: Keywords(["a", "\u200b\u0301"]), "shows nothing by itself"),
    ],
)
def test_bad_values_are_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidGuideError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("guide", GUIDES, ids=str)
def test_guides_are_values(guide: HardGuide) -> None:
    assert guide == eval_free_copy(guide)
    assert hash(guide) == hash(eval_free_copy(guide))


def eval_free_copy(guide: HardGuide) -> HardGuide:
    fields = dict(guide.fields())
    positional = fields.pop(guide.variadic) if guide.variadic else ()
    return type(guide)(*positional, **fields)


def test_hard_guides_have_no_strength() -> None:
    with pytest.raises(TypeError, match="guaranteed and has no strength"):
        2.0 * Keywords("storm")  # type: ignore[operator]


def test_too_many_states_name_the_guides_and_their_sizes() -> None:
    many = Keywords(*(f"k{k}" for k in range(18)))
    with pytest.raises(StateBudgetError, match=r"^Keywords\('k0'.* 18 in all\): .*more than 50000"):
        Steering([many], SCENE)
    with pytest.raises(
        StateBudgetError, match=r"together .*\(alone: Keywords.* [\d,]+, Words\(1-400\) [\d,]+\)"
    ):
        Steering([Keywords(*"abcdefgh"), Words(1, 400)], SCENE)


def test_an_abbreviation_behind_a_character_that_may_be_a_letter_is_not_written() -> None:
    """ "—Mr." is an abbreviation and "éMr." is not: bytes do not tell, so `language` has neither and `outer` both."""
    for text, holds in (("—Mr. house?", False), ("éMr. house?", True), ("—Mrs house. Sea?", True)):
        guide, ids = Sentences(2), VOCABULARY.encode(text)
        assert (guide.check(text).status == "satisfied") == holds
        assert guide.outer(SCENE).accepts(ids) or not holds
        assert guide.language(SCENE).accepts(ids) == (text == "—Mrs house. Sea?")


@given(st.integers(1, 40), st.integers(0, 40))
def test_room_is_made_for_the_upper_part_of_a_range_not_for_its_end(least: int, width: int) -> None:
    """The canvas for n words of English is 1.32 n + 1; with room for `most`, half of the texts would be squeezed."""
    most = least + width
    room = Words(least, most).room()
    assert room is not None
    words = (room - 2) / 1.32
    assert least - 1 <= words <= most
    assert words >= (least + most) / 2 - 1
    assert Words(least).room() == Words(least + 8, least + 8).room()
