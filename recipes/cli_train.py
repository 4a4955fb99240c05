"""`redraft train`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def train(
    corpus: Annotated[
        list[str],
        Argument(metavar="CORPUS", help="Text files, or folders of them.", show_default=False),
    ],
    out: Annotated[str, Option(metavar="DIR", help="Where the run is kept; the denoiser is in DIR/release.")],
    from_: Annotated[
        str | None,
        Option("--from", metavar="MODEL", help="Go on from embedded or from a folder of `redraft train`."),
    ] = None,
    minutes: Annotated[
        float | None, Option(metavar="N", help="How long to train; 30 where --steps is not given.")
    ] = None,
    steps: Annotated[int | None, Option(metavar="N", help="How many steps to train, instead.")] = None,
    seed: Annotated[int, Option(metavar="N", help="Decides the order of the text and its masks.")] = 0,
    device: Annotated[str, Option(metavar="D", help="cpu, cuda, ...; a run goes on on any other.")] = "cpu",
) -> int:
    """Train a small denoiser on your own text, or go on with a run; then write with --model DIR/release.

    Ctrl-C saves the run; the same command goes on from there.
    """
    from redraft.recipes.training import perform

    return perform(corpus, out, start_from=from_, minutes=minutes, steps=steps, seed=seed, device=device)
