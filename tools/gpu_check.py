"""What only a GPU can show: equality with the CPU, synchronisations per step, overhead on a model of a real size.

    python tools/gpu_check.py [--out FOLDER] [--device cuda] [--budget 480]
    python tools/gpu_check.py --tiny            # the same checks in seconds, on whatever there is

Needs no network and no weights but those in the package: the large model is random. Every check is by itself; one that
fails is reported and the rest go on. `--budget` is in seconds: a check is not begun where less than a fifth is left.
The figures go to standard output and to FOLDER/gpu_check.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from redraft.denoiser import Automaton, Canvas, load
from redraft.denoiser.exact import Language, posterior
from redraft.denoiser.models.masked_lm import MaskedLM
from redraft.guidance import Bias, Forbid, Infill, Keywords, Sentences, Words

REQUESTS: dict[str, list[Any]] = {
    "unguided": [],
    "words": [Words(15, 30)],
    "keywords": [Keywords("lighthouse", "storm", anchor="free")],
    "infill": [Infill("The old man ___ and the dog [[2-5]].", anchor="free")],
    "many": [Keywords("lighthouse", "storm"), Words(15, 30), Sentences(1, 4), Forbid("very")],
    "bias": [2.0 * Bias({"sea": 2.0, "dark": 1.0})],
}


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def counted(device: torch.device) -> Iterator[list[str]]:
    """The places where the host waited for the device; empty on a CPU."""
    places: list[str] = []
    if device.type != "cuda":
        yield places
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield places
        finally:
            torch.cuda.set_sync_debug_mode("default")
    places += [f"{Path(w.filename).name}:{w.lineno}" for w in caught if "synchroni" in str(w.message)]


def engine(device: torch.device, tiny: bool) -> dict[str, Any]:
    """Partition functions and drafts of random languages, on the device against the CPU, same random numbers."""
    rng = np.random.default_rng(0)
    worst, drafts, same = 0.0, 0, 0
    for _ in range(3 if tiny else 40):
        states, size, length, rows = 40, 500, 24, 4
        automaton = Automaton(
            rng.integers(0, 12, size), rng.integers(0, states, (states, 12)), 0, rng.random(states) < 0.3
        )
        log_p = torch.randn(
            rows, length, size, generator=torch.Generator().manual_seed(int(rng.integers(1 << 30)))
        )
        log_p = (3 * log_p).log_softmax(-1)
        uniform = torch.from_numpy(rng.random((rows, length, 2)))
        answers = []
        for where in (torch.device("cpu"), device):
            language = Language.of([automaton], [0] * rows, where)
            blank = torch.zeros(rows, length, dtype=torch.int64, device=where)
            beliefs = posterior(language, log_p.to(where), blank, torch.ones_like(blank, dtype=torch.bool))
            answers.append(
                (beliefs.log_z.cpu(), beliefs.sample(uniform.to(where)).cpu(), beliefs.best().cpu())
            )
        (z, draft, best), (other_z, other_draft, other_best) = answers
        worst = max(worst, float((z - other_z).abs().max()))
        drafts += 2 * draft.numel()
        same += int((draft == other_draft).sum() + (best == other_best).sum())
    return {"largest difference of log Z": worst, "tokens drawn alike": same / drafts, "holds": worst < 1e-4}


def texts(device: torch.device, tiny: bool) -> dict[str, Any]:
    """The embedded denoiser's texts, on the device against the CPU, and batches against single runs."""
    here, there = load(), load(device=device)
    alike = alone = total = broken = 0
    for guides in (REQUESTS["words"], REQUESTS["bias" if tiny else "many"]):
        options: dict[str, Any] = {"seed": 1, "samples": 2 if tiny else 8, "steps": 4 if tiny else 16}
        for one, other in zip(here.write(guides, **options), there.write(guides, **options), strict=True):
            (single,) = there.write(guides, seed=other.seed, steps=options["steps"], length=other.length)
            alike += one.tokens == other.tokens
            alone += single.tokens == other.tokens
            total += 1
            broken += not (one.satisfied and other.satisfied and single.satisfied)
    return {
        "texts as on the CPU": f"{alike} of {total}",
        "texts as in single runs": f"{alone} of {total}",
        "violations": broken,
        "holds": not broken,
    }


