"""A second fluency judge: the English trigram model that pocketsphinx ships (`pip install pocketsphinx==5.1.1`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+")
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_UNKNOWN = -1000.0  # the model's own floor for a word it lacks is far below


class Trigram:
    """Mean negative log-likelihood per known word (nats), sentence ends counted, unknown words left out."""

    def __init__(self) -> None:
        try:
            from pocketsphinx import Config, LogMath, NGramModel, get_model_path
        except ImportError as error:
            raise SystemExit("the trigram judge needs: pip install pocketsphinx==5.1.1") from error
        self.math = LogMath()
        self.model = NGramModel(Config(), self.math, get_model_path("en-us/en-us.lm.bin"))

    def __call__(self, texts: Sequence[str]) -> tuple[list[float], float]:
        """(one number a text, share of words that the model lacks)."""
        values, unknown, words = [], 0, 0
        for text in texts:
            scores = [s for sentence in _SENTENCE_END.split(text.strip()) for s in self._scores(sentence)]
            known = [s for s in scores if s > _UNKNOWN]
            words, unknown = words + len(scores), unknown + len(scores) - len(known)
            values.append(-sum(known) / len(known) if known else float("nan"))
        return values, unknown / max(words, 1)

    def _scores(self, sentence: str) -> list[float]:
        history = ["<s>"]
        scores = []
        for word in [*_WORD.findall(sentence.lower()), "</s>"]:
            # The model takes the word first and its history behind it, nearest first.
            scores.append(self.math.log_to_ln(self.model.prob([word, *history[:2]])))
            history.insert(0, word)
        return scores
