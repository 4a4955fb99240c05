"""Train the embedded denoiser on a borrowed GPU: one command, minutes, and a release in parts small enough to carry.

    python tools/gpu_train.py --out FOLDER [--minutes 8] [--device cuda]

It goes on from the weights in the package with all of `corpus/` (no real text), half of the time a decay. It needs the
working tree, torch, transformers, tokenizers and safetensors; Redraft need not be installed. FOLDER gets the release,
its weights in parts of at most 15 MiB, and the log; it is there about a minute after `--minutes`, or, from the mean
weights so far, soon after SIGTERM. To take the release:

    cat FOLDER/model.safetensors.* > denoiser/embedded/model.safetensors && cp FOLDER/*.json denoiser/embedded/
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
PART = 15 * 2**20
SOURCES = ("corpus", "corpus/reader", "corpus/mended", "corpus/picked", "corpus/reader2")
HANDS = ("10:2", "23:3", "34:7", "50:10", "54:7")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", type=int, default=32_768, help="positions a step")
    parser.add_argument("--peak", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run, site = Path(scratch) / "run", Path(scratch) / "site"
        (site / "redraft").mkdir(parents=True)
        (site / "redraft/denoiser").symlink_to(HOME / "denoiser")
        sys.path.insert(0, str(site))
        from redraft.denoiser import UnsupportedModelError
        from redraft.denoiser.load import available_device

        try:
            available_device(options.device)
        except UnsupportedModelError as error:
            parser.error(str(error))
        options.out.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
        builder = (sys.executable, "-u", str(HOME / "tools/build_embedded.py"), "--run", str(run))
        command = [
            *builder,
            *("--from", str(HOME / "denoiser/embedded"), "--device", options.device),
            *("--minutes", str(options.minutes), "--decay-minutes", str(options.minutes / 2)),
            *("--tokens", str(options.tokens), "--peak", str(options.peak), "--seed", str(options.seed)),
            *("--real", "0", "--evaluate-minutes", str(options.minutes), "--all-threads"),
            *(word for hand in HANDS for word in ("--hand", hand)),
            *(str(HOME / source) for source in SOURCES),
        ]
        environment = {**os.environ, "PYTHONPATH": path}
        with (options.out / "log.txt").open("w", encoding="utf-8", buffering=1) as log:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            )
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: process.terminate())  # it saves at its next step
            for line in process.stdout or ():
                print(line, end="", flush=True)
                log.write(line)
        if process.wait():
            raise SystemExit(f"training ended with {process.returncode}: its last lines are above")
        if not (run / "release").exists():  # stopped before its time
            export = ("--export", str(run / "release"), "--ema", str(HOME / SOURCES[0]))
            subprocess.run([*builder, *export], check=True, env=environment)
        take(run / "release", options.out)


def take(release: Path, out: Path) -> None:
    """Copy a release, its weights in parts; parts of another release are removed first."""
    for old in out.glob("model.safetensors.*"):
        old.unlink()
    for file in sorted(release.iterdir()):
        if file.name != "model.safetensors":
            shutil.copy(file, out / file.name)
            continue
        weights = file.read_bytes()
        for number, start in enumerate(range(0, len(weights), PART)):
            (out / f"{file.name}.{number:02d}").write_bytes(weights[start : start + PART])


if __name__ == "__main__":
    main()
