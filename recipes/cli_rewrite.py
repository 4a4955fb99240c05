"""`redraft rewrite`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def rewrite(
    file: Annotated[
        str,
        Argument(metavar="FILE|-", help="The texts, one a line; - for standard input.", show_default=False),
    ],
    style: Annotated[
        str | None, Option(metavar="NAME", help="formal, casual, old-fashioned or plain.")
    ] = None,
    sentiment: Annotated[str | None, Option(metavar="TONE", help="positive or negative.")] = None,
    target: Annotated[
        float | None, Option(metavar="P", help="Push no harder than this probability takes, such as 0.9.")
    ] = None,
    classifier: Annotated[
        str | None, Option(metavar="DIR:LABEL", help="A classifier of your own and the label wanted.")
    ] = None,
    scale: Annotated[
        float | None,
        Option(metavar="X", help="Strength of the style, tone or classifier: 2, or with --target 1."),
    ] = None,
    keyword: Annotated[list[str] | None, Option(metavar="WORD", help="Must occur. Repeatable.")] = None,
    forbid: Annotated[list[str] | None, Option(metavar="PHRASE", help="Must not occur. Repeatable.")] = None,
    keep: Annotated[float, Option(metavar="X", help="Share of the text that stays.")] = 0.7,
    protect: Annotated[
        list[str] | None, Option(metavar="PHRASE", help="Stays wherever a text holds it. Repeatable.")
    ] = None,
    stretch: Annotated[
        float, Option(metavar="X", help="How far a changed stretch may grow or shrink.")
    ] = 0.2,
    tries: Annotated[int, Option(metavar="N", help="Runs a text; the one nearest in meaning is kept.")] = 4,
    steps: Annotated[int | None, Option(metavar="N", help="Most forward passes a run may take.")] = None,
    seed: Annotated[
        int | None, Option(metavar="N", help="Line k has seed N + k; random where not given.")
    ] = None,
    model: Annotated[str, Option(metavar="ID_OR_DIR", help="The denoiser.")] = "embedded",
    device: Annotated[str, Option(metavar="D", help="Where to run.")] = "cpu",
    json: Annotated[bool, Option("--json", help="One JSON object a text, a line each.")] = False,
) -> int:
    """Rewrite texts towards a style or tone, most of each kept and its meaning watched."""
    from redraft.recipes.rewriting import Wishes, perform

    wishes = Wishes(style, sentiment, target, classifier, scale, keyword or (), forbid or ())
    options = {"keep": keep, "stretch": stretch, "tries": tries, "steps": steps}
    return perform(file, wishes, options, protect or (), seed=seed, model=model, device=device, as_json=json)
