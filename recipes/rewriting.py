"""Rewrite a file of texts for the command: load, rewrite, show, a line at a time."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from redraft.denoiser.errors import InvalidGuideError, UnsatisfiableError, UnwritableTextError
from redraft.denoiser.guide import Guide, SoftGuide
from redraft.denoiser.rewrite import Rewriting, check_options, overlap
from redraft.denoiser.settings import Settings
from redraft.recipes.errors import InvalidRecipeError
from redraft.recipes.report import verdict_dict
from redraft.recipes.texts import Cut, Text, named, texts


@dataclass(frozen=True)
class Wishes:
    """The guides that the options name."""

    style: str | None = None
    sentiment: str | None = None
    target: float | None = None
    classifier: str | None = None
    scale: float | None = None
    keyword: Sequence[str] = ()
    forbid: Sequence[str] = ()

    def guides(self) -> list[Guide]:
        """Soft guides times the scale (2, or 1 where there is a target); hard ones as they are.

        Raises `InvalidRecipeError` where there is none, or none that a target or scale is for.
        """
        from redraft.guidance import Classifier, Forbid, Keywords, Sentiment, Style

        soft: list[SoftGuide] = []
        if self.style is not None:
            soft.append(Style(self.style, self.target))
        if self.sentiment is not None:
            soft.append(Sentiment(self.sentiment, self.target))
        if self.classifier is not None:
            folder, mark, label = self.classifier.rpartition(":")
            if not (folder and mark and label):
                raise InvalidRecipeError(f"--classifier is {self.classifier!r}: write DIR:LABEL")
            soft.append(Classifier(folder, label, self.target))
        for option, value in (("--target", self.target), ("--scale", self.scale)):
            if value is not None and not soft:
                raise InvalidRecipeError(f"{option} is for --style, --sentiment or --classifier: give one")
        usual = 2.0 if self.target is None else None
        scale = usual if self.scale is None else self.scale
        guides: list[Guide] = [guide if scale is None else scale * guide for guide in soft]
        guides += [Keywords(*self.keyword)] if self.keyword else []
        guides += [Forbid(*self.forbid)] if self.forbid else []
        if not guides:
            raise InvalidRecipeError("nothing says what to change: give --style, --sentiment, --keyword, ...")
        return guides


def perform(
    file: str,
    wishes: Wishes,
    options: Mapping[str, Any],
    protect: Sequence[str],
    *,
    seed: int | None = None,
    model: str = "embedded",
    device: str = "cpu",
    as_json: bool = False,
) -> int:
    """Print every text of a file rewritten, a line each; similarities, and a bar on a terminal, on standard error.

    1 where a text violates a hard guide after all (which is a bug), else 0.
    """
    guides = wishes.guides()
    given = list(texts([file], Cut()))
    if not given:
        raise InvalidRecipeError(f"{named(file)} has no text: give one text a line")
    Settings().override(steps=options["steps"])
    check_options(options["keep"], options["stretch"], options["tries"], seed, len(given))
    from redraft.denoiser import load

    denoiser, (measure, by) = load(model, device=device), _measure()
    seed = secrets.randbits(31) if seed is None else seed
    if not as_json:
        print(f"seed {seed}, similarity by {by}", file=sys.stderr)
    sound = True
    for number, text in enumerate(_tracked(given)):
        own = [phrase for phrase in protect if phrase in text.text]
        try:
            made = denoiser.rewrite(
                text.text, guides, protect=own, seed=seed + number, similarity=measure, **options
            )
        except (InvalidGuideError, UnsatisfiableError, UnwritableTextError) as error:
            where = f"{named(file)}, line {text.line}: "
            error.args = (where + str(error), *error.args[1:])
            raise
        sound = sound and made.result.satisfied
        _show(made, as_json)
    return 0 if sound else 1


def _measure() -> tuple[Callable[[str, Sequence[str]], Sequence[float]], str]:
    """Sentence embeddings where they are installed, else the overlap of words; and what it is called."""
    from redraft.classifiers import InvalidClassifierError
    from redraft.classifiers.similarity import meaning

    try:
        return meaning(), "sentence embeddings"
    except InvalidClassifierError:
        return overlap, "overlap of words (sentence embeddings need redraft[classifiers])"


def _tracked(given: Sequence[Text]) -> Iterable[Text]:
    if len(given) < 2 or not sys.stderr.isatty():
        return given
    from rich.console import Console
    from rich.progress import track

    return track(given, description="rewriting", console=Console(stderr=True), transient=True)


def _show(made: Rewriting, as_json: bool) -> None:
    if as_json:
        table = {
            "text": made.text,
            "original": made.original,
            "similarity": round(made.similarity, 4),
            "kept": round(made.kept, 4),
            "seed": made.result.seed,
            "reopened": [{k: v for k, v in asdict(span).items() if k != "label"} for span in made.reopened],
            "verdicts": [verdict_dict(verdict) for verdict in made.result.verdicts],
        }
        ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        print(json.dumps(table, ensure_ascii=ascii_only, allow_nan=False), flush=True)
        return
    print(made.text, flush=True)
    print(f"similarity {made.similarity:.2f}, kept {made.kept:.0%}", file=sys.stderr)
