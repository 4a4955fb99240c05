"""Random requests over all hard guides, judged by plain string code; `python tests/fuzz.py --runs 10000 --seed 0`."""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
import traceback
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toys import WORDS, Chaos, small_vocabulary, uniform

from redraft.denoiser import HardGuide, RedraftError, Uncertain
from redraft.denoiser.particles import Particles
from redraft.denoiser.revision import Reconsider, ReMDM
from redraft.denoiser.selection import Confidence, EntropyBound, LeftToRight, Margin, Random
from redraft.denoiser.stopping import Patience
from redraft.guidance import (
    Acrostic,
    Alliteration,
    Bias,
    Characters,
    EndsWith,
    Forbid,
    Infill,
    InSentence,
    Json,
    JsonSchema,
    Keywords,
    Lines,
    Lipogram,
    Near,
    Occurrences,
    OneOf,
    Ordered,
    Paragraphs,
    Pattern,
    Repetition,
    Rhyme,
    Sentences,
    StartsWith,
    Syllables,
    Tidy,
    Tokens,
    Words,
)
from redraft.guidance.pronunciation import line_words, rhyme, syllables

Holds = Callable[[str], bool]
Asked = tuple[HardGuide, Holds]

POLICIES = [
    Random(),
    Confidence(),
    Confidence(1.0),
    Margin(),
    LeftToRight(),
    EntropyBound(0.3),
    EntropyBound(5.0),
]
ODD = ["naïve", "😀", "Mr", "it's", "10%", "very good", "straße", "É", "-", "sea."]
ABBREVIATIONS = {"Mr", "Mrs", "Ms", "Dr", "St", "Prof"}


def is_word(char: str) -> bool:
    return char.isalnum() or char == "_" or re.match(r"\w", char) is not None


def plain(text: str) -> str:
    """Without the accents that it ends with."""
    return re.sub("[\u0300-\u036f]+$", "", text)


def found(word: str, text: str) -> list[int]:
    """Ends of the whole occurrences of a phrase in any case, from the left, none overlapping."""
    ends, at = [], 0
    while at + len(word) <= len(text):
        end = at + len(word)
        same = all(c in (w, w.lower(), w.upper()) for c, w in zip(text[at:end], word, strict=True))
        left = is_word(word[0]) and is_word(plain(text[:at])[-1:])
        right = is_word(plain(word)[-1:]) and bool(re.match(r"\w|[\u0300-\u036f]", text[end:]))
        if same and not left and not right:
            ends.append(end)
            at = end
        else:
            at += 1
    return ends


def whole(word: str, text: str) -> bool:
    return bool(found(word, text))


def in_order(words: list[str], text: str) -> bool:
    at = 0
    for word in words:
        ends = [end for end in found_all(word, text) if end - len(word) >= at]
        if not ends:
            return False
        at = ends[0]
    return True


def found_all(word: str, text: str) -> list[int]:
    """Ends of the whole occurrences, overlaps included."""
    return [
        k + len(word)
        for k in range(len(text))
        if any(end == len(word) + min(k, 1) for end in found(word, text[max(0, k - 1) : k + len(word) + 1]))
    ]


def apart(a: str, b: str, text: str, within: int) -> bool:
    spots = {
        w: [len(text[: e - len(w)].split()) - cut(text, e - len(w)) for e in found_all(w, text)]
        for w in (a, b)
    }
    return any(abs(x - y) <= within for x in spots[a] for y in spots[b])


def cut(text: str, at: int) -> int:
    """1 where a word goes on at this place: it was counted already."""
    return int(at > 0 and not text[at - 1].isspace())


def sentences(text: str) -> list[str]:
    """Complete sentences, and behind them what is left (stripped; empty where nothing is)."""
    done, begun, at = [], 0, 0
    while at < len(text):
        if text[at] not in ".!?":
            at += 1
            continue
        end = at
        while end < len(text) and text[end] in ".!?":
            end += 1
        close = end
        while close < len(text) and text[close] in "\"')]":
            close += 1
        said = text[begun:at]
        last = re.findall(r"\w*\Z", said)[0]
        alone = text[at:end] == "." and last in ABBREVIATIONS
        says = any(c.isalnum() or c == "_" or ord(c) > 127 for c in said)
        if (close == len(text) or text[close] in " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f") and says and not alone:
            done.append(text[begun:close])
            begun = at = close
        else:
            at = end
    return [*done, text[begun:].strip()]


