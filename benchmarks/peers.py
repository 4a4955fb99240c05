"""JSON schemas, ours against left-to-right masks: python benchmarks/peers.py [--samples 8] [--length 64].

All write over the embedded tokenizer, from the same distributions: the embedded denoiser's for an empty canvas of
`length` tokens, which depend on the position alone, or (--random) seeded normal noise. Ours draws whole canvases in
--steps steps; outlines-core and llguidance (where installed) mask one token after another and are cut off at the
canvas. A text counts as valid where `jsonschema` validates it with its own code. Times are of the processor, without
the model; ours is a position's share of the whole loop, all steps together, the first row without any guide.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from redraft.denoiser import Absorbing, Canvas, Denoiser, Prompt, Scene, Vocabulary, load
from redraft.denoiser.errors import InvalidGuideError
from redraft.denoiser.models.embedded import HOME
from redraft.denoiser.steering import Steering
from redraft.guidance import JsonSchema

POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
}
PERSON = {
    "name": {"type": "string", "maxLength": 20},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "email": {"type": "string", "format": "email"},
}
SCHEMAS: dict[str, Any] = {
    "person": {"type": "object", "properties": PERSON, "required": ["name", "age"]},
    "free strings": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("title", "summary", "author")},
        "required": ["title", "summary"],
    },
    "labels": {"type": "array", "items": {"enum": ["calm", "stormy", "cold"]}, "minItems": 1, "maxItems": 4},
    "bounds": {
        "type": "object",
        "properties": {"p": {"type": "number", "minimum": 0, "maximum": 1}},
        "required": ["p"],
    },
    "date and code": {
        "type": "object",
        "properties": {
            "on": {"type": "string", "format": "date"},
            "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{2}$"},
        },
        "required": ["on", "code"],
    },
    "pattern and length": {"type": "string", "pattern": "^[a-z ]+$", "minLength": 5, "maxLength": 30},
    "nested": {"type": "object", "properties": {"from": POINT, "to": POINT}, "required": ["from", "to"]},
    "either kind": {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "kind": {"const": "dog"},
                    "legs": {"type": "integer", "minimum": 0, "maximum": 4},
                },
                "required": ["kind", "legs"],
            },
            {
                "type": "object",
                "properties": {"kind": {"const": "ship"}, "name": {"type": "string"}},
                "required": ["kind", "name"],
            },
        ]
    },
    "tree": {
        "$defs": {
            "t": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"},
                    "in": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/t"}},
                },
                "required": ["n"],
            }
        },
        "$ref": "#/$defs/t",
    },
    "ten options": {
        "type": "object",
        "properties": {f"option {k}": {"type": ["boolean", "null"]} for k in range(10)},
        "minProperties": 2,
        "maxProperties": 5,
    },
}


def closed(schema: Any) -> Any:
    """The schema with no properties beside the named ones, which not every writer takes for granted."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    extra = {"additionalProperties": False} if schema.get("type") == "object" else {}
    return {key: closed(value) for key, value in schema.items()} | extra


#: Seconds after which a peer's compilation is given up.
PATIENCE = 8


class Fixed(Denoiser):
    """Distributions that depend on the position alone."""

    name = "fixed"

    def __init__(self, vocabulary: Vocabulary, logits: Tensor) -> None:
        assert vocabulary.mask_id is not None
        self.vocabulary, self.noise = vocabulary, Absorbing(vocabulary.mask_id)
        self.device = torch.device("cpu")
        self.length = self.max_length = len(logits)
        self._logits = logits

    def __call__(self, canvas: Canvas, prompt: Prompt) -> Tensor:
        return self._logits.expand(len(canvas.tokens), -1, -1).clone()


def ours(denoiser: Fixed, schema: Any, samples: int, steps: int) -> tuple[list[str], float, float]:
    """Texts, milliseconds to compile, microseconds a position: all the loop does beside the model."""
    begin = time.process_time()
    guides = [JsonSchema(schema)] if schema is not None else []
    Steering(guides, Scene(denoiser.vocabulary, denoiser.device, samples, denoiser.length, steps))
    compiled = time.process_time() - begin
    begin = time.process_time()
    results = denoiser.write(
        guides,
        length=denoiser.length,
        temperature=1.0,
        samples=samples,
        batch_size=samples,
        steps=steps,
        seed=0,
    )
    spent = time.process_time() - begin
    return [r.text for r in results], 1e3 * compiled, 1e6 * spent / (samples * denoiser.length)


def masked(
    make: Callable[[], Any], vocabulary: Vocabulary, logits: Tensor, samples: int
) -> tuple[list[str], float, float]:
    """The same for a peer: `make()` gives something with `start`, `mask` and `advance`."""
    rehearsal = multiprocessing.get_context("fork").Process(target=make)
    rehearsal.start()
    rehearsal.join(PATIENCE)
    if rehearsal.is_alive():  # nothing else stops a Rust library
        rehearsal.kill()
        raise ValueError(f"not compiled in {PATIENCE} s")
    begin = time.process_time()
    peer = make()
    compiled = 1e3 * (time.process_time() - begin)
    weights = logits.double().softmax(-1).clamp_min(1e-30).numpy()
    rng, texts, costs = np.random.default_rng(0), [], []
    for _ in range(samples):
        peer.start()
        text: list[int] = []
        for row in weights:
            begin = time.process_time()
            total = np.cumsum(row * peer.mask())
            token = (
                int(np.searchsorted(total, rng.random() * total[-1], side="right"))
                if total[-1]
                else vocabulary.eos_id
            )
            ended = token == vocabulary.eos_id or peer.advance(token)
            costs.append(time.process_time() - begin)
            text += [] if token == vocabulary.eos_id else [token]
            if ended:
                break
        texts.append(vocabulary.decode(text))
    return texts, compiled, 1e6 * statistics.median(costs)


