"""What guides cost, as shares of the denoiser's own step, in one process.

    python benchmarks/overhead.py [--model embedded] [--repeats 5] [--threads 2] [--only WORD ...]

For each request a whole run is made (L = 64, 24 steps, random order) and the time in the denoiser and outside it is
summed over its steps. Requests are interleaved and repeated; medians are printed. `added` is what the guides add to
the unguided run, `share` that over the denoiser's time. The design's bars: hard guides 15 %, linear bias 5 %.
"""

from __future__ import annotations

import argparse
import statistics

import torch

from redraft.denoiser import Canvas, Denoiser, Guide, Scene, Settings, Steering, load, refine
from redraft.denoiser.randomness import Randomness
from redraft.guidance import Bias, Forbid, Infill, Keywords, Repetition, Sentences, Sentiment, Style, Words

REQUESTS: dict[str, list[Guide]] = {
    "unguided": [],
    "Forbid, 3 words": [Forbid("very", "really", "suddenly")],
    "Keywords, 1": [Keywords("lighthouse", anchor="free")],
    "Keywords, 2": [Keywords("lighthouse", "storm", anchor="free")],
    "Words(15, 30)": [Words(15, 30)],
    "Sentences(2, 3)": [Sentences(2, 3)],
    "Infill, 3 blanks": [Infill("The old man ___ and the dog [[2-5]] by the ___.", anchor="free")],
    "Keywords, 5": [Keywords("sea", "dog", "rain", "house", "old man", anchor="free")],
    "Keywords, 2, and Words": [Keywords("lighthouse", "storm", anchor="free"), Words(15, 30)],
    "Sentiment (linear bias)": [Sentiment("positive")],
    "Style and Sentiment": [Style("formal"), Sentiment("positive")],
    "Sentiment, target 0.9": [Sentiment("positive", target=0.9)],
    "Bias, 2 phrases": [Bias({"sea": 2.0, "very good": -2.0})],
    "Repetition": [Repetition()],
}


def run(denoiser: Denoiser, steering: Steering, batch: int, length: int, seed: int) -> tuple[float, float]:
    """Milliseconds in the denoiser and outside it, over a whole run."""
    canvas = Canvas.blank(batch, length, denoiser.noise.fill, denoiser.device)
    prompt = denoiser.prepare("", batch)
    steps = refine(
        denoiser,
        canvas,
        steering,
        prompt=prompt,
        settings=Settings(steps=24),
        random=Randomness(range(seed, seed + batch), denoiser.device),
    )
    spent = [(r.denoiser_ms, r.guidance_ms) for r in steps]
    return sum(a for a, _ in spent), sum(b for _, b in spent)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[""], help="requests whose names hold one of these")
    options = parser.parse_args()
    requests = {
        name: guides
        for name, guides in REQUESTS.items()
        if name == "unguided" or any(word in name for word in options.only)
    }
    torch.set_num_threads(options.threads)
    denoiser, length = load(options.model), 64
    print("| batch | request | states | classes | denoiser ms | outside ms | added ms | share |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for batch in (1, 8):
        scene = Scene(denoiser.vocabulary, denoiser.device, batch, length, 24)
        bound = {name: Steering(guides, scene) for name, guides in requests.items()}
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in bound}
        for repeat in range(options.repeats):
            for name, steering in bound.items():
                spent[name].append(run(denoiser, steering, batch, length, 100 * repeat))
        plain = statistics.median(b for _, b in spent["unguided"])
        for name, steering in bound.items():
            inside, outside = (statistics.median(column) for column in zip(*spent[name], strict=True))
            states, classes = steering.language.states, steering.language.width
            added = outside - plain
            print(
                f"| {batch} | {name} | {states} | {classes} | {inside:.0f} | {outside:.0f} | {added:.0f} "
                f"| {100 * added / inside:.1f} % |"
            )


if __name__ == "__main__":
    main()
