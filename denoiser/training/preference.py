"""Preference: what readers let stand becomes likelier than what they did not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertForMaskedLM

from redraft.denoiser.load import available_device
from redraft.denoiser.training.corpus import GENRES, TONES, CorpusError, Passage, read_corpus
from redraft.denoiser.training.evaluate import evaluate, held_out_subset
from redraft.denoiser.training.export import export
from redraft.denoiser.training.masking import Batch, Masking, hidden_at, loss_of, mask_batch
from redraft.denoiser.training.precision import fast_bf16
from redraft.denoiser.training.rows import CANVAS, Mixture, Position, Row, RowStream
from redraft.denoiser.training.state import adamw
from redraft.denoiser.training.streams import stream_batch
from redraft.denoiser.training.tokenizer import TextCodec

Pair = tuple[Row, Row]  # one that a reader let stand, and one that he did not
_IN_ORDER = Masking(edge=0.0, anchored=0.0)
_ALIKE = 3  # tokens: texts of one pair differ by less in length
_HELD = 20  # one draft in so many is held out, by a hash of its text


@dataclass(frozen=True)
class Verdict:
    """A draft of the denoiser's own, and whether it stands: a reader let it, and it is not `copied`."""

    draft: Passage
    stands: bool
    copied: bool = False

    @property
    def held_out(self) -> bool:
        return self.draft.key % _HELD == 0


@dataclass(frozen=True)
class Preference:
    """How to learn from verdicts.

    rate: peak learning rate, with a linear decay; beta: nats of the log-ratio that count as one; likelier, replay: the
    weights of the cross-entropy of what stands, and of the corpus; pairs: a step's; epochs: of the drafts that stand.
    """

    rate: float = 8e-5
    beta: float = 0.1
    likelier: float = 0.2
    replay: float = 0.5
    pairs: int = 24
    epochs: float = 2.0
    warmup: int = 20
    seed: int = 0
    device: str = "cpu"
    mixture: Mixture = field(default_factory=Mixture)
    masking: Masking = field(default_factory=Masking)


@dataclass(frozen=True)
class Moment:
    """How far it is: step of steps, the losses of the pairs and the corpus, the share of pairs in order."""

    step: int
    steps: int
    loss: float
    replayed: float
    ordered: float


def read_verdicts(folder: Path) -> list[Verdict]:
    """The drafts of `GENRE.tsv`, a line each: `P` (it stands), `F` (not) or `C` (copied), the tone told, the text.

    Raises `CorpusError` for a folder without them and a line that is none.
    """
    files = sorted(folder.glob("*.tsv")) if folder.is_dir() else []
    if not files:
        raise CorpusError(f"verdicts {folder}: no GENRE.tsv there; give a folder of judged drafts")
    found = []
    for file in files:
        if file.stem not in GENRES:
            raise CorpusError(f"{file}: {file.stem!r} is no genre; use one of {', '.join(GENRES)}")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            verdict, _, rest = line.partition("\t")
            tone, _, text = rest.partition("\t")
            if verdict not in ("P", "F", "C") or tone not in TONES or not text.strip():
                raise CorpusError(
                    f"{file}:{number}: {line[:40]!r} is no verdict; write P, F or C, a tone, the text"
                )
            found.append(Verdict(Passage(text, file.stem, tone, file.stem), verdict == "P", verdict == "C"))
    return found


