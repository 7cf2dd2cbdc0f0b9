"""The oracles themselves: what is planted is found, and what is forgiven too often is not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.sim import forgiven
from tests.sim.network import Storm
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import play
from tests.sim.scenario import TWENTY, right, world
from tests.sim.world import Deed, create, delete, every, patch, template

from evenkeel.app import Operator
from evenkeel.kube.events import Events
from evenkeel.kube.status_sync import StatusSync

STORY = world(create(1, "a", TWENTY), create(1, "b", TWENTY), delete(10, "b"))


def nothing(*_: object) -> None:
    return None


def test_without_a_plant_nothing_is_wrong() -> None:
    right(play(STORY))


def test_what_a_deleted_schedule_leaves_in_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatusSync, "forget", nothing)

    found = violations(play(STORY))

    assert "left over at the end: 2 status sync: times of writes, at most 1 expected" in found


def test_events_that_are_never_sent_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Events, "_next", lambda self: (None, 3600.0))

    (found,) = violations(play(world(create(1, "a", TWENTY))))

    assert "events: Events that wait, at most 0 expected" in found


def test_a_job_that_came_late_and_stays_is_found() -> None:
    """Of a run that was replaced: forgiven only where it is deleted."""
    spec = every(20, concurrencyPolicy="Replace")
    outcome = right(play(world(create(1, "a", spec))))
    play_ = outcome.processes[0].play
    play_.weather = Storm(Random(1), until_s=0.0, calls={"late": 0.1}, watches={}, events={})
    first = outcome.jobs_of("a")[0]
    first.deleted_at = first.at + 1
    late = replace(first, at=first.at + 3, deleted_at=first.at + 9)

    outcome.all_jobs["late"] = late
    assert not any("not one Job each" in wrong for wrong in violations(outcome))
    late.deleted_at = None
    assert any("not one Job each" in wrong for wrong in violations(outcome))


def test_a_number_that_no_oracle_knows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Operator.sizes
    monkeypatch.setattr(Operator, "sizes", lambda self: real(self) | {"attic: boxes": 3})

    (found,) = violations(play(STORY))

    assert "3 attic: boxes" in found


def test_a_status_that_is_not_what_the_operator_says_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(StatusSync, "dirty", nothing)

    found = violations(play(world(create(1, "a", {**TWENTY, "endTime": "2027-01-01T00:00:50Z"}))))

    assert "default/a: the status speaks of an older generation" in found


def test_a_create_that_no_status_announced_is_found() -> None:
    spec = every(20, jobTemplate=template(ttlSecondsAfterFinished=10))
    outcome = play(world(create(1, "a", spec)))
    assert violations(outcome) == []

    (uid,) = outcome.statuses
    as_if_later = [(at + 15, status) for at, status in outcome.statuses[uid]]
    outcome.statuses[uid] = as_if_later

    assert any("no status told of it" in wrong for wrong in violations(outcome))


def test_an_exception_used_too_often_in_one_play_is_a_violation() -> None:
    outcome = right(play(world(create(1, "a", TWENTY))))
    limit = forgiven.LIMITS["catching_up"].a_play

    outcome.forgiven["catching_up"] = limit
    assert list(forgiven.too_often_in_a_play(outcome)) == []
    outcome.forgiven["catching_up"] += 1
    assert len(list(forgiven.too_often_in_a_play(outcome))) == 1


def test_an_exception_used_in_too_many_plays_is_a_violation() -> None:
    limit = forgiven.LIMITS["catching_up"].plays(1_000)

    assert forgiven.too_often_in_a_batch({"catching_up": limit}, 1_000) == []
    assert len(forgiven.too_often_in_a_batch({"catching_up": limit + 1}, 1_000)) == 1


def test_only_what_would_be_wrong_otherwise_is_forgiven() -> None:
    """A clock that is set and does no harm is no use of the exception."""
    story = world(
        create(1, "a", every(40)), Deed(20, "set clock", value=0.0), tags=frozenset({"wall"})
    )

    outcome: Outcome = right(play(story))

    assert +outcome.forgiven == {}


@pytest.mark.parametrize("name", forgiven.LIMITS)
def test_each_exception_says_why_it_is_right(name: str) -> None:
    assert len(getattr(forgiven, name).__doc__ or "") > 40


def test_an_edit_in_the_second_of_a_due_time_needs_no_exception() -> None:
    story = world(create(1, "a", TWENTY), patch(40, "a", interval={"every": "30s"}))

    assert +right(play(story)).forgiven == {}
