"""Mark what is usual as not preferred: `python tools/usual.py VERDICTS --out DIR --corpus DIR...`.

Readers let stand what a model says often, and a preference for it alone narrows the model to that. `tools/prefer.py`
learns from what this writes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from critic import COPIED, PARTLY, copied, grams, how_usual, write_verdicts

from redraft.denoiser.training.corpus import read_corpus
from redraft.denoiser.training.preference import Verdict, read_verdicts

USUAL = 0.15  # of what stands in a genre and length, the most usual: it stands no more
DOUBTFUL = 0.10  # the next: left out
SPARED = 0.25  # of what does not stand, the least usual: left out
LENGTH = 3  # words


def marked(
    verdicts: Sequence[Verdict], known: set[tuple[str, ...]], most: float = USUAL
) -> dict[str, list[str]]:
    """The lines of GENRE.tsv by genre; more than 15 % of 8-grams `known` is copied, more than 5 % does not stand.

    `most`: the share of what stands that is the most usual, and stands no more.
    """
    usual = how_usual([v.draft.text for v in verdicts])
    by: dict[tuple[str, int, bool], list[int]] = defaultdict(list)
    for k, v in enumerate(verdicts):
        by[v.draft.genre, len(v.draft.text.split()) // LENGTH, v.stands].append(k)
    lines: dict[str, list[str]] = defaultdict(list)
    for (genre, _, stands), some in by.items():
        rank = np.argsort(np.argsort(usual[some], kind="stable")) / len(some)
        for k, share in zip(some, rank, strict=True):
            draft = verdicts[k].draft
            if stands:
                seen = copied([draft.text], known)
                if seen > COPIED:
                    mark = "C"
                elif seen > PARTLY or 1 - most - DOUBTFUL < share <= 1 - most:
                    continue
                else:
                    mark = "P" if share <= 1 - most else "F"
            elif share < SPARED:
                continue
            else:
                mark = "C" if verdicts[k].copied else "F"
            lines[genre].append(f"{mark}\t{draft.tone}\t{draft.text}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verdicts", type=Path, nargs="+", help="folders of GENRE.tsv, as readers gave them")
    parser.add_argument("--out", type=Path, required=True, help="a folder for GENRE.tsv")
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="what must not be copied")
    parser.add_argument("--usual", type=float, default=USUAL, help="share of what stands that is too usual")
    options = parser.parse_args()
    known = {gram for p in read_corpus(options.corpus).train for gram in grams(p.text)}
    verdicts = [v for folder in options.verdicts for v in read_verdicts(folder)]
    write_verdicts(marked(verdicts, known, options.usual), options.out)


if __name__ == "__main__":
    main()
