"""`redraft write`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from redraft.recipes.cli_options import SET

_GUIDES, _RUN, _OUT = "Guides", "Run", "Output"


def write(
    recipe: Annotated[
        str,
        Argument(
            metavar="RECIPE",
            help="A shipped recipe's name, a file, or - for standard input.",
            show_default=False,
        ),
    ] = "",
    prompt: Annotated[
        str | None, Option(metavar="TEXT", help="What stands before the text; never part of it.")
    ] = None,
    chat: Annotated[
        bool, Option("--chat", help="The prompt is a message for the model's chat template.")
    ] = False,
    keyword: Annotated[
        list[str] | None,
        Option(metavar="WORD", help="A word or phrase that must occur; ship|ships for either. Repeatable."),
    ] = None,
    forbid: Annotated[
        list[str] | None, Option(metavar="PHRASE", help="A word or phrase that must not occur. Repeatable.")
    ] = None,
    sentiment: Annotated[str | None, Option(metavar="TONE", help="positive or negative.")] = None,
    style: Annotated[
        str | None, Option(metavar="NAME", help="formal, casual, old-fashioned or plain.")
    ] = None,
    template: Annotated[
        str | None,
        Option(metavar="TEXT", help="Fixed text with blanks: ___ of any width, [[3-6]] of so many words."),
    ] = None,
    pattern: Annotated[
        str | None, Option(metavar="REGEX", help="A regular expression that the whole text matches.")
    ] = None,
    words: Annotated[
        str | None, Option(metavar="A-B", help="How many words; A for exactly, A- for at least.")
    ] = None,
    sentences: Annotated[str | None, Option(metavar="A-B", help="How many complete sentences.")] = None,
    tokens: Annotated[str | None, Option(metavar="A-B", help="How many of the denoiser's tokens.")] = None,
    json_schema: Annotated[
        str | None, Option(metavar="FILE", help="A JSON Schema that the text, as JSON, validates against.")
    ] = None,
    one_of: Annotated[
        list[str] | None, Option(metavar="TEXT", help="The text is one of these. Repeatable.")
    ] = None,
    condition: Annotated[
        list[str] | None,
        Option(metavar="KIND=VALUE", help="A tag of the denoiser, such as genre=tale. Repeatable."),
    ] = None,
    length: Annotated[int | None, Option(metavar="N", help="The canvas in tokens.")] = None,
    steps: Annotated[int | None, Option(metavar="N", help="Most forward passes a draft may take.")] = None,
    selection: Annotated[
        str | None, Option(metavar="NAME", help="confidence, entropy-bound, left-to-right, margin or random.")
    ] = None,
    temperature: Annotated[float | None, Option(metavar="X", help="0 is greedy.")] = None,
    drafts: Annotated[
        int | None,
        Option(
            metavar="N",
            help="Drafts of each text, of which the best is kept; the denoiser's own number (embedded: 8).",
        ),
    ] = None,
    samples: Annotated[int | None, Option(metavar="N", help="How many texts.")] = None,
    seed: Annotated[
        int | None, Option(metavar="N", help="Text k has seed N + k; random where not given.")
    ] = None,
    model: Annotated[
        str | None, Option(metavar="ID_OR_DIR", help="embedded, a folder, or a masked language model.")
    ] = None,
    set_: Annotated[list[str] | None, SET] = None,
    table: Annotated[
        str | None,
        Option(metavar="FILE", help="One text a row of a CSV or JSON lines file; columns set parameters."),
    ] = None,
    out: Annotated[
        str | None,
        Option(metavar="FILE", help="With --table: where the lines go; the same command again goes on."),
    ] = None,
    device: Annotated[str, Option(metavar="D", help="Where to run.")] = "cpu",
    json: Annotated[bool, Option("--json", help="One JSON object a text, a line each.")] = False,
    save_recipe: Annotated[
        str | None, Option(metavar="FILE", help="Save the complete recipe of what was written.")
    ] = None,
    report: Annotated[
        str | None,
        Option(metavar="FILE", help="Explain the texts on one HTML page: steps, pushes, verdicts."),
    ] = None,
) -> int:
    """Write texts that keep to the guides, with a verdict on each.

    Options given beside a recipe go before it: keywords and forbidden phrases are added to the recipe's, all
    else takes the place of the recipe's own.
    """
    from redraft.recipes.lookup import find
    from redraft.recipes.options import (
        Asked,
        apply,
        drafts_table,
        parse_conditions,
        refuse_together,
        with_set,
    )
    from redraft.recipes.recipe import Recipe
    from redraft.recipes.writing import perform

    refuse_together(table=table, out=out, save_recipe=save_recipe, report=report)
    asked = Asked(
        keyword or (),
        forbid or (),
        sentiment,
        style,
        template,
        pattern,
        words,
        sentences,
        tokens,
        json_schema,
        one_of or (),
    )
    base = with_set(find(recipe) if recipe else Recipe(), set_ or ())
    conditions = parse_conditions(condition or ())
    changes = {
        "prompt": prompt,
        "chat": chat or None,
        "length": length,
        "steps": steps,
        "selection": selection,
        "temperature": temperature,
        "particles": None if drafts is None else drafts_table(drafts),
        "samples": samples,
        "seed": seed,
        "model": model,
    }

    def change(one: Recipe) -> Recipe:
        tags = {**one.condition, **conditions} if conditions else None
        return apply(one, asked, condition=tags, **changes)

    if table is not None:
        from redraft.recipes.merging import perform_table

        said = (asked, conditions, changes)
        return perform_table(base, change, table, out=out, device=device, asked=said)
    return perform(change(base), device=device, as_json=json, save=save_recipe, report=report)
