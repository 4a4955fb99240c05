"""Rewrite a text: keep most of it, reopen what the guides would change and the meaning can spare."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.checked import check
from redraft.denoiser.errors import GuideError, InvalidGuideError, RedraftError, UnsatisfiableError
from redraft.denoiser.guide import Guide, SoftGuide, Span
from redraft.denoiser.joint import is_whole
from redraft.denoiser.language import feasible
from redraft.denoiser.protected import Protected
from redraft.denoiser.randomness import Randomness, check_seeds
from redraft.denoiser.result import Result
from redraft.denoiser.settings import Settings
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Prompt, Scene, Step
from redraft.denoiser.swarm import derived
from redraft.denoiser.write import listed, run_canvas

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""How alike in meaning each of some texts is to a first one, 1 for the same."""
PARTS = 4


@dataclass(frozen=True)
class Rewriting:
    """A text and what it became.

    `similarity` of the two by the measure given (word overlap without one), `kept` the share of the original's
    tokens that stood fast, `reopened` the stretches of the original that did not, `result` the run's own report;
    its settings and seed reproduce it together with the original and the same `rewrite` options.
    """

    original: str
    text: str
    similarity: float
    kept: float
    reopened: tuple[Span, ...]
    result: Result


def overlap(text: str, others: Sequence[str]) -> list[float]:
    """Cosine of the counts of words in lower case, in [0, 1]: the measure where there is no encoder."""

    def counts(value: str) -> Counter[str]:
        return Counter(word.strip(".,;:!?\"'()").lower() for word in value.split())

    def length(own: Counter[str]) -> float:
        return math.sqrt(sum(n * n for n in own.values()))

    own = counts(text)
    found = [(counts(other), length(counts(other))) for other in others]
    return [
        sum(own[w] * n for w, n in theirs.items()) / (length(own) * size)
        if own and size
        else float(own == theirs)
        for theirs, size in found
    ]


