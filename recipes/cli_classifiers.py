"""`redraft classifiers`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

classifiers = typer.Typer(
    help="Classifiers of your own texts, to steer by and to judge with.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@classifiers.command()
def train(
    file: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="Lines label<TAB>text; or .jsonl or .csv with label and text.",
            show_default=False,
        ),
    ],
    out: Annotated[str, Option(metavar="DIR", help="Where the classifier is kept.")],
    kind: Annotated[
        str,
        Option(metavar="KIND", help="sentence (a few dozen texts are enough), noise-aware or tokens."),
    ] = "sentence",
    model: Annotated[
        str | None,
        Option(metavar="NAME", help="The sentence encoder, or the denoiser; the offline ones if not given."),
    ] = None,
) -> int:
    """Learn to tell labels apart, calibrate on held-out texts, save. Then: Classifier("DIR", "label")."""
    from pathlib import Path

    from redraft.classifiers import fit, read_labelled
    from redraft.classifiers.own import vacant

    vacant(out, kind)  # type: ignore[arg-type]
    texts, labels = read_labelled(file)
    own = fit(texts, labels, kind, name=Path(out).resolve().name, model=model)  # type: ignore[arg-type]
    own.save(Path(out))
    counts = ", ".join(f"{labels.count(label)} {label}" for label in own.labels)
    print(f"{out}: a {own.kind} classifier of {counts}")
    return 0


@classifiers.command()
def show(
    folder: Annotated[str, Argument(metavar="DIR", help="A classifier's folder.", show_default=False)],
) -> int:
    """Tell what a classifier's folder holds."""
    from redraft.classifiers import load_classifier
    from redraft.classifiers.linear import Linear

    found = load_classifier(folder)
    print(f"{found.name}: {getattr(found, 'kind', type(found).__name__)}, labels {', '.join(found.labels)}")
    if isinstance(found, Linear):
        print(f"{len(found.table)} weights")
    else:
        print(f"temperature {getattr(found, 'temperature', 1.0):.2f}")
    return 0
