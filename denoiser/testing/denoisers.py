"""The contract of denoisers: what the loop takes for granted of every adapter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import torch
from torch import Tensor

from redraft.denoiser.base import Denoiser
from redraft.denoiser.errors import InvalidGuideError, RedraftError, UnwritableTextError
from redraft.denoiser.settings import Settings
from redraft.denoiser.testing.denoiser_facts import MARKERS, DenoiserFacts
from redraft.denoiser.testing.examination import Check, CheckResult, Examination, demand
from redraft.denoiser.testing.moments import mapped, tensors
from redraft.denoiser.vocabulary import Vocabulary


def check_denoiser(
    denoiser: Denoiser,
    *,
    text: str = "the old man and the sea",
    tolerance: float = 1e-3,
    expected_failures: Mapping[str, str] | None = None,
    raises: bool = True,
) -> list[CheckResult]:
    """Hold a denoiser against its contract; one result a check, in order.

    `text` is something that its vocabulary writes; `tolerance` >= 0 in nats: how far the log-probabilities
    of a row may differ between a batch and the row alone. Raises `ContractError` naming each failed check
    with its reason and remedy, unless `raises` is false.
    """
    if not isinstance(denoiser, Denoiser):
        raise InvalidGuideError(f"{denoiser!r} is no denoiser: pass an instance of redraft.denoiser.Denoiser")
    facts = DenoiserFacts(denoiser, text, tolerance)
    return Examination(denoiser.name, facts, DENOISER_CHECKS, expected_failures).report(raises=raises)


def _described(facts: DenoiserFacts) -> str:
    own = facts.denoiser
    demand(isinstance(own.name, str) and bool(own.name.strip()), f"name is {own.name!r}")
    demand(isinstance(own.vocabulary, Vocabulary), f"vocabulary is {own.vocabulary!r}")
    demand(isinstance(own.device, torch.device), f"device is {own.device!r}, not a torch.device")
    demand(isinstance(own.settings, Settings), f"settings is {own.settings!r}")
    demand(1 <= own.length <= own.max_length, f"length is {own.length} and max_length {own.max_length}")
    return f"{len(own.vocabulary)} tokens, at most {own.max_length} on a canvas, on {own.device}"


def _bytes(facts: DenoiserFacts) -> None:
    vocabulary = facts.denoiser.vocabulary
    for text in (facts.text, facts.text.split(" ")[0], f"{facts.text}  {facts.text}"):
        try:
            ids = vocabulary.encode(text)
        except UnwritableTextError as error:
            if "  " in text:  # some tokenizers join spaces, and say so
                continue
            demand(False, f"{text!r} does not come back from its tokens: {error}")
        demand(vocabulary.decode(ids) == text, f"{text!r} comes back as {vocabulary.decode(ids)!r}")
        demand(
            all(vocabulary.token_bytes[token] for token in ids), f"{text!r} is cut into tokens without bytes"
        )


def _markers(facts: DenoiserFacts) -> str:
    own, read = facts.denoiser, 0
    barred = {token for token, raw in enumerate(own.vocabulary.token_bytes) if not raw}
    always = Counter(
        own.prepare(facts.text, 1).tokens.flatten().tolist()
    )  # a begin token and tags may stand there
    for marker in MARKERS:
        try:
            tokens = own.prepare(f"{facts.text} {marker}", 1).tokens
        except UnwritableTextError:
            continue
        read += 1
        special = barred & set(Counter(tokens.flatten().tolist()) - always)
        demand(not special, f"{marker!r} in a prompt becomes special token {sorted(special)[:1]}")
    return f"{read} of {len(MARKERS)} markers can be written"


def _prompt(facts: DenoiserFacts) -> None:
    for text in ("", facts.text):
        prompt = facts.denoiser.prepare(text, 2)
        tokens, mask = prompt.tokens, prompt.mask
        demand(
            tokens.dtype == torch.int64 and tokens.ndim == 2 and len(tokens) == 2,
            f"the tokens of prompt {text!r} are {tokens.dtype} {tuple(tokens.shape)}, not int64 [2, P]",
        )
        demand(
            mask.dtype == torch.bool and mask.shape == tokens.shape,
            f"its mask is {mask.dtype} {tuple(mask.shape)}, not bool {tuple(tokens.shape)}",
        )
        demand(tokens.device == facts.denoiser.device, f"the prompt is on {tokens.device}")
        demand(torch.equal(tokens[0], tokens[1]), "two rows of one prompt differ")


def _conditions(facts: DenoiserFacts) -> str:
    own = facts.denoiser
    for kind, values in own.conditions.items():
        demand(bool(values), f"condition {kind!r} has no value")
        prompt = own.prepare("", 1, {kind: values[-1]})
        demand(
            dict(prompt.condition) == {kind: values[-1]},
            f"condition {kind!r} gets lost on the way to the prompt",
        )
        own(facts.blank(1, facts.length), prompt)
    for wrong in ({"no-such-kind": "x"}, *({kind: "no-such-value"} for kind in own.conditions)):
        try:
            own.prepare("", 1, wrong)
        except RedraftError:
            continue
        demand(False, f"the condition {wrong} is taken without a word")
    return ", ".join(own.conditions) or "it takes none"


def _longest(facts: DenoiserFacts) -> str:
    own = facts.denoiser
    free, behind = own.longest(own.prepare("", 1)), own.longest(facts.prompt(1))
    demand(1 <= free <= own.max_length, f"without a prompt the longest canvas is {free} of {own.max_length}")
    demand(behind <= free, f"behind a prompt it is {behind}, more than {free} without one")
    logits = own(facts.blank(1, free), own.prepare("", 1))
    demand(tuple(logits.shape[:2]) == (1, free), f"a canvas of {free} gives logits {tuple(logits.shape)}")
    return f"{free} tokens, {behind} behind {facts.text!r}"


def _logits(facts: DenoiserFacts) -> None:
    own, size = facts.denoiser, len(facts.denoiser.vocabulary)
    for batch, length in ((1, 1), (2, facts.length), (facts.batch, max(1, facts.length - 2))):
        logits = own(facts.blank(batch, length), facts.prompt(batch))
        demand(isinstance(logits, Tensor), f"it returns {type(logits).__name__}, not a tensor")
        demand(
            tuple(logits.shape) == (batch, length, size),
            f"logits are {tuple(logits.shape)}, not {(batch, length, size)}",
        )
        demand(logits.dtype == torch.float32, f"logits are {logits.dtype}, not float32")
        demand(logits.device == own.device, f"logits are on {logits.device}, not {own.device}")
        demand(not logits.requires_grad, "logits are not detached")


def _never(facts: DenoiserFacts) -> str:
    barred = facts.logits[..., facts.never]
    written = (barred > -torch.inf).any(0).any(0).nonzero().flatten()
    tokens = facts.never.nonzero().flatten()[written].tolist()
    demand(not tokens, f"tokens {tokens[:5]} stand for no text and can be written")
    return f"{int(facts.never.sum())} tokens are never written"


def _finite(facts: DenoiserFacts) -> None:
    kept = facts.logits[..., ~facts.never]
    demand(not bool(kept.isnan().any()), "a logit is NaN")
    demand(bool(kept.isfinite().all()), f"a token of text has logit {kept[~kept.isfinite()][:1].tolist()}")


def _deterministic(facts: DenoiserFacts) -> None:
    again = facts.ask(facts.canvas)
    demand(torch.equal(facts.logits, again), "the same canvas gives other logits the second time")


def _unedited(facts: DenoiserFacts) -> None:
    canvas, prompt = facts.canvas, facts.prompt()
    shown = (mapped(canvas, torch.clone), mapped(prompt, torch.clone))
    facts.denoiser(*shown)
    for before, after in zip((canvas, prompt), shown, strict=True):
        for (place, one), (_, two) in zip(tensors(before), tensors(after), strict=True):
            demand(torch.equal(one, two), f"{type(before).__name__}.{place} is changed in place")


def _rows(facts: DenoiserFacts) -> str:
    together, most = facts.logits.log_softmax(-1), 0.0
    for row in range(facts.batch):
        alone = facts.ask(facts.row(row)).log_softmax(-1)
        apart = (alone - together[row : row + 1])[..., ~facts.never].abs().max().item()
        most = max(most, apart)
        demand(
            apart <= facts.tolerance,
            f"row {row} alone differs by {apart:.3g} nats, more than {facts.tolerance:g}",
        )
    return f"at most {most:.2g} nats apart"


def _writes(facts: DenoiserFacts) -> str:
    own = facts.denoiser
    one, two = (own.write([], seed=4, samples=2, length=facts.length, steps=3) for _ in range(2))
    demand([r.tokens for r in one] == [r.tokens for r in two], "the same seed writes two texts")
    demand(
        all(own.vocabulary.decode(r.tokens) == r.text for r in one), "a text is not what its tokens decode to"
    )
    return f"{one[0].timing.denoiser_ms / one[0].forward_passes:.1f} ms a forward pass of 2 x {facts.length}"


_WORKS = ("logits", "prompt")

DENOISER_CHECKS: tuple[Check, ...] = (
    Check(
        "described",
        "the loop, the command and messages go by these",
        "set name, vocabulary, noise, device, length <= max_length, settings",
        _described,
    ),
    Check(
        "vocabulary-bytes",
        "everything guaranteed is guaranteed for the concatenation of the tokens' bytes",
        "build the vocabulary with Vocabulary.from_tokenizer, or give each token's exact bytes",
        _bytes,
        needs=("described",),
    ),
    Check(
        "prompt",
        "prompts of one run stand in one tensor",
        "return Prompt(tokens int64 [B, P], mask bool [B, P]) on the denoiser's device",
        _prompt,
        needs=("vocabulary-bytes",),
    ),
    Check(
        "markers-are-text",
        "a user's literal mask marker is text, not a hole",
        "encode prompts with vocabulary.encode, special tokens off",
        _markers,
        needs=("prompt",),
    ),
    Check(
        "logits",
        "the loop adds biases to float32 log-probabilities [B, L, V]",
        "slice the canvas's positions and the vocabulary's tokens out, convert to float32, detach",
        _logits,
        needs=("prompt",),
    ),
    Check(
        "longest",
        "requests that do not fit are refused before a forward pass",
        "let longest(prompt) be what the positions leave behind the prompt, at most max_length",
        _longest,
        needs=_WORKS,
    ),
    Check(
        "conditions",
        "a tag that is not understood must not be dropped in silence",
        "list every kind and value in `conditions`, use them in __call__, leave the refusing to prepare",
        _conditions,
        needs=_WORKS,
    ),
    Check(
        "never-written",
        "mask and special tokens are no text",
        "set logits of tokens without bytes to -inf, all but EOS and its padding",
        _never,
        needs=_WORKS,
    ),
    Check(
        "finite-elsewhere",
        "a guarantee must be able to choose any token of text",
        "keep the logits of all other tokens finite",
        _finite,
        needs=_WORKS,
    ),
    Check(
        "deterministic",
        "the same seed writes the same text",
        "call model.eval(), and draw no random numbers in __call__",
        _deterministic,
        needs=("never-written", "finite-elsewhere"),
    ),
    Check(
        "no-edits-in-place",
        "the canvas of a step is shown to guides after the forward pass",
        "make new tensors instead of changing canvas or prompt",
        _unedited,
        needs=("deterministic",),
    ),
    Check(
        "batch-equals-singles",
        "a text does not depend on its neighbours in the batch",
        "use no batch statistics; mask padding; raise `tolerance` for low precision",
        _rows,
        needs=("no-edits-in-place",),
    ),
    Check(
        "writes",
        "all of it together writes texts",
        "see the other checks",
        _writes,
        needs=("batch-equals-singles", "longest"),
    ),
)
