"""Compares what a command says with what a page prints, where the two differ in times.

A pattern made of the page's words matches any instant in the place of an instant, any age in the
place of an age in a column, the kind of any request in the place of one, any number of spaces
between columns, and any lines in the place of a line `...`. All other words must be the page's.
"""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"""
    (?P<instant>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)
  | (?P<kind>(?<=-)q0[a-z2-7]{6}(?=-))                       # in the name of a Job
  | (?P<job>(?<=[a-z2-7]-)\d{8,10}\b)                        # the stamp in the name of a Job
  | (?P<age>(?:^|(?<=[ ]{2}))\d+[smhd](?:\d+[smh])?(?:[ ]\(x\d+[ ]over[ ]\w+\))?(?=[ ]{2}|$))
  | (?P<count>(?<=":)\d+(?=[,}]))                            # a number in JSON
  | (?P<choice>(?<=start[ ]of[ ])\d+(?=[ ]minutes))            # a full one, or one less
  | (?P<space>[ ]{2,})
    """,
    re.VERBOSE | re.MULTILINE,
)
_PATTERNS = {
    "instant": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
    "job": r"\d{8,10}",
    "kind": "q0[a-z2-7]{6}",
    "age": r"\d+[smhd](?:\d+[smh])?(?: \(x\d+ over \w+\))?",
    "count": r"\d+",
    "choice": r"\d+",
    "space": r"\s+",
}


def pattern(printed: str) -> re.Pattern[str]:
    lines = []
    for line in printed.splitlines():
        if line == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        made, at = "", 0
        for found in _PARTS.finditer(line):
            made += re.escape(line[at : found.start()]) + _PATTERNS[found.lastgroup or ""]
            at = found.end()
        lines.append(made + re.escape(line[at:].rstrip()) + r"[ ]*\n")
    return re.compile("".join(lines))


def same(printed: str, said: str) -> bool:
    return pattern(printed).fullmatch(said.rstrip() + "\n" if said.strip() else "") is not None
