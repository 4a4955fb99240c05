"""`redraft write --table`: one JSON line a row, whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toys import Chaos, small_vocabulary

import redraft.denoiser
from redraft.recipes import InvalidRecipeError, Recipe, cli
from redraft.recipes.journal import Journal
from redraft.recipes.rows import read_rows

Run = Callable[..., tuple[int, str, str]]

RECIPE = """
version = 2
title = "Greeting"
prompt = "Hello."
seed = 100
length = 16
[parameters]
who = { type = "string" }
most = 9
loud = false
also = ["sea"]
[settings]
steps = 3
[[guides]]
guide = "keywords"
words = [{ parameter = "who" }]
exact_case = { parameter = "loud" }
[[guides]]
guide = "words"
least = 1
most = { parameter = "most" }
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run `redraft write greeting.toml` on a toy denoiser, in a folder of its own."""
    toy = Chaos(small_vocabulary())
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: toy)
    monkeypatch.chdir(tmp_path)
    Path("greeting.toml").write_text(RECIPE)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.run(["write", "greeting.toml", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def without_times(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != "timing"}


def test_a_row_is_the_recipe_with_its_own_values(run: Run) -> None:
    Path("t.csv").write_text('\ufeffwho,most,seed,prompt\r\ndog,3,,\r\n"sea",,7,"Dear, you."\r\n\r\n')
    code, out, err = run("--table", "t.csv")
    first, second = lines(out)
    assert code == 0
    assert "2 rows: 2 written" in err
    assert [first["row"], first["seed"], first["parameters"]["most"]] == [1, 100, 3]
    assert [second["row"], second["seed"], second["recipe"]["prompt"]] == [2, 7, "Dear, you."]
    assert "dog" in first["text"].lower()
    for line in (first, second):
        again = Recipe.from_dict(line["recipe"]).run(Chaos(small_vocabulary()))
        assert again[0].text == line["text"]
    alone = Recipe.read("greeting.toml").with_parameters(who="dog", most=3).run(Chaos(small_vocabulary()))
    assert alone[0].text == first["text"]


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1" * 5000])
def test_what_json_has_no_number_for_is_refused(run: Run, value: str) -> None:
    Path("t.jsonl").write_text('{"who": "dog"}\n{"who": "cat", "most": %s}\n' % value)  # noqa: UP031
    code, out, err = run("--table", "t.jsonl", "--seed", "5")
    assert (code, out) == (2, "")
    assert "t.jsonl, line 2 is not JSON" in err


def test_json_lines_have_typed_values(run: Run) -> None:
    rows = [
        {"who": "dog", "loud": True},
        {"who": "cat", "also": ["a", "b"], "most": None},
        {"who": "cat", "most": "3"},
    ]
    Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code, out, err = run("--table", "t.jsonl", "--seed", "5")
    found = lines(out)
    assert code == 1
    assert [line.get("seed") for line in found] == [5, 6, None]
    assert found[1]["parameters"] == {"who": "cat", "most": 9, "loud": False, "also": ["a", "b"]}
    assert found[2]["error"] == {
        "type": "InvalidRecipeError",
        "message": 'parameter "most" is "3": use a whole number',
    }
    assert "2 written, 1 failed" in err


def test_a_row_that_fails_is_told_in_its_line_and_tried_again(run: Run) -> None:
    Path("t.csv").write_text("who,most\ndog,2\n,3\ncat,0\nsea,many\nship,2\n")
    code, _, err = run("--table", "t.csv", "--out", "o.jsonl")
    found = lines(Path("o.jsonl").read_text())
    assert code == 1
    assert [line["row"] for line in found] == [1, 2, 3, 4, 5]
    assert ["error" in line for line in found] == [False, True, True, True, False]
    assert 'parameter "who" has no value' in found[1]["error"]["message"]
    assert "runs from 1 to 0" in found[2]["error"]["message"]
    assert "use a whole number" in found[3]["error"]["message"]
    assert "2 written, 3 failed" in err
    before = [line for line in found if "error" not in line]
    code, _, err = run("--table", "t.csv", "--out", "o.jsonl")
    again = lines(Path("o.jsonl").read_text())
    assert code == 1
    assert again[:2] == before
    assert "2 there already, 3 failed" in err


def test_an_unsatisfiable_row_does_not_stop_the_rest(run: Run) -> None:
    Path("t.csv").write_text('who,most\n"the old dog ran home",2\ndog,4\n')
    code, out, _ = run("--table", "t.csv")
    first, second = lines(out)
    assert code == 1
    assert first["error"]["type"] == "UnsatisfiableError"
    assert "contradict" in first["error"]["message"]
    assert "text" in second


def test_every_cut_of_the_file_is_mended(run: Run) -> None:
    Path("t.csv").write_text("who\ndog\ncat\nsea\n")
    assert run("--table", "t.csv", "--out", "o.jsonl")[0] == 0
    whole = Path("o.jsonl").read_bytes()
    wanted = [without_times(line) for line in lines(whole.decode())]
    ends = [k + 1 for k, byte in enumerate(whole) if byte == 10]
    for cut in (0, 3, ends[0] - 1, ends[0], ends[0] + 4, ends[1] + len(whole) // 9, len(whole) - 1):
        Path("o.jsonl").write_bytes(whole[:cut])
        code, _, err = run("--table", "t.csv", "--out", "o.jsonl")
        assert code == 0
        assert [without_times(line) for line in lines(Path("o.jsonl").read_text())] == wanted
        assert ("torn" in err) == (cut not in (0, *ends))
    untouched = Path("o.jsonl").read_bytes()
    assert "3 there already" in run("--table", "t.csv", "--out", "o.jsonl")[2]
    assert Path("o.jsonl").read_bytes() == untouched


def test_a_longer_table_goes_on_and_equal_rows_are_each_written(run: Run) -> None:
    Path("t.csv").write_text("who\ndog\ndog\n")
    run("--table", "t.csv", "--out", "o.jsonl")
    Path("t.csv").write_text("who\ncat\ndog\ndog\ndog\n")
    _, _, err = run("--table", "t.csv", "--out", "o.jsonl")
    found = lines(Path("o.jsonl").read_text())
    assert "2 written, 2 there already" in err
    assert len({line["key"] for line in found}) == 4


def test_a_file_that_is_something_else_is_left_alone(run: Run) -> None:
    Path("t.csv").write_text("who\ndog\n")
    for content in (b"my diary", b"my diary\n", b'{"text": 3}\n', b"{}\n\n"):
        Path("o.jsonl").write_bytes(content)
        code, _, err = run("--table", "t.csv", "--out", "o.jsonl")
        assert code == 2
        assert "was not written by redraft write --table: name another file" in err
        assert Path("o.jsonl").read_bytes() == content
    Path("o.jsonl").unlink()
    assert run("--table", "t.csv", "--out", "o.jsonl")[0] == 0
    for options in (["--seed", "4"], ["--keyword", "sea"], ["--set", "most=3"]):
        code, _, err = run("--table", "t.csv", "--out", "o.jsonl", *options)
        assert code == 2
        assert "was written with another recipe or other options" in err


REFUSED = [
    ("who,mots\ndog,3\n", [], 'column "mots" is no parameter of the recipe: did you mean "most"?'),
    ("who,who\ndog,3\n", [], 'the column "who" is there twice'),
    ("who;most\ndog;3\n", [], "columns are separated by commas"),
    ("who,most\ndog\n", [], "t.csv, line 2 has 1 cells and the header 2"),
    ("who\n", [], "t.csv has no row"),
    ("", [], "t.csv has no row"),
    ("most\n3\n", [], 't.csv has no value for parameter "who": add the column, or give --set who=VALUE'),
    ('who\n"dog\n', [], "t.csv, line 2: unexpected end of data"),
    ("who\ndog\n", ["--out", "no/such/o.jsonl"], "make its folder first"),
    ("who\ndog\n", ["--report", "r.html"], "--report is for one recipe"),
    ("who\ndog\n", ["--save-recipe", "r.toml"], "--save-recipe is for one recipe"),
]


@pytest.mark.parametrize(("table", "options", "message"), REFUSED, ids=range(len(REFUSED)))
def test_tables_that_cannot_be_meant_are_refused_at_once(
    table: str, options: list[str], message: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redraft.denoiser, "load", lambda *_, **__: pytest.fail("a model was loaded"))
    Path("t.csv").write_text(table)
    code, out, err = run("--table", "t.csv", *options)
    assert (code, out) == (2, "")
    assert message in err


def test_seeds_and_samples_of_rows(run: Run) -> None:
    Path("t.csv").write_text("who,seed\ndog,-1\ncat,9223372036854775807\nsea,x\n")
    found = lines(run("--table", "t.csv")[1])
    assert ["error" in line for line in found] == [True, False, True]
    assert found[1]["seed"] == 2**63 - 1
    Path("t.csv").write_text("who\ndog\n")
    (line,) = lines(run("--table", "t.csv", "--samples", "2")[1])
    assert "a table has one text a row; give --samples 1" in line["error"]["message"]
    assert (
        run("--out", "o.jsonl")[2]
        == "redraft: --out is for --table: send the texts to a file with > instead\n"
    )


def test_tables_are_read_as_programs_write_them(tmp_path: Path) -> None:
    parameters = Recipe.parse(RECIPE).plan.parameters  # type: ignore[union-attr]
    for name, content in [
        ("a.csv", b'\xef\xbb\xbfwho,prompt\r\ndog,"two\r\nlines"\r\n'),
        ("a.tsv", b'who\tprompt\ndog\t"two\r\nlines"\n'),
        ("a.jsonl", b'\n{"who": "dog", "prompt": "two\\r\\nlines"}\r\n'),
    ]:
        (tmp_path / name).write_bytes(content)
        (row,) = read_rows(str(tmp_path / name), parameters)
        assert row.cells == {"who": "dog", "prompt": "two\r\nlines"}
    for name, content, said in [
        ("b.csv", b"who\n\xff\n", "is not UTF-8 text"),
        ("b.jsonl", b"[1]\n", "line 1 is '[1]': give one JSON object a line"),
        ("c.jsonl", b'{"who": "a"}\n{"how": 3}\n', 'line 2: "how" is no parameter'),
        ("d.jsonl", b"{who}\n", "line 1 is not JSON"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidRecipeError) as caught:
            read_rows(str(tmp_path / name), parameters)
        assert said in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="locks as POSIX has them")
def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    file = str(tmp_path / "o.jsonl")
    with Journal(file, "p") as journal:
        with pytest.raises(InvalidRecipeError, match="being written by another run"), Journal(file, "p"):
            pass
        journal.add({"row": 1, "key": "k", "plan": "p"})
    with Journal(file, "p") as journal:
        assert set(journal.done) == {"k"}


SLOW = """
import sys, time
sys.path.insert(0, {tests!r})
from toys import Chaos, small_vocabulary
import redraft.denoiser
toy = Chaos(small_vocabulary())
redraft.denoiser.load = lambda *a, **k: toy
call = Chaos.__call__
Chaos.__call__ = lambda self, *a: (time.sleep(0.03), call(self, *a))[1]
from redraft.recipes.cli import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.long
def test_killed_in_the_middle_it_goes_on_and_nothing_is_lost(run: Run) -> None:
    who = ["dog", "cat", "sea", "ship", "home", "storm", "light", "house"]
    Path("t.csv").write_text("who\n" + "\n".join(who * 3) + "\n")
    assert run("--table", "t.csv", "--out", "whole.jsonl")[0] == 0
    whole = [without_times(line) for line in lines(Path("whole.jsonl").read_text())]
    program = SLOW.format(tests=str(Path(__file__).parent))
    command = [
        sys.executable,
        "-c",
        program,
        "write",
        "greeting.toml",
        "--table",
        "t.csv",
        "--out",
        "o.jsonl",
    ]
    out = Path("o.jsonl")
    for least in (2, 7):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 240
        while (not out.exists() or out.read_bytes().count(b"\n") < least) and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        done = out.read_bytes().count(b"\n")
        assert least <= done < len(whole)
    code, _, err = run("--table", "t.csv", "--out", "o.jsonl")
    assert code == 0
    assert f"{len(whole) - done} written, {done} there already" in err
    assert [without_times(line) for line in lines(out.read_text())] == whole
