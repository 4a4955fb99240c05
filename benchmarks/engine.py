"""What the exact engine costs: python benchmarks/engine.py [--threads 2] [--repeats 7].

Medians of interleaved repeats, in milliseconds, of one step with every position open: class masses, backward
and forward sums, a joint draft and its confidence. Languages are real ones lifted to a synthetic vocabulary.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from redraft.denoiser.automaton import Automaton, byte_classes
from redraft.denoiser.exact import Language, Posterior, posterior
from redraft.denoiser.lift import TokenTrie, lift
from redraft.denoiser.nfa import aho_corasick
from redraft.denoiser.regex import compile_regex

SYLLABLES = [
    "st",
    "or",
    "m",
    "in",
    "g",
    "er",
    "an",
    "the",
    "qu",
    "lo",
    "ri",
    "ve",
    "éa",
    "日",
    "本",
    "{",
    '"',
    "}",
    ":",
    ",",
    "0",
    "1",
    "23",
    "ti",
    "on",
    "al",
    "ed",
    "ing",
    "e",
    "a",
    "s",
    "t",
    "n",
]


def vocabulary(size: int, seed: int = 0) -> list[bytes | None]:
    """`size` distinct tokens: a special, the bytes, and words of up to five syllables, half with a space."""
    rng = random.Random(seed)
    words = {bytes([byte]) for byte in range(256)}
    while len(words) < size - 1:
        word = "".join(rng.choices(SYLLABLES, k=rng.randint(1, 5)))
        words.add(((" " if rng.random() < 0.5 else "") + word).encode())
    return [None, *sorted(words)]


def word_count(least: int, most: int) -> Automaton:
    """Texts of `least` to `most` words."""

    def step(state: tuple[int, bool], byte: int) -> tuple[int, bool] | None:
        count, inside = state
        if byte in b" \n":
            return count, False
        return state if inside else (count + 1, True) if count < most else None

    return Automaton.build((0, False), step, lambda s: s[0] >= least, classes=byte_classes(b" \n"))


def languages(trie: TokenTrie) -> dict[str, Automaton]:
    keyword = aho_corasick([b"storm"])
    three = keyword & aho_corasick([b"river"]) & aho_corasick([b"laning"])
    record = r'\{"name":"[a-z ]{1,20}","age":[0-9]{1,3},"tags":\["[a-z ]{1,12}"(,"[a-z ]{1,12}"){0,3}\]\}'
    return {
        name: lift(language, trie)
        for name, language in {
            "keyword": keyword,
            "three keywords": three,
            "three keywords, 20-40 words": three & word_count(20, 40),
            "40-60 words and a keyword": word_count(40, 60) & keyword,
            "template": compile_regex("(?s)The storm .* river .*[.]"),
            "record": compile_regex(record),
        }.items()
    }


def random_automaton(tokens: int, states: int, width: int) -> Automaton:
    """A worst case: every (state, class) leads somewhere else."""
    rng = np.random.default_rng(0)
    sizes = rng.multinomial(tokens - width, rng.dirichlet(np.full(width, 0.3))) + 1
    classes = rng.permutation(np.repeat(np.arange(width), sizes))
    return Automaton(classes, rng.integers(0, states, (states, width)), 0, rng.random(states) < 0.3)


def stages(language: Language, log_p: torch.Tensor, uniform: torch.Tensor) -> dict[str, Callable[[], object]]:
    rows, length = log_p.shape[:2]
    tokens = torch.zeros(rows, length, dtype=torch.int64)
    open_ = torch.ones(rows, length, dtype=torch.bool)
    held: list[Posterior] = []

    def fresh() -> Posterior:
        held[:] = [posterior(language, log_p, tokens, open_)]
        return held[0]

    draft: list[torch.Tensor] = []

    def sample() -> None:
        draft[:] = [held[0].sample(uniform)]

    return {
        "masses": lambda: fresh()._log_mass,
        "sums": lambda: held[0]._sums,
        "draft": sample,
        "confidence": lambda: held[0].confidence(draft[0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--vocabulary", type=int, default=12_000)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--extra", action="store_true", help="also best() and forced()")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokens = vocabulary(options.vocabulary)
    cases = languages(TokenTrie(tokens)) | {
        "random, 64 states": random_automaton(len(tokens), 64, 40),
        "random, 512 states": random_automaton(len(tokens), 512, 40),
    }
    shape = (options.rows, options.length)
    log_p = torch.log_softmax(
        torch.randn(*shape, len(tokens), generator=torch.Generator().manual_seed(0)) * 3, -1
    )
    uniform = torch.rand(*shape, 2, dtype=torch.float64)
    bound = {name: Language.of([a], [0] * options.rows) for name, a in cases.items()}
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(options.repeats + 1):
        for name, language in bound.items():
            steps = stages(language, log_p, uniform)
            if options.extra:
                steps["best"] = lambda language=language: best(language, log_p)
                steps["forced"] = lambda language=language: forced(language, log_p)
            for stage, run in steps.items():
                began = time.perf_counter()
                run()
                times.setdefault((name, stage), []).append(1e3 * (time.perf_counter() - began))
    names = list(dict.fromkeys(stage for _, stage in times))
    print(f"{'':30}{'Q':>5}{'C':>5}{'pairs':>7}" + "".join(f"{n:>11}" for n in names) + f"{'step':>8}")
    for name, language in bound.items():
        middle = [statistics.median(times[name, stage][1:]) for stage in names]
        pairs = len(language.edges.target)
        cells = "".join(f"{value:11.1f}" for value in middle)
        print(f"{name:30}{language.states:5}{language.width:5}{pairs:7}{cells}{sum(middle[:4]):8.1f}")


def best(language: Language, log_p: torch.Tensor) -> torch.Tensor:
    shape = log_p.shape[:2]
    return posterior(
        language, log_p, torch.zeros(shape, dtype=torch.int64), torch.ones(shape, dtype=torch.bool)
    ).best()


def forced(language: Language, log_p: torch.Tensor) -> torch.Tensor:
    shape = log_p.shape[:2]
    open_ = torch.ones(shape, dtype=torch.bool)
    return posterior(language, log_p, torch.zeros(shape, dtype=torch.int64), open_).forced()[0]


if __name__ == "__main__":
    main()