def pairs(verdicts: Sequence[Verdict], codec: TextCodec, rng: np.random.Generator) -> list[Pair]:
    """Each draft that stands beside one that does not, of its genre and length, in a random order.

    A difference in length says nothing then: shorter drafts stand more often, and shortness is not what is wanted.
    """
    by: dict[tuple[str, int], tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    encoded = codec.encode_all([v.draft.text for v in verdicts])
    for verdict, ids in zip(verdicts, encoded, strict=True):
        genre, tone = codec.genres[verdict.draft.genre], codec.tones[verdict.draft.tone]
        row = Row(genre, tone, tuple(ids[: CANVAS - 1]), real=False)
        by[verdict.draft.genre, len(row) // _ALIKE][verdict.stands].append(row)
    made: list[Pair] = []
    for falls, stands in by.values():
        if falls:
            order = rng.permutation(len(falls))
            made += [(row, falls[order[k % len(order)]]) for k, row in enumerate(stands)]
    return [made[k] for k in rng.permutation(len(made))]


def log_likelihood(model: BertForMaskedLM, rows: Sequence[Row], codec: TextCodec) -> tuple[Tensor, Tensor]:
    """(log p [B], nats, of the texts with their ends; tokens [B]): each token given the tags and what is left of it."""
    width = max(map(len, rows)) + 1
    batch = stream_batch(rows, width, codec, _IN_ORDER, np.random.default_rng(0)).to(model.device)
    text = batch.targets != codec.pad
    row = (batch.places // batch.inputs.shape[1])[text]
    logits = model.cls(hidden_at(model, batch)[text]).float()
    said = -F.cross_entropy(logits, batch.targets[text], reduction="none")
    zero = said.new_zeros(len(rows))
    return zero.index_add(0, row, said), zero.index_add(0, row, torch.ones_like(said))


def preference_loss(better: Tensor, worse: Tensor, beta: float) -> Tensor:
    """-log sigmoid(beta (better - worse)), the mean; both [B] log(p / p_ref), nats (DPO: Rafailov et al. 2023)."""
    return -F.logsigmoid(beta * (better - worse)).mean()


def prefer(
    release: Path,
    verdicts: Sequence[Verdict],
    corpus: Path | Sequence[Path],
    out: Path,
    *,
    settings: Preference | None = None,
    progress: Callable[[Moment], None] | None = None,
) -> Path:
    """Make a release like `release` in the folder `out` that prefers what readers let stand.

    Every step takes some pairs, with the reference the release itself, and a batch of the corpus, so that nothing
    else is forgotten. Raises `CorpusError` where verdicts make no pairs, or the corpus cannot be read.
    """
    settings = settings or Preference()
    device = available_device(settings.device)
    codec = TextCodec.load(release / "tokenizer.json")
    text = read_corpus(corpus)
    rng = np.random.default_rng(settings.seed)
    learned = [v for v in verdicts if not v.held_out]
    held = pairs([v for v in verdicts if v.held_out], codec, rng)
    steps = int(settings.epochs * len(pairs(learned, codec, rng)) / settings.pairs)
    if not steps or not held:
        raise CorpusError(
            f"{len(verdicts)} verdicts make fewer than {settings.pairs} pairs to learn from, or none to hold out: "
            "give more drafts of each genre and length, some that stand and some that do not"
        )
    torch.manual_seed(settings.seed)
    model = BertForMaskedLM.from_pretrained(release, dtype=torch.float32)
    model.to(device)  # type: ignore[arg-type]
    model.bert.embeddings.word_embeddings.padding_idx = None
    if device.type == "cpu":
        model.set_attn_implementation("eager")
    reference = deepcopy(model).train(False).requires_grad_(False)
    before = _in_order(model, held, codec)
    optimiser = adamw(model, weight_decay=0.01)
    stream = RowStream(text.train, codec, settings.mixture, tokens=1536, seed=settings.seed)
    batches = stream.batches(Position())
    waiting: list[Pair] = []
    for step in range(steps):
        if len(waiting) < settings.pairs:
            waiting = pairs(learned, codec, rng)
        taken, waiting = waiting[: settings.pairs], waiting[settings.pairs :]
        rows = [row for row, _ in taken] + [row for _, row in taken]
        rate = settings.rate * min(1.0, (step + 1) / settings.warmup) * max(0.02, 1 - step / steps)
        for group in optimiser.param_groups:
            group["lr"] = rate
        with torch.inference_mode(), _precision(device):
            known, _ = log_likelihood(reference, rows, codec)
        model.train()
        with _precision(device):
            said, tokens = log_likelihood(model, rows, codec)
            better, worse = (said - known).chunk(2)
            count = len(taken)
            loss = preference_loss(better, worse, settings.beta)
            likely = -said[:count].sum() / tokens[:count].sum()
        optimiser.zero_grad(set_to_none=True)
        (loss + settings.likelier * likely).backward()  # type: ignore[no-untyped-call]
        _, some, width = next(batches)
        again = _replayed(some[::2], width, codec, settings.masking, rng)
        with _precision(device):
            replayed = loss_of(model, again.to(device))
        (settings.replay * replayed).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimiser.step()
        if progress and (step % 10 == 0 or step + 1 == steps):
            ordered = float((better > worse).float().mean())
            progress(Moment(step + 1, steps, float(loss.detach()), float(replayed.detach()), ordered))
    model.train(False)
    figures = evaluate(model, held_out_subset(text.held), codec)
    learning = {
        "steps": steps,
        "verdicts": len(verdicts),
        "held-out pairs": len(held),
        "held-out pairs in order": {"before": before, "after": _in_order(model, held, codec)},
    }
    return export(model, codec, out, held_out=figures, training={"preference": learning})


def _replayed(
    rows: Sequence[Row], width: int, codec: TextCodec, rule: Masking, rng: np.random.Generator
) -> Batch:
    if rng.random() < rule.streams:
        return stream_batch(rows, min(width, max(map(len, rows)) + 1), codec, rule, rng)
    return mask_batch(rows, width, codec, rule, rng)


def _precision(device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, torch.bfloat16, enabled=fast_bf16(device))


def _in_order(model: BertForMaskedLM, held: Sequence[Pair], codec: TextCodec) -> float:
    """The share of the pairs whose first text is the likelier one."""
    model.train(False)
    first = 0
    with torch.inference_mode(), _precision(model.device):
        for at in range(0, len(held), 32):
            some = held[at : at + 32]
            said, _ = log_likelihood(model, [row for pair in zip(*some, strict=True) for row in pair], codec)
            better, worse = said.chunk(2)
            first += int((better > worse).sum())
    return round(first / len(held), 4)
