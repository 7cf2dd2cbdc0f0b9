"""The tables of the documentation list the words that the operator uses, each of them and no other.

People filter and alert by these words: one that no table explains cannot be looked up.
"""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from evenkeel.model import RunState
from evenkeel.reasons import ConditionReason, ConditionType, EventReason, Reason
from evenkeel.settings import Settings

PAGES = Path(__file__).parents[2] / "docs"

TABLES: dict[tuple[str, str], type[StrEnum]] = {
    ("runs.md", "Run states"): RunState,
    ("runs.md", "Reasons"): Reason,
    ("status.md", "Conditions"): ConditionType,
    ("status.md", "Events"): EventReason,
}


def table(page: str, heading: str) -> str:
    """What stands between a heading and the next one, or the page's end."""
    text = (PAGES / page).read_text(encoding="utf-8")
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no table {heading} in {page}"
    return found[1]


def words_of_table(page: str, heading: str) -> list[str]:
    """The first column of the table below a heading."""
    return re.findall(r"^\| `([^`]+)` \|", table(page, heading), re.MULTILINE)


@pytest.mark.parametrize(("place", "words"), TABLES.items(), ids=[heading for _, heading in TABLES])
def test_the_table_lists_every_word_once(place: tuple[str, str], words: type[StrEnum]) -> None:
    assert sorted(words_of_table(*place)) == sorted(word.value for word in words)


def shown(default: object) -> str:
    """As the file of settings has it; empty: all."""
    return str(default).lower() if isinstance(default, bool) else str(default or "all")


def test_the_table_lists_every_setting_with_its_default() -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \|", table("settings.md", "Settings"), re.MULTILINE)
    fields = Settings.model_fields.items()
    defaults = [(field.alias or name, shown(field.default)) for name, field in fields]
    assert sorted(rows) == sorted(defaults)


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