def complete(text: str, least: int, most: int) -> bool:
    *done, rest = sentences(text)
    return not rest and least <= len(done) <= most and done != [] and text == "".join(done)


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def paragraphs(text: str) -> int:
    blank = [not line.strip() for line in text.splitlines()]
    return sum(not now and before for now, before in zip(blank, [True, *blank], strict=False))


def first_letters(units: list[str]) -> str:
    return "".join(next((c for c in unit if c.isalnum()), "") for unit in units).lower()


def bare(text: str) -> str:
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())


def sung(line: str) -> int:
    """Syllables of a line; -1 where it has a word that nobody can pronounce."""
    counts = [syllables(word) for _, word in line_words(line)]
    return sum(count[0] for count in counts) if all(counts) else -1


def rhymes(scheme: str, text: str) -> bool:
    last = [line_words(line)[-1][1] for line in lines_of(text) if line_words(line)]
    pairs = [(i, j) for j in range(len(scheme)) for i in range(j) if scheme[i] == scheme[j]]
    return len(lines_of(text)) == len(last) == len(scheme) and all(rhyme(last[i], last[j]) for i, j in pairs)


def valid(text: str, fits: Callable[[Any], bool]) -> bool:
    try:
        return fits(json.loads(text))
    except json.JSONDecodeError:
        return False


def whole_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


MARKS, OPENING, CLOSING, DASHES, QUOTES = ",;:.!?…", "([“‘", ")]”", "-–—", "'’"


def tidy(text: str) -> bool:
    """`Tidy`, each character by what stands around it; an ellipsis is one mark."""
    text = text.replace("...", "…")
    begun, ended = text.lstrip("\"'’([“‘")[:1], text.rstrip("\"'’”)]")[-1:]
    if not begun or not ended or text != text.strip() or re.search(" \n|\n |  |\n\n\n", text):
        return False
    if begun not in "0123456789" and unicodedata.category(begun) not in ("Lu", "Lt"):
        return False
    if any(c not in " \n" and (c.isspace() or unicodedata.category(c) == "Cc") for c in text):
        return False
    return ended in ".!?…" and all(stands_well(text, at) for at in range(len(text)))


def stands_well(text: str, at: int) -> bool:
    """Whether a character may stand where it does, by `Tidy`; outside the text there is space."""
    char, before, after = text[at], text[at - 1] if at else " ", (text[at + 1 :] or " ")[0]
    opens = before.isspace() or before in OPENING
    behind = after.isspace() or after in MARKS + DASHES  # what may follow a word, but for closing marks
    if char.isspace():
        return after not in MARKS + CLOSING
    if char in MARKS:
        return mark_ends_well(text, at)
    if char == '"' and opens:
        return not (after.isspace() or after in MARKS + CLOSING + '"')
    if char == '"':
        return (behind or after in CLOSING + QUOTES) or (before in DASHES and after != '"')
    if char in QUOTES:
        quoted = before == '"' and (at < 2 or text[at - 2].isspace() or text[at - 2] in OPENING)
        loose = (opens or quoted) and (after.isspace() or after in MARKS + CLOSING + '"')
        return not loose and after not in QUOTES
    if char in OPENING:
        hugged = not after.isspace() and after not in MARKS + CLOSING
        return hugged and (opens or before in DASHES + QUOTES + '"')
    if char in CLOSING:
        return behind or after in CLOSING + QUOTES + '"'
    return not (char in DASHES and after in DASHES)


def mark_ends_well(text: str, at: int) -> bool:
    """Whether space follows a mark and the closing marks behind it, no other mark does, and then no small letter."""
    char, rest = text[at], text[at + 1 :]
    closed = rest.lstrip("\"'’”)]")
    closers, after = len(rest) - len(closed), (closed or " ")[0]
    if not closers and char in ",:." and at and text[at - 1] in "0123456789" and after in "0123456789":
        return True
    if after in MARKS:
        return closers > 0 and char in ".!?…" and after in ",;:"
    said = closed.lstrip().lstrip("\"'’([“‘")
    small = char in ".!?" and after.isspace() and unicodedata.category(said[:1] or " ") == "Ll"
    return (after.isspace() or after in DASHES) and not small


