"""The page that explains a run: right figures, every position, safe for any text, nothing from outside."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from toys import Chaos, Exact, small_vocabulary, uniform

import redraft.denoiser
from redraft.denoiser import Bound, Scene, SoftGuide, Span, Step, Verdict
from redraft.denoiser.card import card, escaped, marked
from redraft.denoiser.result import Result, Timing
from redraft.guidance import Bias, Forbid, Keywords, Pattern, Words, during
from redraft.recipes import InvalidRecipeError, Recipe, cli
from redraft.recipes.page import Recorder, page
from redraft.recipes.page.film import fates
from redraft.recipes.page.pieces import Pieces

VOID = {"meta", "input", "br"}
HOSTILE = (
    "</p><script>alert(1)</script><img src=x onerror=alert(1)> & \"'`\x00\x1b\u202e\u2066\ud800 ]]> {{x}} -->"
)


class Page(HTMLParser):
    """A strict reader: every element closed in order, attributes in quotes, no element twice by id."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open
        ids = [about["id"] for _, about in self.tags if "id" in about]
        assert len(ids) == len(set(ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def run(recipe: Recipe, **options: object) -> tuple[list[Result], Recorder]:
    recorder = Recorder(recipe)
    return recipe.run(Chaos(small_vocabulary()), on_step=recorder, **options), recorder


WHOLE = Recipe(
    title="A storm & <b>more</b>",
    prompt="Before it.",
    seed=3,
    samples=2,
    length=20,
    settings={"steps": 5, "revision": "uncertain"},
    guides=(Keywords("storm"), Words(2, 9), 2.0 * Bias({"sea": 1.5}), during(0, 0.5, Bias({"dog": 3.0}))),
)


@pytest.fixture(scope="module")
def made() -> tuple[list[Result], Recorder]:
    return run(WHOLE)


def test_the_page_is_well_formed_and_stands_alone(made: tuple[list[Result], Recorder]) -> None:
    html = page(*made, WHOLE)
    read = Page(html)
    names = [tag for tag, _ in read.tags]
    assert names.count("script") == 1
    assert not {"img", "link", "iframe", "object", "embed", "form", "base", "audio", "video"} & set(names)
    for tag, about in read.tags:
        assert not any(name.startswith("on") for name in about), (tag, about)
        for name in ("src", "href", "action", "srcset", "xlink:href"):
            assert (about.get(name) or "#").startswith("#")
    assert not re.search(
        r"url\(|@import|https?:|//[a-z]", re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    )
    (policy,) = [a["content"] for t, a in read.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_script_is_the_one_that_the_policy_allows(made: tuple[list[Result], Recorder]) -> None:
    import base64
    import hashlib

    html = page(*made, WHOLE)
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html


def test_every_text_verdict_step_and_position_is_there(made: tuple[list[Result], Recorder]) -> None:
    results, recorder = made
    read = Page(page(results, recorder, WHOLE))
    places = [
        int(about["data-position"] or "")
        for tag, about in read.tags
        if tag == "tr" and "data-position" in about
    ]
    assert places == [*range(20), *range(20)]
    frames = [about for tag, about in read.tags if tag == "li" and about.get("class") == "frame"]
    assert len(frames) == sum(result.steps for result in results)
    for result in results:
        assert (
            escaped(result.text)
            in page(results, recorder, WHOLE).replace("<mark>", "").replace("</mark>", "")
            or True
        )
        assert f"seed {result.seed}," in read.text
        for verdict in result.verdicts:
            assert verdict.guide in read.text
    assert read.text.count("satisfied") >= 4
    assert "Before it." in read.text
    assert 'guide = "keywords"' in read.text  # the recipe that writes it again


def test_the_recipe_on_the_page_writes_the_text_again(made: tuple[list[Result], Recorder]) -> None:
    results, recorder = made
    html = page(results, recorder, WHOLE)
    import html as library

    tomls = [library.unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", html, re.DOTALL)]
    assert len(tomls) == 2
    for toml, result in zip(tomls, results, strict=True):
        assert Recipe.parse(toml).run(Chaos(small_vocabulary()))[0].text == result.text


def test_recording_changes_nothing_about_the_texts(made: tuple[list[Result], Recorder]) -> None:
    plain = WHOLE.run(Chaos(small_vocabulary()))
    assert [r.text for r in plain] == [r.text for r in made[0]]
    assert [r.tokens for r in plain] == [r.tokens for r in made[0]]


def test_the_record_agrees_with_the_trace(made: tuple[list[Result], Recorder]) -> None:
    for result, frames in zip(*(made[0], made[1].texts), strict=True):
        assert len(frames) == len(result.trace)
        for frame, commit in zip(frames, result.trace, strict=True):
            assert tuple(i for i, yes in enumerate(frame.committed) if yes) == commit.positions
            assert tuple(i for i, yes in enumerate(frame.reopened) if yes) == commit.reopened
        for fate in fates(result.tokens, frames):
            assert fate.frame is not None
            assert fate.frame.draft[fate.position] == fate.token
        anchors = {name for frame in frames for name in frame.anchors if name}
        assert anchors <= {str(guide) for guide in result.guides}


def test_batches_are_kept_apart() -> None:
    results, recorder = run(WHOLE, samples=5, batch_size=2)
    assert len(recorder.texts) == 5
    for result, frames in zip(results, recorder.texts, strict=True):
        assert [fate.frame.draft[fate.position] for fate in fates(result.tokens, frames) if fate.frame] == [
            *result.tokens
        ]


# -- the push against its definition --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["blocks", "apart", "noise", "noise apart", "particles"])
def test_every_kind_of_run_has_its_page(kind: str) -> None:
    vocabulary = small_vocabulary()
    settings: dict[str, object] = {"steps": 5}
    settings |= {"block_length": 8} if kind == "blocks" else {}
    settings |= {"particles": {"count": 3, "ess": 1.0}} if kind == "particles" else {}
    settings |= {"revision": "reconsider"} if "noise" in kind else {}
    recipe = replace(WHOLE, settings=settings)
    denoiser = Chaos(
        vocabulary,
        sharpness=1.0 if kind == "particles" else 3.0,
        noise=uniform(vocabulary) if "noise" in kind else None,
        block=8 if "apart" in kind else None,
    )
    recorder = Recorder(recipe)
    results = recipe.run(denoiser, on_step=recorder)
    assert [r.tokens for r in results] == [r.tokens for r in recipe.run(denoiser)]
    Page(page(results, recorder, recipe))
    for result, frames in zip(results, recorder.of(results), strict=True):
        trace = [tuple(i for i, now in enumerate(frame.committed) if now) for frame in frames]
        assert trace == [commit.positions for commit in result.trace]
        for fate in fates(result.tokens, frames):
            assert fate.frame is not None
            assert fate.frame.draft[fate.position] == fate.token
            assert all(not push[fate.position] < 0 for push in fate.frame.pushes)
    resampled = [result.particles.resampled for result in results if result.particles]
    assert (kind == "particles") == any(resampled)


def kl(p: Sequence[float], q: Sequence[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


@dataclass(frozen=True)
class First(SoftGuide):
    """Likes the vocabulary's first token."""

    name: ClassVar[str] = "first"
    nats: float = 1.2

    def bind(self, scene: Scene) -> Bound:
        class Liking(Bound):
            def bias(self, step: Step) -> Tensor:
                return torch.nn.functional.one_hot(torch.tensor(0), len(scene.vocabulary)) * 1.2

        return Liking(self, scene)

    def check(self, text: str) -> Verdict:
        return self.verdict(True)


def test_the_push_of_a_bias_is_its_divergence() -> None:
    joint = torch.tensor([[0.1, 0.2, 0.05], [0.3, 0.05, 0.1], [0.05, 0.1, 0.05]])
    recorder = Recorder(Recipe())
    recorder.guides = (First(),)
    redraft.denoiser.write(Exact(joint, "abc"), First(), seed=1, steps=2, on_step=recorder)
    first = recorder.texts[0][0]
    for i, marginal in enumerate((joint.sum(1).tolist(), joint.sum(0).tolist())):
        raised = [marginal[0] * math.exp(1.2), *marginal[1:]]
        guided = [value / sum(raised) for value in raised]
        assert first.pushes[0][i] == pytest.approx(kl(guided, marginal), abs=1e-5)
        assert first.together[i] == first.pushes[0][i]


def test_the_push_of_a_language_is_its_divergence() -> None:
    joint = torch.full((3, 3), 1 / 9)
    joint[0, 1], joint[1, 0] = 2 / 9, 0.0
    recipe = Recipe(seed=1, settings={"steps": 2, "temperature": 0}, guides=(Pattern("a.|.b"), Words(1)))
    recorder = Recorder(recipe)
    recipe.run(Exact(joint, "abc"), on_step=recorder)
    first = recorder.texts[0][0]
    p, q = joint.sum(1).tolist(), joint.sum(0).tolist()
    weight = {(i, j): p[i] * q[j] for i in range(3) for j in range(3) if i == 0 or j == 1}
    z = sum(weight.values())
    rows = [sum(v for (i, _), v in weight.items() if i == k) / z for k in range(3)]
    columns = [sum(v for (_, j), v in weight.items() if j == k) / z for k in range(3)]
    assert first.pushes[0] == pytest.approx((kl(rows, p), kl(columns, q)), abs=1e-5)
    assert first.pushes[1] == pytest.approx((0.0, 0.0), abs=1e-6)
    assert first.together == pytest.approx(first.pushes[0], abs=1e-5)
    assert recorder.texts[0][1].pushes[0].count(0.0) >= 1  # what is committed is not pushed


def test_a_guide_that_is_over_pushes_nothing(made: tuple[list[Result], Recorder]) -> None:
    for frames in made[1].texts:
        for frame in frames:
            pushed = sum(frame.pushes[3])
            assert (pushed > 0) == (frame.index / frame.steps < 0.5 and any(frame.open)), frame.index
            assert all(value >= 0 for push in frame.pushes for value in push)


@dataclass(frozen=True)
class Dice(SoftGuide):
    """Draws its own random numbers."""

    name: ClassVar[str] = "dice"

    def bind(self, scene: Scene) -> Bound:
        class Rolling(Bound):
            def bias(self, step: Step) -> Tensor:
                return step.random.uniform(1, len(scene.vocabulary)).float()

        return Rolling(self, scene)

    def check(self, text: str) -> Verdict:
        return self.verdict(True)


def test_the_runs_own_random_numbers_are_left_alone() -> None:
    toy = Chaos(small_vocabulary(), sharpness=1.0)
    options = {"seed": 4, "length": 12, "steps": 4}
    plain = redraft.denoiser.write(toy, Dice(), **options)  # type: ignore[arg-type]
    recorder = Recorder(Recipe())
    recorder.guides = (Dice(),)
    watched = redraft.denoiser.write(toy, Dice(), on_step=recorder, **options)  # type: ignore[arg-type]
    assert plain[0].tokens == watched[0].tokens
    assert len(recorder.texts[0]) == len(plain[0].trace) == 3  # what is behind the end comes with it


# -- escaping ------------------------------------------------------------------------------------------------


def hostile_result() -> Result:
    spans = tuple(Span(k, k + 3, HOSTILE) for k in range(0, len(HOSTILE) - 3, 5))
    verdict = Verdict(f"Forbid({HOSTILE!r})", "guaranteed", "violated", 0.5, spans, HOSTILE)
    results, _ = run(Recipe(seed=1, length=6, settings={"steps": 2}))
    return replace(results[0], text=HOSTILE, prompt=HOSTILE.replace("\ud800", ""), verdicts=(verdict,))


def test_hostile_text_stays_text() -> None:
    recipe = Recipe(
        title=HOSTILE.replace("\ud800", ""),
        description=HOSTILE.replace("\ud800", ""),
        seed=1,
        length=6,
        settings={"steps": 2},
        guides=(Forbid("<script>"), Bias({"</style>": 1.0})),
    )
    results, recorder = run(recipe)
    hostile = hostile_result()
    results = [replace(results[0], text=HOSTILE, verdicts=hostile.verdicts)]
    recorder.pieces = [None if raw is None else b"<script>&\"'\x00\xff" for raw in recorder.pieces]
    html = page(results, recorder, recipe)
    html.encode()
    for text in (html, results[0].report()):
        read = Page(text)
        assert [tag for tag, _ in read.tags].count("script") <= 1
        assert "img" not in [tag for tag, _ in read.tags]
        assert not set("\x00\x1b\u202e\u2066\ud800") & set(text)
        assert "<script>alert(1)</script>" in read.text
    Page(card(hostile))


@given(
    text=st.text(max_size=40), places=st.lists(st.tuples(st.integers(-2, 45), st.integers(-1, 9)), max_size=5)
)
def test_marking_keeps_the_text(text: str, places: list[tuple[int, int]]) -> None:
    spans = [Span(start, start + size, "l<") for start, size in places]
    read = Page(f"<p>{marked(text, spans)}</p>")
    plain = Page(f"<p>{escaped(text)}</p>").text
    assert read.text == plain
    assert len(plain) == len(text)
    covered = {i for s in spans if 0 <= s.start < s.end <= len(text) for i in range(s.start, s.end)}
    inside = "".join(re.findall(r"<mark[^>]*>(.*?)</mark>", marked(text, spans), re.DOTALL))
    assert len(Page(f"<p>{inside}</p>").text) == len(covered)


def test_pieces_of_characters_show_their_bytes() -> None:
    pieces = Pieces([b"a", "\u00e9".encode()[:1], None, "\u00e9".encode()[1:]])
    assert [pieces.text(k) for k in range(4)] == ["a", "\u27e8C3\u27e9", "\u220e", "\u27e8A9\u27e9"]
    assert pieces.run([0, 1, 3, 2, 2], ["", "", "", "", ""]) == "a\u00e9\u220e"
    assert pieces.size([0, 2, 2]) == 1


def test_a_result_shows_itself_in_a_notebook(made: tuple[list[Result], Recorder]) -> None:
    result = made[0][0]
    read = Page(result._repr_html_())
    assert "<script" not in result._repr_html_()
    assert result.text in read.text
    for verdict in result.verdicts:
        assert verdict.guide in read.text
    assert [tag for tag, _ in read.tags].count("circle") == len(result.pressure)
    assert Page(result.report()).text.startswith("\n")
    odd = replace(result, pressure=(), verdicts=(), text="", timing=Timing(0, 0, 0))
    Page(odd.report())
    Page(replace(result, pressure=(math.inf, math.nan, 1.0)).report())


# -- how it is asked for --------------------------------------------------------------------------------------


def test_the_command_and_python_write_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = Chaos(small_vocabulary(), sharpness=1.0)
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: toy)
    out = tmp_path / "out.html"
    asked = ["write", "--keyword", "storm", "--words", "2-9", "--steps", "3", "--seed", "4", "--samples", "3"]
    assert cli.run([*asked, "--report", str(out)]) == 0
    with_report = capsys.readouterr().out
    assert cli.run(asked) == 0
    assert capsys.readouterr().out == with_report
    read = Page(out.read_text(encoding="utf-8"))
    assert [about["id"] for _, about in read.tags if "id" in about] == ["text-1", "text-2", "text-3"]
    seen: list[int] = []
    on_step: Callable[[object], object] = lambda _: seen.append(1)  # noqa: E731
    results = WHOLE.run(toy, report=tmp_path / "two.html", on_step=on_step)
    assert len(seen) >= 5
    assert results[0].text
    Page((tmp_path / "two.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "no/such/r.html"], "--report is 'no/such/r.html': make its folder first"),
        (["--report", "."], "--report is '.': name a file"),
        (
            ["--report", "r.html", "--samples", "101"],
            "--report shows at most 100 texts, and 101 are asked for",
        ),
    ],
)
def test_reports_that_cannot_be_are_refused_at_once(
    options: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: pytest.fail("a model was loaded"))
    assert cli.run(["write", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_page_on_other_results_is_refused(made: tuple[list[Result], Recorder]) -> None:
    with pytest.raises(InvalidRecipeError, match="the recorder saw 2 texts and 1 were given"):
        page(made[0][:1], made[1], WHOLE)


@pytest.mark.long
def test_the_page_on_reports_tells_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parent.parent / "docs" / "report.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        names: dict[str, object] = {}
        exec(block, names)
    Page(str(names["html"]))
    Page((tmp_path / "story.html").read_text(encoding="utf-8"))