def rewrite(
    denoiser: Denoiser,
    text: str,
    guides: Guide | Sequence[Guide] = (),
    *,
    keep: float = 0.7,
    protect: Sequence[str] = (),
    stretch: float = 0.2,
    tries: int = 4,
    seed: int | None = None,
    similarity: Similarity | None = None,
    condition: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    **changes: Any,
) -> Rewriting:
    """Rewrite a text under guides: a share `keep` of its tokens, in [0, 1), stays where it is in the text.

    Words are ranked by style - meaning. Style: E_q[bias] - bias(word), how much the soft guides gain by what the
    denoiser would write there instead (q its guided distribution, a quarter of the text masked at a time).
    Meaning: how much `similarity` falls without the word; without a measure, the denoiser's surprise at it, in
    nats. Both are in units of their own spread over the text. The first words of the ranking are reopened, those in
    `protect` (phrases of the text, each occurrence) never; nor is a word written onto them, so that they stay the
    words they were, and each has its verdict. Each reopened stretch of w tokens becomes a blank of
    (1 - stretch) w to (1 + stretch) w tokens (w exactly for a denoiser without EOS), other widths in each of
    `tries` runs; the most similar result is returned. Hard guides hold as ever.
    Raises `InvalidGuideError`, `UnwritableTextError` or, where what is kept and the hard guides contradict,
    `UnsatisfiableError`, before any forward pass but those of the ranking.
    """
    guides = listed(guides)
    unknown = set(changes) - set(Settings.__dataclass_fields__)
    if unknown:
        raise TypeError(f"rewrite() has no option {', '.join(sorted(unknown))}")
    if not isinstance(text, str) or not text.strip():
        raise InvalidGuideError("there is no text to rewrite: give one")
    check_options(keep, stretch, tries, seed)
    protect = [protect] if isinstance(protect, str) else protect
    for what, value, hint in (
        ("protect", protect, Sequence[str]),
        ("condition", condition, Mapping[str, str] | None),
        ("settings", settings, Settings | None),
    ):
        check(what, value, hint)
    if similarity is not None and not callable(similarity):
        raise InvalidGuideError(f"similarity is {similarity!r}: use a function of a text and a list of texts")
    settings = (settings or denoiser.settings).override(**changes)
    seed = secrets.randbits(31) if seed is None else seed
    vocabulary = denoiser.vocabulary
    tokens = vocabulary.encode(text)
    ending = int(vocabulary.eos_id is not None)
    limit = denoiser.longest(denoiser.prepare("", 1, condition)) - ending
    if len(tokens) > limit:
        raise InvalidGuideError(
            f"the text has {len(tokens)} tokens, and {denoiser.name} rewrites at most {limit}: cut it into parts"
        )
    fixed = _protected(text, tokens, protect, denoiser)
    words = _words([vocabulary.token_bytes[token] or b"" for token in tokens])
    style, surprise = _opinions(denoiser, tokens, guides, settings, condition)
    meaning = surprise if similarity is None else _losses(text, tokens, words, denoiser, similarity)
    score = _standard(_by_word(style, words)) - _standard(_by_word(meaning, words))
    opened = _opened(score, words, fixed, keep)
    if not any(opened):
        raise InvalidGuideError("nothing is left to rewrite: protect less, or lower keep")
    rows = [
        _stretched(opened, stretch if ending and k else 0.0, derived(seed, f"widths {k}"), limit)
        for k in range(tries)
    ]
    spared = [held for phrase in dict.fromkeys(protect) if (held := Protected.of(phrase, text)) is not None]
    results = _run(denoiser, tokens, rows, (*guides, *spared), settings, seed, condition)
    likeness = _measured(similarity or overlap, text, [result.text for result in results])
    best = max(range(tries), key=lambda k: (results[k].satisfied, likeness[k], -k))
    return Rewriting(
        original=text,
        text=results[best].text,
        similarity=likeness[best],
        kept=1.0 - sum(opened) / len(opened),
        reopened=_spans(text, tokens, opened, denoiser),
        result=results[best],
    )


def check_options(keep: float, stretch: float, tries: int, seed: int | None = None, texts: int = 1) -> None:
    """Raise `InvalidGuideError` for options of `rewrite` that `texts` texts, the k-th with `seed` + k, cannot have."""
    check("keep", keep, float)
    check("stretch", stretch, float)
    check("seed", seed, int | None)
    if not 0 <= keep < 1:
        raise InvalidGuideError(f"keep is {keep}: use a share from 0, below 1, such as 0.7")
    if not 0 <= stretch <= 1:
        raise InvalidGuideError(f"stretch is {stretch}: use a share from 0 to 1, such as 0.2")
    if isinstance(tries, bool) or not isinstance(tries, int) or not 1 <= tries <= 256:
        raise InvalidGuideError(f"tries is {tries!r}: use a whole number from 1 to 256")
    if seed is not None:
        check_seeds(seed, texts + tries - 1)


def _protected(text: str, tokens: Sequence[int], phrases: Sequence[str], denoiser: Denoiser) -> list[bool]:
    held = [False] * len(tokens)
    for phrase in phrases:
        at = text.find(phrase) if phrase else -1
        if at < 0:
            raise InvalidGuideError(
                f"the text does not hold {phrase!r}: protect what it says, letter for letter"
            )
        while at >= 0:
            for k in denoiser.vocabulary.covering(tokens, text, at, at + len(phrase)):
                held[k] = True
            at = text.find(phrase, at + 1)
    return held


def _words(pieces: Sequence[bytes]) -> list[int]:
    """The number of the word that each token belongs to: a new one at white space and between letters and marks."""
    numbers: list[int] = []
    for k, raw in enumerate(pieces):
        joined = k > 0 and raw[:1].isalnum() and (pieces[k - 1][-1:].isalnum() or pieces[k - 1][-1:] == b"'")
        broken = raw[:1] >= b"\x80"  # a part of a character, or a letter beyond ASCII: never a word's start
        numbers.append(numbers[-1] + (not (joined or broken)) if numbers else 0)
    return numbers