def of_words(pick: random.Random) -> list[Asked]:
    """Guides about words and phrases."""
    pool = [*pick.sample(WORDS, 4), *(pick.sample(ODD, 1) if pick.random() < 0.25 else [])]
    pick.shuffle(pool)
    x, y, z = pool[:3]
    a, b = sorted(pick.sample(range(1, 9), 2))
    counted = next(word for word in pool if word.isascii() and word.isalpha())
    said = counted if counted != "Mr" else "sea"
    other = "dog" if said != "dog" else "cat"
    return [
        (
            Keywords(x, y, anchor=pick.choice(["early", "free"])),
            lambda t: whole(x, t) and whole(y, t),
        ),
        (Keywords(x, y, z, at_least=2), lambda t: sum(whole(w, t) for w in (x, y, z)) >= 2),
        (Keywords((x, y), z), lambda t: (whole(x, t) or whole(y, t)) and whole(z, t)),
        (
            Keywords(f"{said} {other}", whole=False),
            lambda t: re.search(f"(?i){said} {other}", t) is not None,
        ),
        (Forbid(x, y, z, "e"), lambda t: not any(whole(w, t) for w in (x, y, z, "e"))),
        (Forbid(said, whole=False), lambda t: said not in t.lower()),
        (Forbid(regexes=["[xyz0-9]", "t.e"]), lambda t: not re.search("[xyz0-9]|t.e", t)),
        (Ordered(x, y, z), lambda t: in_order([x, y, z], t)),
        (Near(said, other, within=a), lambda t: apart(said, other, t, a)),
        (Occurrences(x, 1, 2), lambda t: 1 <= len(found(x, t)) <= 2),
        (Occurrences(x, 0, 1), lambda t: len(found(x, t)) <= 1),
        (Occurrences(said, a), lambda t: len(found(said, t)) >= a),
        (InSentence(said, "first"), lambda t: whole(said, sentences(t)[0])),
        (
            InSentence(said, "last"),
            lambda t: any(
                whole(said, s)
                for s in [s for s in sentences(t) if any(map(is_word, s)) or not s.isascii()][-1:]
            ),
        ),
        (Words(a, b), lambda t: a <= len(t.split()) <= b),
        (StartsWith("The ", "é"), lambda t: t.startswith(("The ", "é"))),
        (EndsWith("dog.", "sea", "😀"), lambda t: t.endswith(("dog.", "sea", "😀"))),
        (EndsWith(said, ignore_case=True), lambda t: t.lower().endswith(said)),
    ]


def of_form(pick: random.Random) -> list[Asked]:
    """Guides about the form of the whole."""
    a, b = sorted(pick.sample(range(1, 7), 2))
    c, letter = a + pick.randrange(3), pick.choice("aehdst")
    words = pick.sample(WORDS, 3)
    blank = pick.choice(["___", f"[[{a}-{b}]]"])
    inner = r"\S(?:[\s\S]*\S)?" if blank == "___" else rf"\S+(?:\s+\S+){{{a - 1},{b - 1}}}"
    form = rf"The {words[0]} {inner} by {words[1]}\."
    scheme = pick.choice(["AA", "AA", "ABA", "A-A"])
    every = pick.choice([0.5, 1.0])
    first = lambda t: [w for w in t.split() if first_letters([w])]  # noqa: E731
    return [
        (
            Infill(f"The {words[0]} {blank} by {words[1]}."),
            lambda t: re.fullmatch(form, t) is not None,
        ),
        (Sentences(a, c), lambda t: complete(t, a, c)),
        (Sentences(2), lambda t: complete(t, 2, 10**6)),
        (Pattern(r"[A-Z][^\n]*[a-z.]"), lambda t: re.fullmatch(r"[A-Z][^\n]*[a-z.]", t) is not None),
        (Pattern("(dog|sea)s?$", contains=True), lambda t: re.search(r"(dog|sea)s?\Z", t) is not None),
        (Acrostic("sad"), lambda t: first_letters(lines_of(t)) == "sad"),
        (Acrostic("the", by="words"), lambda t: first_letters(t.split()) == "the"),
        (
            Acrostic("sh", by="sentences"),
            lambda t: first_letters(sentences(t)[:-1]) == "sh" and complete(t, 2, 2),
        ),
        (Lipogram(letter), lambda t: letter not in bare(t)),
        (
            Alliteration(letter, at_least=a),
            lambda t: sum(first_letters([w]) == letter for w in t.split()) >= a,
        ),
        (
            Alliteration(letter, at_least=every),
            lambda t: sum(first_letters([w]) == letter for w in t.split()) >= every * len(first(t)) > 0,
        ),
        (Lines(a, b), lambda t: a <= len(lines_of(t)) <= b),
        (Paragraphs(1, 2), lambda t: 1 <= paragraphs(t) <= 2),
        (Characters(8 * a, 8 * b), lambda t: 8 * a <= len(t) <= 8 * b),
        (Syllables((a, b)), lambda t: [sung(line) for line in lines_of(t)] == [a, b]),
        (Rhyme(scheme), lambda t: rhymes(scheme, t)),
        (Tidy(), tidy),
    ]


