"""The fenced blocks of README.md and docs/*.md, and how each of them is checked.

The comment before a block says it: `<!-- run: NAME -->` names the test that runs the block, and
`<!-- not run: REASON -->` says why none does. Called by the tests of this directory and of
tests/e2e, which execute exactly the words that a page shows. Not guaranteed: that a test runs a
block that names it; test_blocks.py looks for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<word>.*?) -->\n)?^(?P<fence>```+)(?P<kind>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    kind: str
    word: str
    """`run: NAME` or `not run: REASON`; empty: nobody said."""
    text: str

    @property
    def run_by(self) -> str:
        """The name after `run: `, or an empty one."""
        return self.word.removeprefix("run: ") if self.word.startswith("run: ") else ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


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


def without_blocks(page: Path) -> str:
    """The prose of a page: what looks like a heading or a link in a block is none."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))
