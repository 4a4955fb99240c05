"""The guides keep Redraft's contract; and what each of them means."""

from __future__ import annotations

import pytest
from redraft_example import Brevity, TongueTwister

from redraft.denoiser import InvalidGuideError
from redraft.denoiser.testing import parametrize_with_checks
from redraft.recipes.guide_checks import RECIPE_CHECKS


@parametrize_with_checks([TongueTwister("p"), TongueTwister("st"), Brevity(), Brevity(2)], more=RECIPE_CHECKS)
def test_contract(guide, check):
    check(guide)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Peter Piper picked", "satisfied"),
        ("Peter's peppers, PLEASE!", "satisfied"),
        ("Peter and Piper", "violated"),
        ("...", "violated"),
        ("", "violated"),
    ],
)
def test_tongue_twisters(text, status):
    assert TongueTwister("p").check(text).status == status


def test_values_that_cannot_be_meant():
    for letters in ("", "P", "é"):
        with pytest.raises(InvalidGuideError, match="use letters from a to z"):
            TongueTwister(letters)
    with pytest.raises(InvalidGuideError, match="from 1 to 40"):
        Brevity(0)
