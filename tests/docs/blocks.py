"""The fenced blocks of README.md and docs/*.md, and how each of them is checked.

The comment before a block says it: `<!-- run: NAME -->` names the block for the test that runs it,
and `<!-- not run: REASON -->` says why none does. Some names are read by a rule:

    run: file NAME       a ScheduledJob that other blocks of the page use under this file name
    run: request NAME    a RunRequest that other blocks of the page use under this file name
    run: output NAME     commands whose output is compared word for word
    run: e2e NAME        a test in tests/e2e, through words.py

Called by the tests of this directory and of tests/e2e, which execute exactly the words that a page
shows. Not guaranteed here: that a test runs a block; test_blocks.py looks for it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
PROGRAMS = Path(sys.executable).parent
_BLOCK = re.compile(
    r"(?:^<!-- (?P<word>.*?) -->\n)?^(?P<fence>```+)(?P<kind>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Command:
    """A line that a reader types, and what the page prints below it."""

    line: str
    output: str


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    kind: str
    word: str
    """`run: NAME` or `not run: REASON`; empty: nobody said."""
    text: str

    @property
    def name(self) -> str:
        """What stands after `run: `, or nothing."""
        return self.word.removeprefix("run: ") if self.word.startswith("run: ") else ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def commands(self) -> list[Command]:
        """Of `console`: the lines behind a `$`, each with its output. Of `sh`: all lines."""
        if self.kind == "sh":
            return [Command(line, "") for line in self.text.splitlines()]
        assert self.kind == "console", f"{self.place} holds no commands"
        found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", self.text, re.MULTILINE)
        return [Command(line, output) for line, output in found]


def read(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("fence")) + 1,
            kind=found["kind"],
            word=found["word"] or "",
            text=found["text"],
        )
        for found in _BLOCK.finditer(text)
    ]


@cache
def every() -> tuple[Block, ...]:
    return tuple(block for page in PAGES for block in read(page))


def block(name: str) -> Block:
    """The one block of this name."""
    (found,) = [block for block in every() if block.name == name]
    return found


def without_blocks(page: Path) -> str:
    """The prose of a page: what looks like a heading or a link in a block is none."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def shell(
    line: str, *, directory: Path = REPOSITORY, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What bash makes of a line, with the program `evenkeel` at hand. Both outputs are one."""
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=directory,
        env={**os.environ, "PATH": path, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
