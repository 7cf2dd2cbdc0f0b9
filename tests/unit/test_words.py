"""The tables of the documentation list the words that the operator uses, each of them and no other.

People filter and alert by these words: one that no table explains cannot be looked up.
"""

import asyncio
import re
from enum import StrEnum
from pathlib import Path

import pytest
from tests.sim.virtual import SimulatedClock, VirtualLoop
from tests.unit.test_operator import Silent

import evenkeel.process
from evenkeel.app import Operator
from evenkeel.model import RunState
from evenkeel.reasons import (
    ConditionReason,
    ConditionType,
    DelayCause,
    EventReason,
    Reason,
    RequestCondition,
    RequestReason,
)
from evenkeel.settings import Settings
from evenkeel.web.schedule_text import FAMILIES

PAGES = Path(__file__).parents[2] / "docs"

TABLES: dict[tuple[str, str], type[StrEnum]] = {
    ("runs.md", "Run states"): RunState,
    ("runs.md", "Reasons"): Reason,
    ("status.md", "Conditions"): ConditionType,
    ("status.md", "Events"): EventReason,
    ("metrics.md", "Causes of delay"): DelayCause,
    ("requests.md", "Conditions of a request"): RequestCondition,
    ("requests.md", "Reasons of a request"): RequestReason,
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


IN_WORDS = {
    "namespaces": "all",
    "data": "~/.local/state/evenkeel",
    "store.url": "evenkeel.db",
    "store.maxSize": "1Gi",
}
"""Defaults that are empty, or shown with a unit."""


def shown(name: str, default: object) -> str:
    """As the file of settings has it."""
    if name in IN_WORDS:
        assert default in ((), "", 2**30)
        return IN_WORDS[name]
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_the_table_lists_every_setting_with_its_default() -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.+?) \|", table("settings.md", "Settings"), re.MULTILINE)
    fields = Settings.model_fields.items()
    names = [(field.alias or name, field.default) for name, field in fields]
    defaults = [(name, shown(name, default)) for name, default in names]
    assert sorted(rows) == sorted(defaults)


def test_the_table_lists_every_metric_with_its_labels() -> None:
    async def shown(loop: VirtualLoop) -> set[str]:
        registry = Operator(Silent(), SimulatedClock(loop, base=0), Settings()).metrics.registry
        found = set()
        for family in registry.collect():
            labels = {name for sample in family.samples for name in sample.labels} - {"le"}
            suffix = "_total" if family.type == "counter" else ""
            found.add(f"{family.name}{suffix}" + (f"{{{','.join(sorted(labels))}}}" * bool(labels)))
        return found

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        registered = runner.run(shown(runner.get_loop()))  # type: ignore[arg-type]
    # `process` adds what only a real API server tells.
    process = Path(evenkeel.process.__file__).read_text(encoding="utf-8")
    registered |= set(re.findall(r'"(evenkeel_\w+)"', process))
    assert sorted(series_of_table("metrics.md", "Metrics")) == sorted(registered)


def test_the_table_lists_every_metric_by_schedule() -> None:
    told = [name.partition("{")[0] for name in series_of_table("metrics.md", "Metrics by schedule")]
    assert sorted(told) == sorted(FAMILIES)


def series_of_table(page: str, heading: str) -> list[str]:
    """All that the first column of the table names, several to a row."""
    rows = re.findall(r"^\| ((?:`[a-z_{},]+`(?:, )?)+) \|", table(page, heading), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize(
    "words",
    [Reason, ConditionReason, EventReason, ConditionType, RequestCondition, RequestReason],
)
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
