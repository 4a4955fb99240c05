"""Decoding settings of the embedded denoiser: fluency, repetition and variety of unguided texts.

    python benchmarks/decoding.py [--model embedded] [--texts 48]

The settings in the model's redraft.json are chosen from this table.
"""

from __future__ import annotations

import argparse
import statistics
import time

from judges import Fluency, distinct, repetition

from redraft.denoiser import Confidence, EntropyBound, Random, Settings, load

CHOICES = {
    "random, 24 steps, T 0.8": Settings(24, Random(), 0.8),
    "random, 48 steps, T 0.8": Settings(48, Random(), 0.8),
    "random, 48 steps, T 0.6": Settings(48, Random(), 0.6),
    "random, 48 steps, T 0.8, top-p 0.9": Settings(48, Random(), 0.8, top_p=0.9),
    "random, 48 steps, T 0.8, min-p 0.1": Settings(48, Random(), 0.8, min_p=0.1),
    "confidence + 1 Gumbel, 48 steps, T 0.8": Settings(48, Confidence(1.0), 0.8),
    "confidence + 3 Gumbel, 48 steps, T 0.8": Settings(48, Confidence(3.0), 0.8),
    "confidence, 48 steps, T 0.8": Settings(48, Confidence(), 0.8),
    "entropy bound 0.5, T 0.8": Settings(48, EntropyBound(0.5), 0.8),
}
GENRES = ("story", "tale", "casual", "customer", "formal", "scene")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--texts", type=int, default=48)
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
        for k, genre in enumerate(GENRES):
            count = options.texts // len(GENRES)
            results += denoiser.write(
                samples=count, seed=1000 * k, settings=settings, length=48, condition={"genre": genre}
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
