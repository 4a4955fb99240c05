"""What hard guides cost, from compiling to a step: python benchmarks/constraints.py [--quick] [--repeats 1].

For each language, at each vocabulary size (benchmarks/vocabularies.py; needs `pip install --no-deps mistral-common`)
and canvas: seconds to bind it the first time (`cold`: nothing is cached but the vocabulary's own tables) and again
(`warm`), states, classes, milliseconds of one step of one row with every position open (class masses, backward and
forward sums, joint draft, confidence; the least of the repeats), and that over the embedded denoiser's own step on a
canvas as long. Everything is processor time of one thread, children included, so that other processes count for
little. Then how time grows with canvas, states, keywords and vocabulary, with the exponent of a fitted power.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from vocabularies import vocabulary

from redraft import guidance
from redraft.denoiser import Canvas, Guide, Scene, Steering, Vocabulary, joint, load
from redraft.denoiser.cache import clear_cache
from redraft.denoiser.exact import posterior
from redraft.denoiser.language import Language
from redraft.denoiser.lift import trie_of
from redraft.denoiser.regex import compile_regex
from redraft.guidance import Forbid, Infill, Keywords, Pattern, Sentences, Words
from redraft.guidance.spelling import spelled_language, token_words

KEYWORDS = ("sea", "dog", "rain", "house", "old man", "storm", "lighthouse", "silver")
EMAIL = r"[a-z0-9._%+-]{1,24}@[a-z0-9-]{1,24}(\.[a-z0-9-]{1,16}){0,2}\.[a-z]{2,6}"
DATE_TIME = (
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]{1,6})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
LOG_LINE = (
    DATE_TIME + r" (DEBUG|INFO|WARNING|ERROR) \[[a-z_]{1,20}(\.[a-z_]{1,20}){0,4}\] "
    r"(GET|PUT|POST|DELETE) (/[A-Za-z0-9_.~-]{1,24}){1,6}"
    r"(\?[a-z]{1,12}=[A-Za-z0-9]{1,16}(&[a-z]{1,12}=[A-Za-z0-9]{1,16}){0,3})? [1-5][0-9]{2} [0-9]{1,7}ms"
)
TEMPLATE = "Dear ___, on [[1-3]] the ___ was found near [[2-5]], and we [[1-4]] until ___."
FIELDS = {
    f"{kind}_{k}": schema
    for k in range(5)
    for kind, schema in {
        "name": {"type": "string", "maxLength": 24},
        "count": {"type": "integer", "minimum": 0, "maximum": 999},
        "active": {"type": "boolean"},
        "label": {"enum": ["low", "medium", "high"]},
    }.items()
}
SCHEMA = {"type": "object", "properties": FIELDS, "required": list(FIELDS), "additionalProperties": False}


def banned(count: int = 500) -> list[str]:
    """Words of the corpus, of four letters and more, always the same."""
    files = sorted((Path(__file__).parents[1] / "corpus").glob("*.txt"))
    text = " ".join(file.read_text(encoding="utf-8")[:400_000] for file in files)
    words = sorted(
        {word.strip('.,;:!?"').lower() for word in text.split() if word.isalpha() and len(word) > 3}
    )
    return random.Random(0).sample(words, count)


def languages() -> dict[str, Callable[[], Sequence[Guide]]]:
    bans = banned()
    return {
        "1 keyword": lambda: [Keywords("lighthouse")],
        "5 keywords": lambda: [Keywords(*KEYWORDS[:5])],
        "8 keywords": lambda: [Keywords(*KEYWORDS)],
        "e-mail": lambda: [Pattern(EMAIL)],
        "ISO date-time": lambda: [Pattern(DATE_TIME)],
        "log line": lambda: [Pattern(LOG_LINE)],
        "template, 6 blanks": lambda: [Infill(TEMPLATE)],
        "words, sentences": lambda: [Words(20, 30), Sentences(2, 3)],
        "3 keywords, both": lambda: [Keywords(*KEYWORDS[4:7]), Words(20, 30), Sentences(2, 3)],
        "500 bans": lambda: [Forbid(*bans)],
        "500 bans, words": lambda: [Forbid(*bans), Words(20, 30)],
        "schema, 20 fields": lambda: [getattr(guidance, "JsonSchema")(SCHEMA)],  # noqa: B009 - may not be there
        "haiku": lambda: [getattr(guidance, "Syllables")([5, 7, 5])],  # noqa: B009
    }


def clock() -> float:
    """Seconds of processor time that this process and its children have used."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


def bind(guides: Callable[[], Sequence[Guide]], words: Vocabulary, length: int) -> tuple[Language, float]:
    """The joint language and the seconds that binding took."""
    scene = Scene(words, torch.device("cpu"), 1, length, 24)
    begin = clock()
    steering = Steering(guides(), scene)
    return steering.language, clock() - begin


def forget() -> None:
    """Forget all compiled languages; the vocabulary's own tables stay."""
    clear_cache()
    joint._KEPT.clear()
    spelled_language.cache_clear()
    compile_regex.cache_clear()


