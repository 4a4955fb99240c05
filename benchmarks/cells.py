"""The cells of the quality benchmark: what is asked, by which method, and who judges it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from baselines import (
    AnnealedTopic,
    FirstOrder,
    TokenBias,
    classifier_reward,
    head_of,
    probabilities,
    topic_reward,
)

from redraft.classifiers import NoiseAware, read_corpus, shipped
from redraft.classifiers.training import examples
from redraft.denoiser import BestOf, Guide, Particles
from redraft.guidance import Classifier, ClassifierFree, Infill, Keywords, Sentiment, Style, Topic, Words

ROOT = Path(__file__).resolve().parent.parent
WORDS = ("storm", "lighthouse", "dog", "letter", "garden", "night", "river", "friend", "bread", "window")
TOPICS = {
    "the sea": "sea ocean wave waves ship ships boat boats sail sailed shore beach harbour fish water sailor tide",
    "cooking": "cook cooked cooking kitchen soup bread food eat ate dinner meal pot oven salt butter stew taste cake",
    "money": "money pay paid price cost costs bill bank cheap coin coins buy bought sell sold rich poor refund account",
}
TEMPLATES = (
    "The old man ___ and the dog ___.",
    "When she opened the door, ___.",
    "___ in the end it was [[2-6]].",
)
STYLES = ("formal", "casual", "old-fashioned", "plain")
COMPARED = ("sentiment positive", "style formal")  # tasks that all baselines run on
WHOLE = (*COMPARED, "sentiment negative")  # tasks that all ways of ours run on
GENRES = {"old-fashioned": "tale"}  # the denoiser's tag for a style, where it has another name
FREE = "free_no_guidance"
OURS, BASELINE = "ours", "baseline"
DEAR = 0.32  # the share of texts where one takes several times an unguided one's time


@dataclass(frozen=True)
class Cell:
    """One cell: `guides(k)` of text k, `judge(k, text)` whether it succeeded, by what guided nothing.

    `second` is another judge where there is one. `options` go to write, or to rewrite where `original` gives a text.
    `share` of the texts asked for are written where one is dear.
    `own`: the probability of each text by the classifier that a target is stated in.
    `texts_of`: the name of the cell whose texts are judged here as well, instead of writing any.
    """

    task: str
    method: str
    side: str
    guides: Callable[[int], Sequence[Guide]]
    judge: Callable[[int, str], bool]
    second: Callable[[int, str], bool] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    original: Callable[[int], str] | None = None
    texts_of: str = ""
    own: Callable[[Sequence[str]], Sequence[float]] | None = None
    share: float = 1.0

    @property
    def name(self) -> str:
        return f"{self.task} {self.method}".replace(" ", "_").replace("/", "-")


@lru_cache(maxsize=1)
def vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def feels(tone: str, text: str) -> bool:
    """By VADER."""
    return (1 if tone == "positive" else -1) * float(vader().polarity_scores(text)["compound"]) > 0


def reads(pair: str, label: str, text: str) -> bool:
    """By the word judge, which learnt from other writers than the guides did."""
    judge = shipped(pair).judge
    return bool(judge.score([text])[0, judge.labels.index(label)] >= 0.5)


def speaks_of(topic: str, text: str) -> bool:
    """By a list of words."""
    words = {word.strip(".,;:!?\"'").lower() for word in text.split()}
    return bool(words & set(TOPICS[topic].split()))


# What is asked stays the same for a stretch of texts, which are then written together.
def template(k: int) -> str:
    return TEMPLATES[k // 16 % len(TEMPLATES)]


def topic(k: int) -> str:
    return tuple(TOPICS)[k // 16 % len(TOPICS)]


def keywords(number: int, k: int) -> tuple[str, ...]:
    k //= 4
    return tuple(random.Random(f"{number} {k}").sample(WORDS, number))


@lru_cache(maxsize=1)
def passages() -> tuple[Any, ...]:
    return tuple(read_corpus(ROOT / "corpus"))


@lru_cache(maxsize=8)
def noise_aware(pair: str, label: str, cache: Path) -> NoiseAware:
    """A head on 150 passages of each label by the hands that the guides learn from."""
    texts, labels = examples(list(passages()), pair, judge=False)
    order = random.Random(pair).sample(range(len(texts)), len(texts))
    kept = [k for own in sorted(set(labels)) for k in [k for k in order if labels[k] == own][:150]]
    return head_of(pair, label, cache / f"head-{pair}", [texts[k] for k in kept], [labels[k] for k in kept])


def cells(cache: Path) -> Iterator[Cell]:
    """All cells, in the table's order."""
    yield Cell("free", "no guidance", BASELINE, lambda k: (), lambda k, text: bool(text.strip()))
    yield from _hard()
    for tone in ("positive", "negative"):
        yield from _soft(f"sentiment {tone}", "sentiment", tone, Sentiment, cache)
    for style in STYLES:
        yield from _soft(f"style {style}", f"style-{style}", style, Style, cache)
    yield from _topics()
    yield from _rewriting()
    yield from _together()


def _hard() -> Iterator[Cell]:
    for number in (1, 3, 5):
        for anchor in ("early", "free"):

            def guides(k: int, number: int = number, anchor: str = anchor) -> Sequence[Guide]:
                return (Keywords(*keywords(number, k), anchor=anchor),)  # type: ignore[arg-type]

            def holds(k: int, text: str, number: int = number) -> bool:
                words = {word.strip(".,;:!?\"'()").lower() for word in text.split()}
                return set(keywords(number, k)) <= words

            yield Cell(f"keywords {number}", anchor, OURS, guides, holds)
    yield Cell(
        "infill", "exact", OURS,
        lambda k: (Infill(template(k)),),
        lambda k, text: Infill(template(k)).check(text).status == "satisfied",
    )  # fmt: skip