def _opinions(
    denoiser: Denoiser,
    tokens: Sequence[int],
    guides: Sequence[Guide],
    settings: Settings,
    condition: Mapping[str, str] | None,
) -> tuple[Tensor, Tensor]:
    """(style, surprise) [n] float64 nats of each token, from PARTS rows with every PARTS-th token masked."""
    vocabulary, n = denoiser.vocabulary, len(tokens)
    ids = [*tokens, vocabulary.eos_id] if vocabulary.eos_id is not None else list(tokens)
    text = torch.tensor(ids, device=denoiser.device).expand(PARTS, -1)
    place = torch.arange(len(ids), device=denoiser.device)
    hidden = (place % PARTS == torch.arange(PARTS, device=denoiser.device)[:, None]) & (place < n)
    random = Randomness([0] * PARTS, denoiser.device)
    blank = denoiser.noise.blank(len(ids), random)
    canvas = blank.commit(text, ~hidden, torch.ones_like(blank.confidence))
    prompt = denoiser.prepare("", PARTS, condition)
    logits = _seen(denoiser, canvas, text, prompt)
    scene = Scene(vocabulary, denoiser.device, PARTS, len(ids), settings.steps)
    steering = Steering([guide for guide in guides if isinstance(guide, SoftGuide)], scene)
    bias = steering.bias(
        Step(0, settings.steps, canvas, logits, prompt, denoiser, random, settings.temperature)
    )
    surprise = -logits.log_softmax(-1).gather(-1, text[..., None]).squeeze(-1)
    style = torch.zeros_like(surprise)
    if bias is not None:
        full = bias.expand_as(logits)
        style = ((logits + full).softmax(-1) * full).sum(-1) - full.gather(-1, text[..., None]).squeeze(-1)
    return tuple(torch.where(hidden, v, 0.0).sum(0)[:n].double().clamp(-50, 50) for v in (style, surprise))  # type: ignore[return-value]


def _seen(denoiser: Denoiser, canvas: Canvas, text: Tensor, prompt: Prompt) -> Tensor:
    """Logits [B, L, V] of a whole canvas; a denoiser that writes block by block is asked once a block."""
    length = canvas.tokens.shape[1]
    if denoiser.block is None:
        return denoiser(canvas, prompt)
    parts = []
    for first in range(0, length, denoiser.block):
        end = min(first + denoiser.block, length)
        shown = canvas.first(end)
        before = torch.arange(end, device=text.device) < first
        shown = shown.commit(text[:, :end], before & shown.open, shown.confidence)
        parts.append(denoiser(shown, prompt)[:, first:])
    return torch.cat(parts, dim=1)


def _losses(
    text: str, tokens: Sequence[int], words: Sequence[int], denoiser: Denoiser, similarity: Similarity
) -> Tensor:
    """How much the similarity falls without each token's word [n]."""
    without = [
        denoiser.vocabulary.decode([t for t, own in zip(tokens, words, strict=True) if own != word])
        for word in range(words[-1] + 1)
    ]
    losses = [1.0 - value for value in _measured(similarity, text, without)]
    return torch.tensor([losses[word] for word in words], dtype=torch.float64)


def _measured(similarity: Similarity, text: str, others: Sequence[str]) -> list[float]:
    try:
        values = [float(value) for value in similarity(text, others)]
    except RedraftError:
        raise
    except Exception as error:
        raise GuideError(f"similarity failed: {type(error).__name__}: {error}") from error
    if len(values) != len(others) or not all(map(math.isfinite, values)):
        raise InvalidGuideError(
            f"similarity gave {str(values)[:60]} for {len(others)} texts: give one finite number for each"
        )
    return values