def prepare(words: Vocabulary) -> None:
    """What is made once for a vocabulary, whatever the guides."""
    trie_of(words.token_bytes)
    token_words(words)
    joint.writable(words)


_NOISE = torch.randn(64, 132_000, generator=torch.Generator().manual_seed(0)).mul_(3)


def step_ms(language: Language, length: int, repeats: int) -> float:
    """Milliseconds of one step with every position open."""
    size = len(language.classes)
    some = (_NOISE[:, :size]).log_softmax(-1)
    log_p = some[torch.arange(length) % 64][None]
    tokens, every = torch.zeros(1, length, dtype=torch.int64), torch.ones(1, length, dtype=torch.bool)
    uniform = torch.rand(1, length, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    least = float("inf")
    for _ in range(repeats + 1):
        begin = clock()
        beliefs = posterior(language, log_p, tokens, every)
        beliefs.confidence(beliefs.sample(uniform))
        least = min(least, 1e3 * (clock() - begin))
    return least


def denoiser_ms(lengths: Sequence[int], repeats: int) -> dict[int, float]:
    """Milliseconds of the embedded denoiser's forward pass, one row; only for canvases that it takes."""
    denoiser = load("embedded")
    prompt = denoiser.prepare("", 1)
    found = {}
    for length in lengths:
        if length <= denoiser.longest(prompt):
            canvas = Canvas.blank(1, length, denoiser.noise.fill, denoiser.device)
            times = []
            for _ in range(repeats + 2):
                begin = clock()
                denoiser(canvas, prompt)
                times.append(1e3 * (clock() - begin))
            found[length] = min(times)
    return found


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """a of time = b * size^a, least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth(repeats: int, largest: int) -> None:
    """How the time of a step grows, one thing at a time."""
    small = vocabulary(16_384)
    prepare(small)

    def row(name: str, sizes: Sequence[float], times: Sequence[float]) -> None:
        cells = ", ".join(f"{size:g}: {spent:.1f}" for size, spent in zip(sizes, times, strict=True))
        print(f"| {name} | {cells} | {exponent(sizes, times):.2f} |", flush=True)

    print("\n| grows | size: ms per step | exponent |\n| --- | --- | --- |")
    lengths = (64, 128, 256, 512, 1024)
    language = {n: bind(lambda: [Keywords(*KEYWORDS[:5])], small, n)[0] for n in lengths}
    row("canvas L (5 keywords)", lengths, [step_ms(language[n], n, repeats) for n in lengths])
    counted = [bind(lambda n=n: [Words(n, n + 2)], small, 256)[0] for n in (8, 16, 32, 64, 128)]  # type: ignore[misc]
    row("states Q (Words)", [a.states for a in counted], [step_ms(a, 256, repeats) for a in counted])
    joined = [bind(lambda k=k: [Keywords(*KEYWORDS[:k])], small, 64)[0] for k in range(2, 9)]  # type: ignore[misc]
    times = [step_ms(a, 64, repeats) for a in joined]
    row("states Q (2 to 8 keywords)", [a.states for a in joined], times)
    row("number of keywords, 2 to 8", list(range(2, 9)), times)
    sizes = [size for size in (16_384, 32_768, 65_536, 131_072) if size <= largest]
    if len(sizes) > 1:
        held = [bind(lambda: [Words(20, 30)], vocabulary(size), 64)[0] for size in sizes]
        row("vocabulary V (Words)", sizes, [step_ms(a, 64, repeats) for a in held])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="16k tokens and canvases of 64 only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = (16_384,) if options.quick else (16_384, 32_768, 131_072)
    canvases = (64,) if options.quick else (64, 256, 1024)
    own = denoiser_ms(canvases, options.repeats)
    print("embedded denoiser, one row: " + ", ".join(f"L={n}: {ms:.0f} ms" for n, ms in own.items()))
    print("\n| language | V | cold s | warm ms | L | states | classes | ms per step | share |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in sizes:
        words = vocabulary(size)
        prepare(words)
        for name, guides in languages().items():
            forget()
            for k, length in enumerate(canvases):
                try:
                    language, cold = bind(guides, words, length)
                except AttributeError:
                    print(f"| {name} | {size:,} | not installed | | | | | | |", flush=True)
                    break
                except ValueError as error:  # a canvas too short is no failure of the benchmark
                    print(f"| {name} | {size:,} | | | {length} | {str(error)[:60]} | | | |", flush=True)
                    continue
                warm = bind(guides, words, length)[1]
                spent = step_ms(language, length, options.repeats if length < 1024 else 0)
                share = f"{100 * spent / own[length]:.0f} %" if length in own else ""
                first = f"{cold:.2f} | {1e3 * warm:.0f}" if k == 0 else " | "
                print(
                    f"| {name} | {size:,} | {first} | {length} | {language.states:,} | {language.width:,} "
                    f"| {spent:.1f} | {share} |",
                    flush=True,
                )
    growth(options.repeats, max(sizes))


if __name__ == "__main__":
    main()
