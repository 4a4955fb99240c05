"""Teach a denoiser what readers let stand: `python tools/prefer.py RELEASE --out DIR --verdicts DIR CORPUS...`.

Twenty minutes on two cores for 25,000 verdicts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from redraft.denoiser.training.masking import Masking
from redraft.denoiser.training.preference import Moment, Preference, prefer, read_verdicts
from redraft.denoiser.training.rows import Mixture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", type=Path)
    parser.add_argument("corpus", nargs="+", type=Path, help="what it was trained on, said again on the way")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--verdicts", type=Path, required=True, help="a folder of GENRE.tsv")
    parser.add_argument("--rate", type=float, default=Preference.rate)
    parser.add_argument("--beta", type=float, default=Preference.beta)
    parser.add_argument("--epochs", type=float, default=Preference.epochs)
    parser.add_argument("--likelier", type=float, default=Preference.likelier)
    parser.add_argument("--replay", type=float, default=Preference.replay)
    parser.add_argument("--real", type=float, default=0.04, help="share of rows of real text")
    parser.add_argument("--joined", type=float, default=0.0, help="share of rows of two passages")
    parser.add_argument(
        "--streams", type=float, default=Masking.streams, help="share of batches of the corpus in two streams"
    )
    parser.add_argument("--hand", type=_hand, action="append", help="NUMBER:WEIGHT, from this hand on")
    parser.add_argument("--seed", type=int, default=Preference.seed)
    parser.add_argument("--device", default=Preference.device)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    settings = Preference(
        rate=options.rate,
        beta=options.beta,
        epochs=options.epochs,
        likelier=options.likelier,
        replay=options.replay,
        seed=options.seed,
        device=options.device,
        masking=Masking(streams=options.streams),
        mixture=Mixture(real=options.real, joined=options.joined, hands=tuple(options.hand or Mixture.hands)),
    )
    release = prefer(
        options.release,
        read_verdicts(options.verdicts),
        options.corpus,
        options.out,
        settings=settings,
        progress=_log,
    )
    print(json.loads((release / "figures.json").read_text())["training"])


def _hand(text: str) -> tuple[int, float]:
    number, _, weight = text.partition(":")
    return int(number), float(weight)


def _log(moment: Moment) -> None:
    print(
        f"{moment.step}/{moment.steps} pairs {moment.loss:.3f}, in order {moment.ordered:.2f}, "
        f"corpus {moment.replayed:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
