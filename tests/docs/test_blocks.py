"""Every block of the documentation is run by a test, or says why not."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import REPOSITORY, every

BY_RULE = ("file ", "request ", "output ")
"""Blocks that test_commands.py finds by the first word of their names."""


def test_every_block_says_how_it_is_checked() -> None:
    silent = [
        block.place
        for block in every()
        if not block.name and not block.word.removeprefix("not run: ").strip()
    ]
    assert silent == []
    assert [b.place for b in every() if not b.word.startswith(("run: ", "not run: "))] == []


def test_no_two_blocks_have_the_same_name() -> None:
    names = Counter(block.name for block in every() if block.name)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_named_block_is_run_by_a_test_and_every_test_finds_its_block() -> None:
    named = {block.name for block in every() if block.name and not block.name.startswith(BY_RULE)}
    called = {name for name in names_called(REPOSITORY / "tests") if not name.startswith(BY_RULE)}
    assert called == named


def names_called(directory: Path) -> Iterator[str]:
    """NAME of each `block("NAME")`, and `e2e NAME` of each `said("NAME")` of words.py."""
    for path in directory.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "tests.docs." in text else ():
            match node:
                case ast.Call(func=ast.Name(id="block"), args=[ast.Constant(value=str(name)), *_]):
                    yield name
                case ast.Call(func=ast.Name(id="said"), args=[ast.Constant(value=str(name)), *_]):
                    yield f"e2e {name}"
