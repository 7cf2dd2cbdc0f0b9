"""The tables of the documentation list the words that the operator uses, each of them and no other.

People filter and alert by these words: one that no table explains cannot be looked up.
"""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from evenkeel.model import RunState
from evenkeel.reasons import ConditionReason, ConditionType, EventReason, Reason

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")

TABLES: dict[str, type[StrEnum]] = {
    "Run states": RunState,
    "Reasons": Reason,
    "Conditions": ConditionType,
    "Events": EventReason,
}


def words_of_table(heading: str) -> list[str]:
    """The first column of the table below a heading."""
    found = re.search(rf"^### {heading}\n(.*?)^##", README, re.MULTILINE | re.DOTALL)
    assert found, f"no table {heading}"
    return re.findall(r"^\| `([^`]+)` \|", found[1], re.MULTILINE)


@pytest.mark.parametrize(("heading", "words"), TABLES.items(), ids=TABLES)
def test_the_table_lists_every_word_once(heading: str, words: type[StrEnum]) -> None:
    assert sorted(words_of_table(heading)) == sorted(word.value for word in words)


@pytest.mark.parametrize("words", [Reason, ConditionReason, EventReason, ConditionType])
def test_every_word_is_used_somewhere(words: type[StrEnum]) -> None:
    root = Path(__file__).parents[2] / "operator" / "evenkeel"
    code = "".join(
        path.read_text(encoding="utf-8") for path in root.rglob("*.py") if path.name != "reasons.py"
    )
    names = {words.__name__, *({"Why"} if words is ConditionReason else ())}
    unused = [
        word.name
        for word in words
        if not any(re.search(rf"\b{name}\.{word.name}\b", code) for name in names)
    ]
    assert unused == []
