"""Fetch the real text that is mixed in with the passages: `python tools/real_text.py FOLDER`.

chat-real.txt: chitchat-dataset (MIT), a message a line.
novel-austen.txt: r-cran-janeaustenr (public-domain text).
A source that gives trouble is skipped with a line that says so.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path


def chat(folder: Path) -> list[str]:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    subprocess.run([*pip, "chitchat-dataset==0.9.0"], check=True, timeout=300)
    wheel = next(folder.glob("chitchat_dataset-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        data = json.loads(archive.read("chitchat_dataset/dataset.json"))
    return [text for text in map(_clean, _messages(data)) if _chatty(text)]


def novels(folder: Path) -> list[str]:
    subprocess.run(["apt-get", "download", "-qq", "r-cran-janeaustenr"], cwd=folder, check=True, timeout=300)
    package = next(folder.glob("r-cran-janeaustenr_*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "austen")], check=True, timeout=60)
    records = next(folder.glob("austen/**/data/Rdata.rdb")).read_bytes()
    paragraphs = "\n".join(_r_strings(records)).split("\n\n")
    return [
        p
        for p in (_clean(p.replace("_", "")) for p in paragraphs)
        if 8 <= len(p.split()) <= 80 and p.isascii()
    ]


def _r_strings(records: bytes) -> Iterator[str]:
    """Strings of an R lazy-load file: records are length and zlib data, strings are flags, length, bytes."""
    at = 0
    while (start := records.find(b"\x78", at)) >= 0:
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(records[start:])
        except zlib.error:
            at = start + 1
            continue
        at = len(records) - len(stream.unused_data) if stream.eof else start + 1
        for found in re.finditer(rb"\x00\x04\x00\x09(?P<length>\x00\x00..)", data, re.DOTALL):
            length = int.from_bytes(found["length"], "big")
            yield data[found.end() : found.end() + length].decode("utf-8", "replace")


def _messages(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("text"), str):
            yield node["text"]
        for value in node.values():
            yield from _messages(value)
    elif isinstance(node, list):
        for value in node:
            yield from _messages(value)


def _clean(text: str) -> str:
    for fancy, plain in {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2026": "..."}.items():
        text = text.replace(fancy, plain)
    return " ".join(text.split())


def _chatty(text: str) -> bool:
    return bool(
        5 <= len(text.split()) <= 50
        and text.isascii()
        and text[0].isupper()
        and text[-1] in ".!?"
        and not re.search(r"https?:|www\.|[<>{}@#|\\]|(.)\1{4}", text)
    )


SOURCES: dict[str, Callable[[Path], list[str]]] = {"chat-real": chat, "novel-austen": novels}


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, source in SOURCES.items():
        with tempfile.TemporaryDirectory() as scratch:
            try:
                texts = list(dict.fromkeys(source(Path(scratch))))
            except Exception as error:
                print(f"{name}: skipped, {type(error).__name__}: {error}", file=sys.stderr)
                continue
        (target / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        print(f"{name}: {len(texts)} texts, {sum(len(t.split()) for t in texts)} words")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