def of_choice(pick: random.Random) -> list[Asked]:
    """JSON and bounded choices."""
    a, b = sorted(pick.sample(range(1, 30), 2))
    layout = pick.choice(["compact", "spaced", "pretty", "free"])
    texts = [" ".join(pick.sample(WORDS, pick.choice([1, 2, 4]))) for _ in range(pick.choice([1, 5, 300]))]
    texts += pick.sample(["", "é😀", "ß", "a\r\nb", "\0", "Dog"], 2)
    folded = {text.casefold() for text in texts}
    number = {"type": "integer", "minimum": a, "maximum": b}
    ship = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 5},
            "age": number,
            "pets": {"type": "array", "items": {"enum": ["dog", "cat"]}, "minItems": 1, "maxItems": 2},
        },
        "required": ["name", "pets"],
        "additionalProperties": False,
    }

    def is_number(v: Any) -> bool:
        return whole_number(v) and a <= v <= b

    def is_ship(v: Any) -> bool:
        return (
            isinstance(v, dict)
            and {"name", "pets"} <= set(v) <= {"name", "pets", "age"}
            and isinstance(v["name"], str)
            and 1 <= len(v["name"]) <= 5
            and is_number(v.get("age", a))
            and isinstance(v["pets"], list)
            and 1 <= len(v["pets"]) <= 2
            and all(pet in ("dog", "cat") for pet in v["pets"])
        )

    half = {"type": "number", "exclusiveMinimum": -a, "maximum": 0.5, "not": {"const": 0}}
    return [
        (OneOf(texts), lambda t: t in texts),
        (OneOf(texts, ignore_case=True), lambda t: t.casefold() in folded),
        (Json(2, whitespace=layout), lambda t: valid(t, lambda v: depth(v) <= 2)),
        (JsonSchema(number), lambda t: valid(t, is_number)),
        (JsonSchema(ship, whitespace=layout), lambda t: valid(t, is_ship)),
        (
            JsonSchema(half),
            lambda t: valid(t, lambda v: type(v) in (int, float) and -a < v <= 0.5 and v != 0),
        ),
        (
            JsonSchema({"type": ["string", "null"], "pattern": "^[a-c]é?", "maxLength": 4}),
            lambda t: valid(t, lambda v: v is None or (re.match("[a-c]é?", v) is not None and len(v) <= 4)),
        ),
    ]


def random_guide(pick: random.Random, deep: int = 2) -> Asked:
    """A hard guide and a plain function of the text that says whether it holds."""
    roll = pick.random()
    if deep and roll < 0.25:
        (one, holds), (two, other) = random_guide(pick, deep - 1), random_guide(pick, deep - 1)
        if roll < 0.08:
            return one & two, lambda t: holds(t) and other(t)
        if roll < 0.17:
            return one | two, lambda t: holds(t) or other(t)
        return ~one, lambda t: not holds(t)
    table = of_choice if roll < 0.32 else of_form if roll < 0.65 else of_words
    return pick.choice(table(pick))


@dataclass(frozen=True)
class Run:
    """One request: how many texts were checked (0: refused), how long it took and what it asked for."""

    number: int
    texts: int
    seconds: float
    asked: str


