"""`kubectl describe` and `kubectl get -o yaml` show no empty field of a status."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.builders import cron, edited, every, once, rejection
from tests.unit.core.world import World

from evenkeel.core.messages import TemplateChecked
from evenkeel.reasons import ConditionReason

SCHEDULE = cron("*/5 * * * *")


def running() -> World:
    return World().see(SCHEDULE).run_until("10:06")


def succeeded() -> World:
    world = running()
    world.succeed(SCHEDULE, "10:05")
    return world


def failed() -> World:
    world = running()
    world.fail(SCHEDULE, "10:05")
    return world


def proven() -> World:
    world = World().see(SCHEDULE)
    accepted = TemplateChecked(
        SCHEDULE.uid, SCHEDULE.template_hash, True, ConditionReason.ACCEPTED, ""
    )
    return world.tell(accepted)


STATES = {
    "new": lambda: World().see(SCHEDULE),
    "placed": lambda: World().see(every(3600)),
    "proven": proven,
    "running": running,
    "succeeded": succeeded,
    "failed": failed,
    "rejected": lambda: World().see(rejection(SCHEDULE)),
    "rejected after runs": lambda: succeeded().see(rejection(SCHEDULE)),
    "suspended": lambda: World().see(cron("*/5 * * * *", suspend=True)),
    "suspended after runs": lambda: succeeded().see(edited(SCHEDULE, suspend=True)),
    "ended": lambda: World().see(once("10:05")).run_until("10:06"),
    "past": lambda: World().see(once("09:00")).run_until("10:06"),
}


def empty(found: Any, path: str = "status") -> Iterator[str]:
    """The paths of what shows nothing."""
    if found in (None, "", [], {}):
        yield path
    elif isinstance(found, dict):
        for name, value in found.items():
            yield from empty(value, f"{path}.{name}")
    elif isinstance(found, list):
        for number, value in enumerate(found):
            yield from empty(value, f"{path}[{number}]")


@pytest.mark.parametrize("state", STATES)
def test_a_status_has_no_empty_field(state):
    assert list(empty(STATES[state]().status())) == []


def test_an_empty_field_would_be_found():
    assert list(empty({"a": "", "b": [{"c": None}], "d": 0})) == ["status.a", "status.b[0].c"]
