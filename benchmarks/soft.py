"""How far the soft guides go, and what they cost: python benchmarks/soft.py [--model M] [--samples N].

Writes texts without a guide and under every tone and style at several scales, all from the same seeds, and
prints a table: share that the word judge (other writers than the bias) and, for tones, VADER accept; the
share of words that repeat no three words; distinct words; and the unguided denoiser's own cross-entropy of
the finished text (each quarter of its tokens masked in turn), whose rise tells when a scale wrecks a text.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from redraft.denoiser import Canvas, Denoiser, Result, load
from redraft.guidance import Repetition, Sentiment, Style
from redraft.guidance.tilt import Tilt

GUIDES: list[Tilt] = [
    Sentiment("positive"),
    Sentiment("negative"),
    *map(Style, ("formal", "casual", "old-fashioned", "plain")),
]


def cross_entropy(denoiser: Denoiser, results: list[Result]) -> float:
    """Nats per token of the texts under the unguided denoiser, each quarter of the tokens masked in turn."""
    tokens = torch.tensor([r.tokens for r in results], device=denoiser.device)
    text = torch.tensor([raw is not None for raw in denoiser.vocabulary.token_bytes], device=denoiser.device)[
        tokens
    ]
    total = 0.0
    for part in range(4):
        hide = text & (torch.arange(tokens.shape[1], device=tokens.device) % 4 == part)
        blank = Canvas.blank(tokens.shape[0], tokens.shape[1], denoiser.noise.fill, denoiser.device)
        canvas = blank.commit(tokens, ~hide, torch.ones_like(blank.confidence))
        log_p = denoiser(canvas, denoiser.prepare("", len(tokens))).log_softmax(-1)
        total -= float(log_p.gather(-1, tokens[..., None])[..., 0][hide].sum())
    return total / int(text.sum())


def row(scale: float, denoiser: Denoiser, results: list[Result], guide: Tilt) -> dict[str, object]:
    """One line of the table; `guide` judges."""
    texts = [r.text for r in results]
    vader = SentimentIntensityAnalyzer()
    sign = {"positive": 1, "negative": -1}.get(guide.wanted()[1])
    moods = [vader.polarity_scores(text)["compound"] for text in texts]
    words = [text.lower().split() for text in texts]
    return {
        "judged": str(guide),
        "scale": scale,
        "judge": sum(guide.check(text).status == "satisfied" for text in texts) / len(texts),
        "vader": None if sign is None else sum(sign * mood > 0 for mood in moods) / len(texts),
        "unrepeated": sum(Repetition().check(text).score or 0.0 for text in texts) / len(texts),
        "distinct": sum(len(set(own)) / max(len(own), 1) for own in words) / len(words),
        "words": sum(map(len, words)) / len(words),
        "nats": cross_entropy(denoiser, results),
        "guide_ms": sum(results[0].timing.guides_ms.values()) / results[0].steps,
        "denoiser_ms": results[0].timing.denoiser_ms / results[0].steps,
    }


def shown(line: dict[str, object]) -> str:
    vader = "" if line["vader"] is None else f"{line['vader']:.0%}"
    shares = f"{line['judge']:.0%} | {vader} | {line['unrepeated']:.3f} | {line['distinct']:.2f}"
    return f"| {line['judged']} | {line['scale']:g} | {shares} | {line['words']:.0f} | {line['nats']:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--texts", type=Path, help="also write every text there, a JSON object a line")
    options = parser.parse_args()
    torch.set_num_threads(1)
    denoiser = load(options.model)
    kept = options.texts.open("w", encoding="utf-8") if options.texts else None

    def write(guide: Tilt | None, scale: float) -> list[Result]:
        results = denoiser.write(
            [] if guide is None else [scale * guide],
            samples=options.samples, seed=options.seed, length=options.length, steps=options.steps,
            batch_size=options.batch_size,
        )  # fmt: skip
        for result in results if kept else []:
            print(
                json.dumps({"guide": str(guide), "scale": scale, "text": result.text}), file=kept, flush=True
            )
        return results

    print("| guide | scale | judge | VADER | not repeated | distinct | words | nats |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    free = write(None, 0.0)
    for guide in GUIDES:
        print(shown(row(0.0, denoiser, free, guide)), flush=True)
    for guide in GUIDES:
        for scale in options.scales:
            print(shown(row(scale, denoiser, write(guide, scale), guide)), flush=True)


if __name__ == "__main__":
    main()