def _by_word(values: Tensor, words: Sequence[int]) -> Tensor:
    """The mean over each word's tokens [words]."""
    number = torch.tensor(words, device=values.device)
    count = torch.bincount(number).to(values.dtype)
    return torch.zeros_like(count).index_add(0, number, values) / count


def _standard(values: Tensor) -> Tensor:
    spread = values.std(correction=0)
    return (values - values.mean()) / spread if bool(spread > 1e-9) else torch.zeros_like(values)


def _opened(score: Tensor, words: Sequence[int], fixed: Sequence[bool], keep: float) -> list[bool]:
    """Which tokens are reopened: whole words by score, up to a share 1 - keep of the tokens; at least one word."""
    most = max(1, round((1.0 - keep) * len(words)))
    spared = {word for word, held in zip(words, fixed, strict=True) if held}
    size = Counter(words)
    chosen: set[int] = set()
    count = 0
    for word in score.argsort(descending=True, stable=True).tolist():
        if word not in spared and (count + size[word] <= most or not chosen):
            chosen.add(word)
            count += size[word]
    return [word in chosen for word in words]


def _stretched(opened: Sequence[bool], stretch: float, seed: int, limit: int) -> list[int]:
    """A canvas as places of the original, -1 where open: each stretch of w open places gets a random width."""
    generator = torch.Generator().manual_seed(seed)
    row: list[int] = []
    k = 0
    while k < len(opened):
        if not opened[k]:
            row.append(k)
            k += 1
            continue
        width = next((j for j in range(k, len(opened)) if not opened[j]), len(opened)) - k
        spare = max(round(stretch * width), int(stretch > 0))
        change = int(torch.randint(-spare, spare + 1, (), generator=generator))
        room = limit - len(row) - (len(opened) - k)
        row += [-1] * max(1, width + min(change, room))
        k += width
    return row


def _run(
    denoiser: Denoiser,
    tokens: Sequence[int],
    rows: list[list[int]],
    guides: tuple[Guide, ...],
    settings: Settings,
    seed: int,
    condition: Mapping[str, str] | None,
) -> list[Result]:
    eos, pad = denoiser.vocabulary.eos_id, denoiser.vocabulary.pad_id
    length = max(map(len, rows)) + int(eos is not None)
    count = settings.particles.count if settings.particles else 1
    broken = not all(is_whole(denoiser.vocabulary.token_bytes[tokens[k]]) for k in rows[0] if k >= 0)
    scene = Scene(
        denoiser.vocabulary, denoiser.device, len(rows) * count, length, settings.steps, parts=broken
    )
    steering = Steering(guides, scene)

    def filled(row: list[int]) -> list[int]:
        tail = [] if eos is None else [eos] + [eos if pad is None else pad] * (length - len(row) - 1)
        return [tokens[k] if k >= 0 else -1 for k in row] + tail

    held = torch.tensor([filled(row) for row in rows], device=denoiser.device).repeat_interleave(count, 0)
    possible = feasible(steering.language, held)
    if not bool(possible[0]):
        names = " and ".join(str(guide) for guide in guides)
        raise UnsatisfiableError(
            f"what is kept of the text and {names} contradict: lower keep, or relax a guide"
        )
    held = torch.where(
        possible[:, None], held, held[0]
    )  # other widths may not fit the guides: then as it was
    seeds = range(seed, seed + len(rows))
    return run_canvas(denoiser, steering, guides, seeds, settings, held, condition)


def _spans(text: str, tokens: Sequence[int], opened: Sequence[bool], denoiser: Denoiser) -> tuple[Span, ...]:
    ends = denoiser.vocabulary.byte_ends(tokens)
    raw = text.encode()
    spans: list[Span] = []
    for k, yes in enumerate(opened):
        if yes:
            start = len(raw[: ends[k - 1] if k else 0].decode(errors="ignore"))
            end = len(raw[: ends[k]].decode(errors="ignore"))
            if spans and spans[-1].end == start:
                start = spans.pop().start
            spans.append(Span(start, end))
    return tuple(spans)
