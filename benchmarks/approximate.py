"""What approximate block caching saves on the embedded denoiser, and what it changes.

    python benchmarks/approximate.py [--length 128] [--block 32] [--steps 32] [--repeats 3] [--batches 1 8]

Exact and approximate runs are interleaved and repeated. Time: the denoiser's share of a step, the median over runs of
the run's mean. At every step the exact denoiser is asked about the last row's canvas, outside the clock. Agreement:
the share of open positions, of its block and of the whole canvas, at which both have the same best token. NLL: nats
under the exact denoiser of a token when it is committed, the mean over all tokens (padding left out).
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass, field

import torch

from redraft.denoiser import Denoiser, Refinement, Settings, load
from redraft.denoiser.models.approximate import Approximate

PROMPT = "The old man"


@dataclass
class Tally:
    """Sums over the steps of all runs of one denoiser; a share is (hits, positions)."""

    exact: Denoiser
    block: int
    milliseconds: list[float] = field(default_factory=list)
    near: list[tuple[int, int]] = field(default_factory=list)
    all: list[tuple[int, int]] = field(default_factory=list)
    nll: list[tuple[float, int]] = field(default_factory=list)

    def __call__(self, r: Refinement) -> None:
        canvas, logits, draft, committed = (
            r.step.canvas.take(torch.tensor([-1])), r.step.logits[-1:], r.draft[-1:], r.committed[-1:]
        )  # fmt: skip
        truth = self.exact(canvas, self.exact.prepare(PROMPT, 1))
        number = torch.arange(canvas.open.shape[1]) // self.block
        current = torch.where(canvas.open, number, len(number)).amin(-1, keepdim=True)
        same = truth.argmax(-1) == logits.argmax(-1)
        for counts, where in ((self.near, canvas.open & (number == current)), (self.all, canvas.open)):
            counts.append((int((same & where).sum()), int(where.sum())))
        kept = committed & (draft != self.exact.vocabulary.pad_id)
        cost = -truth.log_softmax(-1).gather(-1, draft[..., None]).squeeze(-1)
        self.nll.append((float(cost[kept].sum()), int(kept.sum())))

    def run(self, denoiser: Denoiser, batch: int, length: int, settings: Settings, seed: int) -> None:
        results = denoiser.write(
            prompt=PROMPT, samples=batch, batch_size=batch, seed=seed, length=length, settings=settings,
            on_step=self,
        )  # fmt: skip
        self.milliseconds.append(results[0].timing.denoiser_ms / max(result.steps for result in results))


def mean(counts: list[tuple[int, int]] | list[tuple[float, int]]) -> float:
    """The mean of what was counted."""
    return sum(a for a, _ in counts) / max(sum(n for _, n in counts), 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (("length", 128), ("block", 32), ("steps", 32), ("repeats", 3), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    exact = load()
    denoisers: dict[str, Denoiser] = {"exact": exact}
    for refresh in (2, 4, 8):
        name = f"refresh {refresh}"
        denoisers[name] = Approximate(exact, block_length=options.block, refresh=refresh)
    settings = exact.settings.override(steps=options.steps, block_length=options.block)
    print(
        "| rows | denoiser | ms a step | share | agreement, block | agreement, all open | NLL, nats a token |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for batch in options.batches:
        tallies = {name: Tally(exact, options.block) for name in denoisers}
        for repeat in range(options.repeats):
            for name, denoiser in denoisers.items():
                tallies[name].run(denoiser, batch, options.length, settings, 100 * repeat)
        whole = statistics.median(tallies["exact"].milliseconds)
        for name, tally in tallies.items():
            spent = statistics.median(tally.milliseconds)
            print(
                f"| {batch} | {name} | {spent:.1f} | {100 * spent / whole:.0f} % | {100 * mean(tally.near):.1f} % "
                f"| {100 * mean(tally.all):.1f} % | {mean(tally.nll):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
