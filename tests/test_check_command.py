"""`redraft check` and `assert_satisfies` as tools for anybody's tests."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redraft.denoiser
from redraft.denoiser import Span
from redraft.guidance import Forbid, Keywords, Repetition, Sentences, Words
from redraft.recipes import InvalidRecipeError, Recipe, cli
from redraft.recipes.excerpt import excerpts
from redraft.recipes.testing import assert_satisfies
from redraft.recipes.texts import Cut, texts

Run = Callable[..., tuple[int, str, str]]

RECIPE = """
version = 2
title = "A storm"
[parameters]
most = 5
[[guides]]
guide = "keywords"
words = ["storm"]
[[guides]]
guide = "words"
least = 2
most = { parameter = "most" }
[[guides]]
guide = "repetition"
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run `redraft check storm.toml` with arguments and standard input; loading a model fails the test."""
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: pytest.fail("a model was loaded"))
    monkeypatch.chdir(tmp_path)
    Path("storm.toml").write_text(RECIPE)

    def call(*arguments: str, given: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        code = cli.run(["check", "storm.toml", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_fields_of_json_lines(run: Run) -> None:
    lines = [{"text": "A storm came.", "n": 1}, {"text": "Nothing.", "n": 2}, {"text": "", "n": 3}]
    given = "\n".join(map(json.dumps, lines)).encode() + b"\n\n"
    code, out, err = run("--field", "text", "--json", given=given)
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [(one["line"], one["text"], one["holds"]) for one in found] == [
        (1, "A storm came.", True),
        (2, "Nothing.", False),
        (3, "", False),
    ]
    assert "1 of 3 texts" in err
    nested = json.dumps({"choices": [{"message": {"content": "A storm came."}}], "a.b": "No storm."}).encode()
    assert run("--field", "choices.0.message.content", given=nested)[0] == 0
    assert run("--field", "a.b", given=nested)[0] == 0


FIELD_ERRORS = [
    (b'{"txt": "a"}', "text", 'standard input, line 1 has no "text": it has txt; name another --field'),
    (b'{"text": 3}', "text", "line 1: text is 3, no string"),
    (b'{"text": ["a"]}', "text.1", 'has no "1"'),
    (b'{"text": ["a"]}', "text.x", 'has no "x"'),
    (b"\n[1]", "text", "line 2 is no JSON object"),
    (b"{text}", "text", "line 1 is not JSON"),
    (b'{"text": "\\ud800"}', "text", "half a surrogate pair"),
    (b"[" * 100_000, "text", "line 1 is not JSON"),
]


@pytest.mark.parametrize(("given", "field", "message"), FIELD_ERRORS, ids=range(len(FIELD_ERRORS)))
def test_lines_without_the_field_are_an_error(given: bytes, field: str, message: str, run: Run) -> None:
    code, out, err = run("--field", field, given=given)
    assert (code, out) == (2, "")
    assert message in err


def test_whole_files_and_separators(run: Run) -> None:
    Path("one.txt").write_text("A storm\n\ncame in.\n")
    Path("two.txt").write_bytes("\ufeffStorm, storm\r\nin.\r\n".encode())
    code, out, _ = run("one.txt", "two.txt", "--whole", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(one["file"], one["text"]) for one in found] == [
        ("one.txt", "A storm\n\ncame in."),
        ("two.txt", "Storm, storm\r\nin."),
    ]
    parts = b"---\nA storm\ncame.\n---\r\n \n---\nThe storm\nleft.\n"
    code, out, _ = run("--separator", "---", "--json", given=parts)
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["line"], one["text"]) for one in found] == [(2, "A storm\ncame."), (7, "The storm\nleft.")]
    assert code == 0


def test_a_byte_order_mark_is_no_text(run: Run) -> None:
    bom = "\ufeff".encode()
    assert json.loads(run("--json", given=bom + b"Storm here.\n")[1])["text"] == "Storm here."
    assert run("--field", "t", given=bom + b'{"t": "Storm here."}\n')[0] == 0
    code, _, err = run(given=bom)
    assert code == 2
    assert "no text" in err
    code, _, err = run(given="Storm here.\n".encode("utf-16"))
    assert code == 2
    assert "line 1 is not UTF-8 text: save it as UTF-8" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--whole", "--field", "x"], "--whole and --field are both given: use one of them"),
        (["--separator", " "], "--separator is ' ': give something that is not blank"),
        (["none.txt"], "none.txt cannot be read: No such file or directory"),
        (["--junit", "no/such/x.xml"], "--junit is 'no/such/x.xml': name a file in a folder that is there"),
        (["--json-file", "."], "--json-file is '.'"),
        (["--set", "mots=3"], 'no parameter "mots": did you mean "most"?'),
    ],
)
def test_usage_that_cannot_be_meant(arguments: list[str], message: str, run: Run) -> None:
    code, out, err = run(*arguments, given=b"A storm.\n")
    assert (code, out) == (2, "")
    assert message in err


def test_parameters_are_set(run: Run) -> None:
    given = b"A storm came in from the sea.\n"
    assert run(given=given)[0] == 1
    assert run("--set", "most=9", given=given)[0] == 0


def test_junit_is_xml_whatever_the_text(run: Run) -> None:
    hostile = "Sun & <script>\x00\x1b[31m ]]> \ufffe\U0001f600\n"
    given = f"A storm came.\n{hostile}".encode()
    code, _, _ = run("--junit", "out.xml", "--json-file", "out.json", given=given)
    assert code == 1
    root = ET.parse("out.xml").getroot()
    (suite,) = root
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("A storm", "2", "1")
    good, bad = suite.findall("testcase")
    assert good.find("failure") is None
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("message") == "Keywords('storm'): missing: storm"
    assert "Sun & <script>" in (bad.get("name") or "")
    whole = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert (whole["texts"], whole["held"], whole["recipe"]) == (2, 1, "A storm")
    assert whole["results"][1]["text"] == hostile.removesuffix("\n")


@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=8), max_size=6)
)
def test_lines_and_parts_are_what_was_written(lines: list[str]) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        file.write("\n".join(lines).encode())
        file.flush()
        clean = [line.removeprefix("\ufeff") if k == 0 else line for k, line in enumerate(lines)]
        assert [one.text for one in texts([file.name], Cut())] == [line for line in clean if line.strip()]
        assert [one.text for one in texts([file.name], Cut(whole=True))] == [
            "\n".join(clean).removesuffix("\n")
        ]


# -- the helper for tests ------------------------------------------------------------------------------------


def test_a_failure_shows_which_guide_and_where() -> None:
    text = "It was calm.\nA dark storm came over the hill."
    with pytest.raises(AssertionError) as caught:
        assert_satisfies(text, [Forbid("storm"), Words(20), Sentences(2), 2.0 * Repetition()])
    assert str(caught.value) == (
        "the text breaks 2 guides: 'It was calm.\\nA dark storm came over the hill.'\n"
        "  Forbid('storm'): found: storm\n"
        "    2 | A dark storm came over the hill.\n"
        "      |        ^^^^^\n"
        "  Words(20+): 10 words"
    )


def test_recipes_come_in_many_forms(tmp_path: Path) -> None:
    file = tmp_path / "storm.toml"
    file.write_text(RECIPE)
    for recipe in (file, str(file), Recipe.read(file), Keywords("storm"), [Keywords("storm")]):
        verdicts = assert_satisfies("The storm came.", recipe)
        assert verdicts[0].status == "satisfied"
        with pytest.raises(AssertionError, match="missing: storm"):
            assert_satisfies("The sun came.", recipe)
    long = "The storm came in from the sea."
    with pytest.raises(AssertionError, match="of 'A storm'"):
        assert_satisfies(long, file)
    assert_satisfies(long, file, parameters={"most": 9})
    with pytest.raises(InvalidRecipeError):
        assert_satisfies(long, file, parameters={"mots": 9})
    with pytest.raises(TypeError, match="decode it first"):
        assert_satisfies(b"storm", file)  # type: ignore[arg-type]


def test_soft_guides_count_when_asked() -> None:
    text = "The storm storm storm storm came came."
    assert_satisfies(text, Repetition())
    with pytest.raises(AssertionError, match="Repetition"):
        assert_satisfies(text, Repetition(), encouraged=True)


@pytest.mark.long
def test_the_helper_imports_no_test_framework() -> None:
    names = ("pytest", "_pytest", "hypothesis")
    code = f"import sys, redraft.recipes.testing; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n", done.stderr


@given(
    text=st.text(st.sampled_from("ab \n\t\u00e9e\u0301\u65e5\U0001f600\x00"), max_size=200),
    places=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20)), max_size=6),
)
def test_excerpts_never_fail_and_point_at_the_place(text: str, places: list[tuple[int, int]]) -> None:
    spans = [Span(start, start + size) for start, size in places]
    lines = excerpts(text, spans, width=30)
    pairs = [line for line in lines if not line.startswith("and ")]
    assert len(pairs) % 2 == 0
    for above, below in zip(pairs[::2], pairs[1::2], strict=True):
        assert "\n" not in above
        assert set(below.partition("| ")[2]) <= {" ", "^"}
        assert "^" in below


def test_carets_stand_beneath_wide_and_combining_characters() -> None:
    assert excerpts("\u65e5\u672c storm", [Span(3, 8)]) == ["| \u65e5\u672c storm", "|      ^^^^^"]
    assert excerpts("e\u0301 storm", [Span(3, 8)]) == ["| e\u0301 storm", "|   ^^^^^"]
    shown, marks = excerpts("x " * 200 + "storm" + " x" * 200, [Span(400, 405)])
    at = marks.index("^")
    assert shown[at : at + 5] == "storm"
    assert len(shown) < 90


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_said_as_such() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "redraft.recipes", "recipes", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == cli.INVALID
    assert done.stderr == "redraft: the output cannot be written: No space left on device\n"


def test_the_page_on_testing_tells_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parent.parent / "docs" / "testing-a-generator.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (recipe,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    Path("note.toml").write_text(recipe)
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    for product in ("Kettle 3", "Lamp"):
        names["test_a_note_keeps_to_the_recipe"](product)
    text = "As an AI I like the kettle 3, which is light and quiet."
    with pytest.raises(AssertionError) as caught:
        assert_satisfies(text, "note.toml", parameters={"product": "Kettle 3"})
    shown = textwrap.indent(f"AssertionError: {caught.value}", "    ")
    assert shown in page
