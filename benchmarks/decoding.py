"""Decoding settings of the embedded denoiser: fluency, repetition and variety of unguided texts.

    python benchmarks/decoding.py [--model embedded] [--texts 32] [--length 32]

The settings in the model's redraft.json are chosen from this table.
"""

from __future__ import annotations

import argparse
import statistics
import time

from judges import Fluency, distinct, repetition

from redraft.denoiser import Confidence, LeftToRight, Random, ReMDM, Settings, Uncertain, load

CHOICES = {
    "random, T 0.5": Settings(32, Random(), 0.5),
    "confidence + 3 Gumbel, T 0.6": Settings(32, Confidence(3.0), 0.6),
    "blocks of 8, confidence + 2 Gumbel, T 0.7, top-p 0.9": Settings(
        32, Confidence(2.0), 0.7, top_p=0.9, block_length=8
    ),
    "left to right, T 0.6": Settings(32, LeftToRight(), 0.6),
    "confidence + 2 Gumbel, lean 0.5, T 0.6": Settings(32, Confidence(2.0, 0.5), 0.6),
    "confidence + 1 Gumbel, lean 0.5, T 0.7": Settings(32, Confidence(1.0, 0.5), 0.7),
    "confidence + 1 Gumbel, lean 0.5, T 0.6": Settings(32, Confidence(1.0, 0.5), 0.6),
    "confidence + 1 Gumbel, lean 0.5, T 0.5": Settings(32, Confidence(1.0, 0.5), 0.5),
    "confidence + 1 Gumbel, lean 0.5, T 0.7, top-p 0.9": Settings(32, Confidence(1.0, 0.5), 0.7, top_p=0.9),
    "confidence + 1 Gumbel, lean 1, T 0.6": Settings(32, Confidence(1.0, 1.0), 0.6),
    "confidence + 1 Gumbel, lean 0.2, T 0.6": Settings(32, Confidence(1.0, 0.2), 0.6),
    "48 steps, confidence + 1 Gumbel, lean 0.5, T 0.6, ReMDM by chance": Settings(
        48, Confidence(1.0, 0.5), 0.6, revision=ReMDM("cap", 0.06)
    ),
    "48 steps, confidence + 1 Gumbel, lean 0.5, T 0.6, Uncertain in the second half": Settings(
        48, Confidence(1.0, 0.5), 0.6, revision=Uncertain(0.1, 0.5, 0.95)
    ),
}
CONDITIONS = (
    ("story", "positive"),
    ("review", "negative"),
    ("customer", "negative"),
    ("casual", "positive"),
    ("formal", "none"),
    ("plain", "neutral"),
    ("tale", "none"),
    ("scene", "none"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--only", default="", help="settings whose name holds this")
    parser.add_argument("--show", type=int, default=0, help="texts to print for each setting")
    options = parser.parse_args()
    denoiser, judge = load(options.model), Fluency()
    print("| settings | NLL a token | repeated trigrams | distinct-2 | words | steps | seconds a text |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, settings in CHOICES.items():
        if options.only not in name:
            continue
        begin, results = time.perf_counter(), []
        for k, (genre, tone) in enumerate(CONDITIONS):
            results += denoiser.write(
                samples=options.texts // len(CONDITIONS),
                seed=100 * k + 7,
                settings=settings,
                length=options.length,
                condition={"genre": genre, "tone": tone},
            )
        spent = (time.perf_counter() - begin) / len(results)
        texts = [result.text for result in results]
        nll = statistics.mean(judge(texts))
        words = statistics.mean(len(text.split()) for text in texts)
        steps = statistics.mean(result.steps for result in results)
        print(
            f"| {name} | {nll:.2f} | {100 * repetition(texts):.1f} % | {distinct(texts):.2f} | {words:.0f} "
            f"| {steps:.0f} | {spent:.2f} |",
            flush=True,
        )
        for text in texts[:: max(1, len(texts) // options.show)] if options.show else []:
            print("   ", repr(text), flush=True)


if __name__ == "__main__":
    main()