def prompts(device: torch.device, tiny: bool) -> dict[str, Any]:
    """Rows behind prompts of different lengths against single rows: logits."""
    denoiser: Any = load(device=device)
    each = ["", "It was dark.", "The old man went home, and it began to rain on the sea."]
    batch = denoiser(Canvas.blank(3, 16, denoiser.noise.fill, device), denoiser.prepare(each, 3))
    worst = 0.0
    for k, prompt in enumerate(each):
        alone = denoiser(Canvas.blank(1, 16, denoiser.noise.fill, device), denoiser.prepare(prompt, 1))[0]
        kept = alone.isfinite()
        worst = max(worst, float((alone[kept] - batch[k][kept]).abs().max()))
    return {"largest difference of logits": worst, "holds": worst < 1e-2}


def large(device: torch.device, tiny: bool) -> MaskedLM:
    """A random ModernBERT of about a billion parameters on the embedded vocabulary, in bfloat16 on a GPU."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM

    vocabulary = load().vocabulary
    width, layers = (32, 2) if tiny else (2048, 22)
    config = ModernBertConfig(
        vocab_size=len(vocabulary),
        hidden_size=width,
        intermediate_size=width * 2,
        num_hidden_layers=layers,
        num_attention_heads=max(2, width // 64),
        max_position_embeddings=512,
        pad_token_id=vocabulary.pad_id,
    )
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(0)
    with torch.device(device):
        network = ModernBertForMaskedLM._from_config(config, dtype=dtype, attn_implementation="sdpa")
    denoiser = MaskedLM(network.requires_grad_(False), vocabulary, name="random", max_positions=512)
    denoiser.kind, denoiser.pads = "modernbert", True
    return denoiser


def overhead(device: torch.device, tiny: bool) -> dict[str, Any]:
    """Milliseconds and synchronisations a step of guided and unguided runs on the large model, interleaved."""
    denoiser = large(device, tiny)
    size = sum(p.numel() for p in denoiser.model.parameters())
    length, rows, steps = (48, 2, 4) if tiny else (128, 8, 24)
    repeats = 1 if tiny else 5
    spent: dict[str, list[float]] = {name: [] for name in REQUESTS}
    syncs: dict[str, float] = {}
    broken = 0
    requests = {name: REQUESTS[name] for name in (("unguided", "words") if tiny else REQUESTS)}
    for turn in range(repeats + 1):
        for name, guides in requests.items():
            begun: list[float] = []

            def first(_: Any, begun: list[float] = begun) -> None:
                wait(device)
                begun.append(time.perf_counter())

            options: dict[str, Any] = {"seed": turn, "samples": rows, "steps": steps, "length": length}
            if turn == 0:  # a warm-up, which counts
                with counted(device) as places:
                    results = denoiser.write(guides, **options)
                syncs[name] = len(places) / max(1, results[0].steps)
                if name in ("unguided", "many"):
                    syncs[f"{name}: where"] = sorted(set(places))  # type: ignore[assignment]
                broken += sum(not r.satisfied for r in results)
                continue
            denoiser.write(guides, on_step=first, **options)
            spent[name] += [1e3 * (b - a) for a, b in pairwise(begun)]
    middle = {name: statistics.median(values) for name, values in spent.items() if values}
    plain = middle["unguided"]
    return {
        "parameters": size,
        "batch, length, steps": [rows, length, steps],
        "ms a step": {name: round(value, 3) for name, value in middle.items()},
        "added share": {name: round(value / plain - 1, 3) for name, value in middle.items()},
        "synchronisations a step": syncs,
        "memory, GB": torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else None,
        "violations": broken,
        "holds": not broken,
    }


CHECKS: dict[str, Callable[[torch.device, bool], dict[str, Any]]] = {
    "engine": engine,
    "texts": texts,
    "prompts": prompts,
    "overhead": overhead,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tiny", action="store_true", help="small sizes, for a try on a CPU")
    parser.add_argument("--budget", type=float, default=480.0)
    parser.add_argument("--only", nargs="*", choices=sorted(CHECKS), default=list(CHECKS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cpu" and not options.tiny:
        parser.error("no GPU here: use --tiny to try the script on a CPU")
    begun = time.perf_counter()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
    }
    for name in options.only:
        spent = time.perf_counter() - begun
        if spent > 0.8 * options.budget:
            report[name] = {"skipped": f"{spent:.0f} s of {options.budget:.0f} were spent"}
            continue
        try:
            report[name] = CHECKS[name](device, options.tiny)
        except Exception:
            report[name] = {"holds": False, "failed": traceback.format_exc().splitlines()[-6:]}
        report[name]["seconds"] = round(time.perf_counter() - begun - spent, 1)
        print(json.dumps({name: report[name]}, indent=1, default=str), flush=True)
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "gpu_check.json").write_text(json.dumps(report, indent=1, default=str))
        gc.collect()
    return 0 if all(part.get("holds", True) for part in report.values() if isinstance(part, dict)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
