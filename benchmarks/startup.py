"""A whole `redraft write` process against a process that only imports torch.

    python benchmarks/startup.py [--repeats 5]

Both are started in turn, repeatedly; medians of wall-clock seconds and their ratio are printed. Aim: at most 3.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c 'import torch'": ["-c", "import torch"],
    "python -c 'import torch, transformers'": ["-c", "import torch; from transformers import BertForMaskedLM"],
    "redraft write --keyword storm --length 48": [
        "-m", "redraft.recipes", "write", "--keyword", "storm", "--length", "48", "--seed", "7",
    ],
    "redraft guides": ["-m", "redraft.recipes", "guides"],
    "redraft --help": ["-m", "redraft.recipes", "--help"],
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    spent: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(options.repeats):
        for name, arguments in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            spent[name].append(time.perf_counter() - begin)
    base = statistics.median(next(iter(spent.values())))
    print("| process | seconds | ratio |\n| --- | --- | --- |")
    for name, times in spent.items():
        print(f"| {name} | {statistics.median(times):.2f} | {statistics.median(times) / base:.2f} |")


if __name__ == "__main__":
    main()