def one_run(number: int) -> Run:
    """One random request; raises AssertionError where a text is not what was asked for."""
    begun = time.perf_counter()
    pick = random.Random(number)
    eos, even = pick.random() < 0.7, pick.random() < 0.3
    vocabulary = small_vocabulary(eos=eos, whole_first=pick.random() < 0.5)
    denoiser = Chaos(
        vocabulary,
        sharpness=pick.choice([0.5, 3.0, 30.0]),
        seed=number,
        length=pick.choice([12, 24, 40]),
        noise=uniform(vocabulary) if even else None,
        block=pick.choice([None] * 9 + [8]),
    )
    hard = [random_guide(pick) for _ in range(pick.choice([1, 1, 2, 2, 3]))]
    guides: list[Any] = [guide for guide, _ in hard]
    soft = [Repetition(3.0), 2.0 * Bias({"dog": 2.0, "very good": -1.0})]
    guides += pick.sample(soft, pick.choice([0, 0, 1, 2]))
    if pick.random() < 0.2:
        low = pick.randrange(0, 10)
        guides.append(Tokens(low, low + 30) if eos else Tokens(0, 96))
    revisions = [None, Uncertain(0.4, 0.0, 1.0), ReMDM(rate=0.2), *([Reconsider()] if even else [])]
    samples = pick.choice([1, 1, 2, 3, 5, 16])
    options: dict[str, Any] = {
        "steps": pick.choice([1, 2, 5, 9]),
        "selection": pick.choice(POLICIES),
        "temperature": pick.choice([0.0, 0.2, 1.0, 1.5]),
        "top_p": pick.choice([None, None, 0.8]),
        "top_k": pick.choice([None, None, 5]),
        "min_p": pick.choice([None, None, 0.1]),
        "revision": pick.choice(revisions),
        "stop": pick.choice([None, None, Patience(0, 5.0)]),
        "block_length": pick.choice([None, None, None, 4]),
        "particles": pick.choice([None] * 9 + [Particles(2)]),
        "length": pick.choice([None] * 7 + [1, 7, 60]),
    }
    asked = f"{[str(guide) for guide in guides]} {samples} x { {k: v for k, v in options.items() if v is not None} }"

    def run(texts: int) -> Run:
        return Run(number, texts, time.perf_counter() - begun, asked)

    try:
        results = denoiser.write(guides, samples=samples, seed=number, **options)
    except RedraftError:
        assert denoiser.calls == 0, asked  # a request that cannot be met costs no forward pass
        return run(0)
    for result in results:
        for guide, holds in hard:
            assert holds(result.text), (number, str(guide), result.text)
        broken = [v for v in result.verdicts if v.strength == "guaranteed" and v.status != "satisfied"]
        assert not broken, (number, broken, result.text)
        assert result.text == vocabulary.decode(result.tokens)
        assert "\ufffd" not in result.text
    if samples > 1 and pick.random() < 0.1:
        k = pick.randrange(samples)
        alone = denoiser.write([*guides, 0.0 * Bias({"sea": 3.0})], seed=number + k, **options)
        assert alone[0].text == results[k].text, (number, k, alone[0].text, results[k].text)
    return run(len(results))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first request")
    parser.add_argument("--slow", type=float, default=10.0, help="seconds from which a request is reported")
    given = parser.parse_args()
    runs: list[Run] = []
    wrong, begun = 0, time.perf_counter()
    for number in range(given.seed, given.seed + given.runs):
        try:
            runs.append(one_run(number))
        except Exception:  # the report of a long run names every fault and goes on
            wrong += 1
            print(f"request {number} failed\n{traceback.format_exc()}", flush=True)
            continue
        if runs[-1].seconds >= given.slow:
            print(f"slow: {runs[-1].seconds:.1f} s: {number} {runs[-1].asked}", flush=True)
        if (number + 1 - given.seed) % 100 == 0:
            print(_counts(runs, wrong, time.perf_counter() - begun), flush=True)
    print(_counts(runs, wrong, time.perf_counter() - begun))
    for run in sorted(runs, key=lambda run: -run.seconds)[:10]:
        print(f"{run.seconds:6.1f} s  {run.number}: {run.asked}")
    return int(wrong > 0)


def _counts(runs: list[Run], wrong: int, seconds: float) -> str:
    texts, refused = sum(run.texts for run in runs), sum(run.texts == 0 for run in runs)
    return f"{len(runs) + wrong} requests, {refused} refused, {texts} texts, {wrong} wrong, {seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main())