class Outlines:
    """outlines-core: JSON Schema -> regex -> index; its mask of the next token."""

    def __init__(self, schema: Any, vocabulary: Vocabulary) -> None:
        from outlines_core import Index
        from outlines_core import Vocabulary as Table
        from outlines_core.json_schema import build_regex_from_schema

        table: dict[bytes, list[int]] = {}
        for token, raw in enumerate(vocabulary.token_bytes):
            if raw:
                table.setdefault(raw, []).append(token)
        self._index = Index(build_regex_from_schema(json.dumps(schema)), Table(vocabulary.eos_id, table))
        self._size = len(vocabulary)
        self._bits = np.zeros((self._size + 31) // 32, dtype=np.int32)

    def start(self) -> None:
        from outlines_core import Guide

        self._guide = Guide(self._index)

    def mask(self) -> NDArray[np.uint8]:
        self._guide.write_mask_into(self._bits.ctypes.data, self._bits.size, 4)
        return _unpacked(self._bits, self._size)

    def advance(self, token: int) -> bool:
        self._guide.advance(token, return_tokens=False)
        return False


class LLGuidance:
    """llguidance: a parser of its own; its mask of the next token."""

    def __init__(self, schema: Any, vocabulary: Vocabulary, tokenizer: Any) -> None:
        from llguidance import LLMatcher
        from llguidance.numpy import allocate_token_bitmask

        grammar = LLMatcher.grammar_from_json_schema(
            json.dumps(schema), defaults={"whitespace_flexible": False}
        )
        self._first = LLMatcher(tokenizer, grammar)
        if self._first.is_error():
            raise ValueError(self._first.get_error())
        self._bits = allocate_token_bitmask(1, len(vocabulary))
        self._size = len(vocabulary)

    def start(self) -> None:
        self._matcher = self._first.deep_copy()

    def mask(self) -> NDArray[np.uint8]:
        from llguidance.numpy import fill_next_token_bitmask

        fill_next_token_bitmask(self._matcher, self._bits, 0)
        return _unpacked(self._bits[0], self._size)

    def advance(self, token: int) -> bool:
        return not self._matcher.consume_token(token) or self._matcher.is_stopped()


def _unpacked(bits: NDArray[np.int32], size: int) -> NDArray[np.uint8]:
    return np.unpackbits(bits.view(np.uint8), bitorder="little")[:size]


def valid(schema: Any, text: str) -> bool:
    """Whether plain `json` and `jsonschema` take a text."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    try:
        jsonschema.Draft202012Validator(schema, format_checker=checker).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


def _cell(
    schema: Any, write: Callable[[], tuple[list[str], float, float]]
) -> tuple[float, float, float] | str:
    try:
        texts, compiled, cost = write()
    except (ValueError, InvalidGuideError, ImportError) as error:
        return str(error).splitlines()[0][:70]
    return 100 * sum(valid(schema, text) for text in texts) / len(texts), compiled, cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--random", action="store_true", help="normal noise for logits, not the model's")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    model = load()
    vocabulary = model.vocabulary
    logits = model(Canvas.blank(1, asked.length, model.noise.fill), model.prepare("", 1, None))[0]
    if asked.random:
        noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(0)) * 3
        logits = torch.where(logits.isfinite(), noise, logits)
    peers: dict[str, Callable[[Any], Any]] = {"outlines-core": lambda s: Outlines(s, vocabulary)}
    try:
        from llguidance import LLTokenizer

        table = LLTokenizer(
            str(HOME / "tokenizer.json"), n_vocab=len(vocabulary), eos_token=vocabulary.eos_id
        )
        peers["llguidance"] = lambda s: LLGuidance(s, vocabulary, table)
    except ImportError:
        print("llguidance is not installed: left out")
    fixed = Fixed(vocabulary, logits)
    JsonSchema(True)  # what is made once for all schemas
    Steering([], Scene(vocabulary, fixed.device, 1, asked.length, 1))
    print("| schema | writer | valid % | compile ms | µs a token |\n| --- | --- | --- | --- | --- |")
    _, compiled, cost = ours(fixed, None, asked.samples, asked.steps)
    print(f"| (none) | redraft | | {compiled:.0f} | {cost:.0f} |")
    for name, schema in closed(SCHEMAS).items():
        rows = {"redraft": _cell(schema, lambda s=schema: ours(fixed, s, asked.samples, asked.steps))}
        for peer, make in peers.items():
            rows[peer] = _cell(
                schema, lambda s=schema, m=make: masked(lambda: m(s), vocabulary, logits, asked.samples)
            )
        for writer, row in rows.items():
            shown = f"{row} | | " if isinstance(row, str) else f"{row[0]:.0f} | {row[1]:.0f} | {row[2]:.0f}"
            print(f"| {name} | {writer} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
