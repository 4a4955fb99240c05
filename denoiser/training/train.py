"""One function that trains a denoiser, from nothing, MiniLM's body or a release, and resumes itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import BertForMaskedLM

from redraft.denoiser.load import available_device
from redraft.denoiser.training.corpus import Corpus, Passage, read_corpus
from redraft.denoiser.training.evaluate import Figures, evaluate, held_out_subset, samples
from redraft.denoiser.training.export import export
from redraft.denoiser.training.masking import Batch, Head, head_loss, loss_of, mask_batch
from redraft.denoiser.training.precision import fast_bf16
from redraft.denoiser.training.rows import Row, RowStream
from redraft.denoiser.training.schedule import Budget, Rate
from redraft.denoiser.training.settings import Progress, Settings
from redraft.denoiser.training.state import BEFORE_DECAY, LAST, Ema, Run, adamw
from redraft.denoiser.training.streams import stream_batch
from redraft.denoiser.training.threads import Governor
from redraft.denoiser.training.tokenizer import TextCodec, train_tokenizer
from redraft.denoiser.training.transplant import config_for, fresh, set_unigram_bias, transplant

TOKENIZER = "tokenizer.json"
_SAMPLED = (
    ("story", "positive"),
    ("review", "negative"),
    ("customer", "positive"),
    ("tale", "none"),
    ("plain", "neutral"),
    ("none", "none"),
)


def train(
    corpus: Path | Sequence[Path],
    out: Path,
    *,
    budget: Budget,
    start_from: Path | None = None,
    body: Path | None = None,
    settings: Settings | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Path | None:
    """Train on the text in `corpus`, keep the run in `out`, return the release folder `out/release`.

    start_from: a release folder to fine-tune (its tokenizer is kept). body: a MiniLM folder to start from.
    Neither: from nothing. If `out` holds a checkpoint the run goes on from it, with the corpus as it is now.
    settings.device: where it trains; a run goes on on any other.
    stop: asked before each step; once true, the run is saved and None is returned.
    A file `decay-now` in `out`, holding minutes, makes the run decay at once and end.
    Raises CorpusError if the corpus is unreadable or too small, UnsupportedModelError for a device that is not there.
    """
    settings = settings or (Settings.fine_tuning() if start_from else Settings())
    device = available_device(settings.device)
    text = read_corpus(corpus, min_words=settings.min_words)
    out.mkdir(parents=True, exist_ok=True)
    codec = _codec(text, out, start_from, settings)
    run = _begin(text, codec, out, start_from, body, settings, device)
    trainer = _Trainer(text, codec, run, out, budget, settings, progress or (lambda _: None))
    return trainer.go(stop or (lambda: False))


def _codec(text: Corpus, out: Path, start_from: Path | None, settings: Settings) -> TextCodec:
    file = out / TOKENIZER
    if not file.exists():
        if start_from:
            file.write_bytes((start_from / TOKENIZER).read_bytes())
        else:
            train_tokenizer(text.train, size=settings.vocabulary, seed=settings.seed).save(file)
    return TextCodec.load(file)


def _begin(
    text: Corpus,
    codec: TextCodec,
    out: Path,
    start_from: Path | None,
    body: Path | None,
    settings: Settings,
    device: torch.device,
) -> Run:
    if start_from:
        model = BertForMaskedLM.from_pretrained(start_from, dtype=torch.float32)
    elif body:
        model = transplant(codec, body, seed=settings.seed)
    else:
        width = settings.width
        shape = config_for(codec, layers=settings.layers, width=width, heads=settings.heads, inner=4 * width)
        model = fresh(codec, shape, seed=settings.seed)
    if not start_from:
        set_unigram_bias(model, _counts(text, codec))
    model.bert.embeddings.word_embeddings.padding_idx = None
    model.to(device)  # type: ignore[arg-type]
    if device.type == "cpu":  # there the fused backward in bf16 is slower than plain matmuls
        model.set_attn_implementation("eager")
    run = Run(model, adamw(model, weight_decay=settings.weight_decay), Ema(model))
    if (out / LAST).exists():
        run.restore(out / LAST)
    return run


def _counts(text: Corpus, codec: TextCodec) -> torch.Tensor:
    counts = torch.zeros(codec.size)
    for ids in codec.encode_all([p.text for p in text.train]):
        counts += torch.bincount(torch.tensor(ids), minlength=codec.size)
        counts[codec.eos] += 1
    counts[codec.pad] = counts[codec.eos]
    return counts


class _Trainer:
    """The loop and its three clocks: report, checkpoint, evaluate."""

    def __init__(
        self,
        text: Corpus,
        codec: TextCodec,
        run: Run,
        out: Path,
        budget: Budget,
        settings: Settings,
        progress: Callable[[Progress], None],
    ) -> None:
        self.codec, self.run, self.out, self.settings, self.progress = codec, run, out, settings, progress
        self.budget = budget
        self.stream = RowStream(
            text.train, codec, settings.mixture, tokens=settings.tokens, seed=settings.seed
        )
        self.held: list[Passage] = held_out_subset(text.held)
        self.rate = Rate(settings.peak, settings.warmup)
        self.began = self._moment()
        self.decaying = (out / BEFORE_DECAY).exists() and self.budget.decays(self.began)
        self.words = text.words
        self.losses: list[torch.Tensor] = []
        self.device = run.model.device
        self.bf16 = fast_bf16(self.device) if settings.bf16 is None else settings.bf16
        self.head: Head = head_loss
        self.governor = Governor(torch.get_num_threads()) if settings.share_cores else None
        if settings.compile:
            run.model.bert.encoder.compile(dynamic=True)
            self.head = torch.compile(head_loss, dynamic=True)

    def go(self, stop: Callable[[], bool]) -> Path | None:
        self._report(0.0, 0.0, note=f"{self.words} words, {len(self.stream.passages)} texts")
        saved = reported = time.monotonic()
        evaluated, tokens = reported, self.run.tokens
        for position, rows, width in self.stream.batches(self.run.position):
            moment = self._moment()
            if self.budget.over(moment):
                break
            if stop():
                self.run.save(self.out / LAST)
                return None
            self._enter_decay(moment)
            if self.governor:
                self.governor.tick()
            rate = self.rate.at(self.run.step, self.budget, moment)
            began = time.monotonic()
            rng = np.random.default_rng((self.settings.seed, 3, self.run.step))
            batch = self._masked(rows, width, rng).to(self.device)
            self.losses.append(self._step(batch, rate))
            self.run.position = position
            self.run.tokens += batch.inputs.numel()
            now = time.monotonic()
            self.run.seconds += now - began
            if now - reported >= self.settings.report_every:
                self._report((self.run.tokens - tokens) / (now - reported), rate)
                reported, tokens = now, self.run.tokens
                self.budget = self.budget.hurried(self.out, time.time())
            if now - saved >= self.settings.checkpoint_every:
                self.run.save(self.out / LAST)
                saved = time.monotonic()
            if now - evaluated >= self.settings.evaluate_every:
                self._evaluate(rate)
                evaluated = reported = time.monotonic()
                tokens = self.run.tokens
        return self._finish()

    def _masked(self, rows: Sequence[Row], width: int, rng: np.random.Generator) -> Batch:
        """The batch to learn from; in two streams a row takes twice the room, so half of the rows are taken."""
        rule = self.settings.masking
        if rng.random() < rule.streams and len(rows) > 1:
            half = rows[self.run.step % 2 :: 2]
            needed = max(map(len, half)) + 1  # a stream does not see how wide its canvas is
            return stream_batch(half, min(width, needed), self.codec, rule, rng)
        return mask_batch(rows, width, self.codec, rule, rng)

    def _step(self, batch: Batch, rate: float) -> torch.Tensor:
        run = self.run
        run.model.train()
        for group in run.optimiser.param_groups:
            group["lr"] = rate
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            loss = loss_of(run.model, batch, self.head)
        run.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(run.model.parameters(), self.settings.clip, foreach=True)
        run.optimiser.step()
        run.step += 1
        run.ema.update(run.model, run.step)
        return loss.detach()

    def _enter_decay(self, moment: float) -> None:
        if not self.decaying and self.budget.decay and self.budget.decays(moment):
            self.run.save(self.out / BEFORE_DECAY)  # a later session goes on from here at the full rate
            self.decaying = True
            self._report(0.0, self.rate.at(self.run.step, self.budget, moment), note="decay begins")

    def _finish(self) -> Path:
        self.run.save(self.out / LAST)
        raw, mean = self._evaluate(0.0)
        better = self._mean_is_better(raw, mean)
        if better:
            self.run.ema.swap(self.run.model)
        figures = {"step": self.run.step, "tokens": self.run.tokens, "seconds": round(self.run.seconds)}
        held = mean if better else raw
        release = export(self.run.model, self.codec, self.out / "release", held_out=held, training=figures)
        if better:
            self.run.ema.swap(self.run.model)
        return release

    def _evaluate(self, rate: float) -> tuple[Figures, Figures]:
        with torch.compiler.set_stance("force_eager"):
            return self._evaluate_eagerly(rate)

    def _evaluate_eagerly(self, rate: float) -> tuple[Figures, Figures]:
        raw = evaluate(self.run.model, self.held, self.codec)
        self.run.ema.swap(self.run.model)
        try:
            mean = evaluate(self.run.model, self.held, self.codec)
            texts = samples(self.run.model, self.codec, _SAMPLED, seed=self.run.step)
        finally:
            self.run.ema.swap(self.run.model)
        self._report(0.0, rate, raw=raw, mean=mean, texts=tuple(texts))
        return raw, mean

    @staticmethod
    def _mean_is_better(raw: Figures, mean: Figures) -> bool:
        def total(figures: Figures) -> float:
            return sum(f.cross_entropy * f.tokens for kind in figures.values() for f in kind.values())

        return total(mean) < total(raw)

    def _moment(self) -> float:
        return self.budget.moment(now=time.time(), step=self.run.step)

    def _report(
        self,
        speed: float,
        rate: float,
        *,
        note: str = "",
        raw: Figures | None = None,
        mean: Figures | None = None,
        texts: tuple[str, ...] = (),
    ) -> None:
        span = self.budget.end - self.began
        done = min(1.0, (self._moment() - self.began) / span) if span > 0 else None
        loss = float(torch.stack(self.losses).mean()) if self.losses else float("nan")
        if speed:
            self.losses.clear()
        run = self.run
        report = Progress(
            run.step, run.tokens, speed, loss, rate, done, self.decaying, note, raw, mean, texts
        )
        self.progress(report)
