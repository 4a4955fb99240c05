"""Random requests, both endings, every policy: the decoded text is what was asked for, by plain string code."""

from __future__ import annotations

import random

import pytest
from fuzz import of_form, of_words, one_run, tidy

from redraft.guidance import Tidy

PIECES = [*"Ab3éÉ \n.,!?:;\"'(“”)-…\x17\x1c\x85", "...", "T:", " B", ". "]


def test_tidy_is_read_the_same_way_twice() -> None:
    pick, guide, found = random.Random(1), Tidy(), 0
    for _ in range(6000):
        inner = "".join(pick.choices(PIECES, k=pick.randrange(7)))
        text = (
            pick.choice(["A", '"A', "(A", "3", "a", ""]) + inner + pick.choice([".", '."', ".)", "...", ","])
        )
        held = guide.check(text).status == "satisfied"
        assert tidy(text) == held, text
        found += held
    assert 600 < found < 5400


@pytest.mark.parametrize("text", ["", " ", "...", "- !", "\n\n", "\x17", "Mr.", "!dog", "Dog"])
def test_every_judge_takes_texts_that_say_little(text: str) -> None:
    for number in range(4):
        for guide, holds in of_words(random.Random(number)) + of_form(random.Random(number)):
            assert holds(text) == (guide.check(text).status == "satisfied"), (str(guide), text)


@pytest.mark.parametrize("part", range(4))
def test_sixty_random_requests(part: int) -> None:
    assert sum(one_run(number).texts for number in range(15 * part, 15 * part + 15)) > 10


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_a_hundred_and_fifty_more(part: int) -> None:
    assert sum(one_run(number).texts for number in range(1000 + 30 * part, 1030 + 30 * part)) > 20
