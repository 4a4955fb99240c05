"""Random requests, both endings, every policy: the decoded text is what was asked for, by plain string code."""

from __future__ import annotations

import pytest
from fuzz import one_run


@pytest.mark.parametrize("part", range(4))
def test_sixty_random_requests(part: int) -> None:
    assert sum(one_run(number).texts for number in range(15 * part, 15 * part + 15)) > 10


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_a_hundred_and_fifty_more(part: int) -> None:
    assert sum(one_run(number).texts for number in range(1000 + 30 * part, 1030 + 30 * part)) > 20
