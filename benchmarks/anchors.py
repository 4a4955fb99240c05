"""Keyword anchoring, early against free: fluency by a judge that guided nothing.

    python benchmarks/anchors.py [--model embedded] [--texts 60]

One, three and five keywords drawn from the corpus's common nouns; the same seeds for both anchors and unguided.
"""

from __future__ import annotations

import argparse
import random
import statistics

from judges import Fluency, distinct, repetition

from redraft.denoiser import Guide, load
from redraft.guidance import Keywords

NOUNS = [
    "dog",
    "house",
    "storm",
    "boat",
    "garden",
    "letter",
    "sister",
    "river",
    "train",
    "morning",
    "table",
    "winter",
    "bread",
    "window",
    "school",
    "doctor",
    "horse",
    "money",
    "door",
    "song",
    "street",
    "teacher",
    "rain",
    "friend",
    "kitchen",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--texts", type=int, default=60)
    options = parser.parse_args()
    denoiser, judge = load(options.model), Fluency()
    print("| keywords | anchor | NLL a token | standard error | repeated trigrams | distinct-2 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for count in (0, 1, 3, 5):
        for anchor in ("early", "free") if count else ("-",):
            pick, texts = random.Random(count), []
            for seed in range(options.texts):
                words = pick.sample(NOUNS, count)
                guides: list[Guide] = [Keywords(*words, anchor=anchor)] if words else []
                texts.append(denoiser.write(guides, seed=seed, length=48)[0].text)
            scores = judge(texts)
            error = statistics.stdev(scores) / len(scores) ** 0.5
            print(
                f"| {count} | {anchor} | {statistics.mean(scores):.2f} | {error:.2f} | {100 * repetition(texts):.1f} % "
                f"| {distinct(texts):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