def _soft(task: str, pair: str, label: str, guide: Any, cache: Path) -> Iterator[Cell]:
    tone = label if pair == "sentiment" else None

    def judge(k: int, text: str) -> bool:
        return feels(tone, text) if tone else reads(pair, label, text)

    def second(k: int, text: str) -> bool:
        return reads(pair, label, text)

    def own(texts: Sequence[str]) -> Sequence[float]:
        return probabilities(pair, label, texts)

    def cell(
        method: str, side: str, make: Callable[[], Sequence[Guide]], share: float = 1.0, **options: Any
    ) -> Cell:
        return Cell(
            task,
            method,
            side,
            lambda k: make(),
            judge,
            second if tone else None,
            options,
            own=own,
            share=share,
        )

    tags = {"tone": tone} if tone else {"genre": GENRES.get(label, label)}
    yield Cell(task, "no guidance", BASELINE, lambda k: (), judge, second if tone else None, texts_of=FREE)
    yield cell("scale 1", OURS, lambda: (guide(label),))
    yield cell("scale 2", OURS, lambda: (2.0 * guide(label),))
    yield cell("target 0.9", OURS, lambda: (guide(label, 0.9),))
    yield cell("classifier-free 2", OURS, lambda: (ClassifierFree(tags, 2.0),))
    yield cell("tag", OURS, lambda: (), condition=tags)
    if task in WHOLE:
        yield cell("tag, scale 1", OURS, lambda: (guide(label),), condition=tags)
        yield cell("target 0.98", OURS, lambda: (guide(label, 0.98),))
        yield cell("noise-aware", OURS, lambda: (Classifier(noise_aware(pair, label, cache), label),), DEAR)
    if task not in COMPARED:
        return
    yield cell("token bias", BASELINE, lambda: (TokenBias(pair, label),))
    yield cell(
        "best of 4", BASELINE, lambda: (classifier_reward(pair, label, 1.0),), DEAR, particles=BestOf(4)
    )
    yield cell("D-CBG", BASELINE, lambda: (FirstOrder(noise_aware(pair, label, cache), label, 3.0),), DEAR)
    yield cell(
        "FK particles",
        BASELINE,
        lambda: (classifier_reward(pair, label, 4.0),),
        DEAR,
        particles=Particles(4, "max"),
    )


def _topics() -> Iterator[Cell]:
    def judge(k: int, text: str) -> bool:
        return speaks_of(topic(k), text)

    def cell(
        method: str, side: str, make: Callable[[str], Sequence[Guide]], share: float = 1.0, **options: Any
    ) -> Cell:
        return Cell("topic", method, side, lambda k: make(topic(k)), judge, None, options, share=share)

    yield Cell("topic", "no guidance", BASELINE, lambda k: (), judge, texts_of=FREE)
    yield cell("scale 1", OURS, lambda topic: (Topic(topic),))
    yield cell("scale 2", OURS, lambda topic: (2.0 * Topic(topic),))
    yield cell("annealed similarity", BASELINE, lambda topic: (AnnealedTopic(topic),))
    yield cell("best of 4", BASELINE, lambda topic: (topic_reward(topic, 1.0),), DEAR, particles=BestOf(4))
    yield cell(
        "FK particles",
        BASELINE,
        lambda topic: (topic_reward(topic, 20.0),),
        DEAR,
        particles=Particles(4, "max"),
    )


@lru_cache(maxsize=4)
def _originals(tone: str) -> tuple[str, ...]:
    own = [p.text for p in passages() if p.hand < 10 and p.tone == tone and 12 <= len(p.text.split()) <= 30]
    return tuple(random.Random(tone).sample(own, min(1000, len(own))))


def _rewriting() -> Iterator[Cell]:
    for keep in (0.8, 0.6):
        yield Cell(
            "rewrite to positive", f"keep {keep}", OURS, lambda k: (2.0 * Sentiment("positive"),),
            lambda k, text: feels("positive", text), lambda k, text: reads("sentiment", "positive", text),
            {"keep": keep}, lambda k: _originals("-")[k],
        )  # fmt: skip
        yield Cell(
            "rewrite to formal", f"keep {keep}", OURS, lambda k: (2.0 * Style("formal"),),
            lambda k, text: reads("style-formal", "formal", text), None,
            {"keep": keep}, lambda k: _originals("0")[k],
        )  # fmt: skip


def _together() -> Iterator[Cell]:
    def happy(k: int) -> Sequence[Guide]:
        return (Keywords(*keywords(3, k)), Words(12, 28), Sentiment("positive", 0.95))

    def formal(k: int) -> Sequence[Guide]:
        return (Keywords(*keywords(1, k)), 2.0 * Style("formal"), Sentiment("negative", 0.9))

    yield Cell(
        "3 keywords, 12-28 words, positive", "target 0.95", OURS, happy,
        lambda k, text: feels("positive", text) and 12 <= len(text.split()) <= 28
        and Keywords(*keywords(3, k)).check(text).status == "satisfied",
    )  # fmt: skip
    yield Cell(
        "keyword, formal, negative", "scale 2, target 0.9", OURS, formal,
        lambda k, text: feels("negative", text) and reads("style-formal", "formal", text)
        and Keywords(*keywords(1, k)).check(text).status == "satisfied",
    )  # fmt: skip
