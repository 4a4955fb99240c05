"""Verdicts as JUnit XML, which continuous integration shows."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import TYPE_CHECKING

from redraft.recipes.excerpt import excerpts, opening

if TYPE_CHECKING:
    from redraft.recipes.checking import Judged

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # no characters of XML 1.0


def junit(judged: Sequence[Judged], name: str) -> bytes:
    """One test suite called `name`, one test case a text, with a failure where a hard guide does not hold."""
    failures = sum(not one.holds for one in judged)
    suite = ET.Element(
        "testsuite", name=_legal(name), tests=str(len(judged)), failures=str(failures), errors="0"
    )
    for one in judged:
        title = f"{one.text.file}:{one.text.line}: {opening(one.text.text, width=60)}"
        case = ET.SubElement(suite, "testcase", classname=_legal(name), name=_legal(title), time="0")
        broken = [v for v in one.verdicts if v.strength == "guaranteed" and v.status != "satisfied"]
        if broken:
            message = "; ".join(f"{v.guide}{f': {v.note}' if v.note else ''}" for v in broken)
            failure = ET.SubElement(case, "failure", message=_legal(message), type=broken[0].status)
            lines = [line for v in broken for line in (v.guide, *excerpts(one.text.text, v.spans))]
            failure.text = _legal("\n".join(lines))
        if said := [f"{v.status} ({v.strength}) {v.guide} {v.note}".rstrip() for v in one.verdicts]:
            ET.SubElement(case, "system-out").text = _legal("\n".join(said))
    suites = ET.Element("testsuites", tests=suite.get("tests", ""), failures=str(failures), errors="0")
    suites.append(suite)
    ET.indent(suites)
    whole: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return whole + b"\n"


def _legal(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
