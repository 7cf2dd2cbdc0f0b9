"""The ledger through crashes, and through everything that a store may do: in the end every due time
is recorded once. That it is, the oracles of `accounts` find at the end of every play."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.ledger.model import Tables
from tests.sim import modes
from tests.sim.accounts import at_once, ends_of
from tests.sim.controllers import Fate
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.scenario import TWENTY, counts, right, world
from tests.sim.store import StoreTrouble
from tests.sim.world import create, delete, every, patch
from tests.sim.worlds import WORLDS

from evenkeel.ledger.audit import audit
from evenkeel.ledger.outbox import Outbox
from evenkeel.ledger.rows import UNRECORDED, RunRow
from evenkeel.model import RunState

NAMES = [story.name for story in WORLDS]
SHORT = {
    "Forbid skips every other due time",
    "a failed run is tried again",
    "timing, template and suspension are edited",
    "a schedule is deleted, and another made of the same name",
}
"""Worlds whose every crash point is tried in `make test`; `make test-all` tries those of all."""

STORY = world(
    create(1, "a", TWENTY),
    create(2, "b", every(15, concurrencyPolicy="Forbid", retry={"limit": 1, "delaySeconds": 2})),
    patch(70, "a", suspend=True),
    patch(95, "a", suspend=False),
    delete(150, "b"),
    lasts_s=215,
    settings={"prune_s": 20},
)


def in_the_ledger(outcome: Outcome, name: str = "a") -> dict[str, int]:
    """How often each end is counted of a schedule of this name that exists."""
    uid = outcome.schedule(name)["metadata"]["uid"]
    return dict(ends_of(outcome.vault.tables, uid))


def unrecorded(outcome: Outcome) -> int:
    found = at_once(audit(outcome.vault.read(), 0, int(outcome.now)))
    return found.found.unrecorded


# --- crashes --------------------------------------------------------------------------------------


def _crashed_at_every_call(number: int) -> dict[str, list[str]]:
    wrong: dict[str, list[str]] = {}
    forgiven: Counter[str] = Counter()
    for point in modes.store_crash_points(number):
        found, uses = modes.crash_at(number, point)
        forgiven += uses
        if found:
            wrong[f"call {point.call} {'after' if point.after else 'before'}"] = found
    assert not forgiven
    return wrong


@pytest.mark.parametrize("name", sorted(SHORT))
def test_wherever_it_crashes_between_two_calls_of_the_store_nothing_is_lost(name: str) -> None:
    assert _crashed_at_every_call(NAMES.index(name)) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*NAMES} - SHORT))
def test_and_in_every_other_world(name: str) -> None:
    assert _crashed_at_every_call(NAMES.index(name)) == {}


# --- the store ------------------------------------------------------------------------------------

FAULTS = {
    "it is away for a minute": StoreTrouble(away=[(30, 90)]),
    "it is away at the start": StoreTrouble(away=[(0, 60)]),
    "it does not answer in time": StoreTrouble(hangs=[(30, 90)]),
    "it is slow": StoreTrouble(slow=[(0, 150)]),
    "half of its answers are lost": StoreTrouble(loses_answers=0.5, until_s=150),
    "it is begun anew": StoreTrouble(begun_anew=[80]),
    "it is away, and another one comes back": StoreTrouble(away=[(40, 80)], begun_anew=[60]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_the_store_does_costs_no_row_and_delays_no_run(name: str) -> None:
    calm = right(play(STORY))
    outcome = right(play(STORY, store=FAULTS[name]))

    assert unrecorded(outcome) == 0
    assert [job.at for job in outcome.jobs_of("a")] == [job.at for job in calm.jobs_of("a")]


@pytest.mark.parametrize("kill_s", [35.0, 62.0, 89.5, 120.0])
@pytest.mark.parametrize("name", FAULTS)
def test_nor_where_the_operator_is_killed_besides(name: str, kill_s: float) -> None:
    """The status tells of the last ten runs: all that waited here."""
    outcome = right(play(STORY, Trouble(kills=((kill_s, 2.0),)), store=FAULTS[name]))
    assert unrecorded(outcome) == 0


def test_what_a_status_tells_no_more_is_unrecorded_and_never_more_than_waited() -> None:
    story = world(create(1, "a", every(10)), lasts_s=330)
    trouble = Trouble(kills=((255.0, 1.0),))
    outcome = right(play(story, trouble, store=StoreTrouble(away=[(20, 250), (250, 258)])))

    recorded = in_the_ledger(outcome)
    assert recorded[UNRECORDED] == 14  # due from 20 to 250 were 24, of which the status told 10
    assert recorded["succeeded"] + recorded[UNRECORDED] == counts(outcome)["succeeded"]


def test_a_ledger_that_was_lost_is_rebuilt_from_the_statuses_and_goes_on() -> None:
    story = world(create(1, "a", TWENTY), lasts_s=215)
    outcome = right(play(story, store=StoreTrouble(begun_anew=[90])))
    recorded = in_the_ledger(outcome)
    assert recorded == {"succeeded": counts(outcome)["succeeded"]}


def test_a_retry_has_all_its_attempts_across_a_restart_and_the_loss_of_the_store() -> None:
    spec = every(60, retry={"limit": 3, "delaySeconds": 8, "factor": 1})
    story = world(create(1, "a", spec), lasts_s=115, fate=lambda job: Fate(0.5, 2, succeeds=False))
    trouble = Trouble(kills=((72.0, 1.0),))
    outcome = right(play(story, trouble, store=StoreTrouble(begun_anew=[71.0])))

    (row,) = [cold.row for cold in outcome.vault.tables.runs.values()]
    assert (row.state, row.attempt) == (RunState.FAILED, 4)
    assert [attempt.number for attempt in row.attempts] == [1, 2, 3, 4]
    assert [attempt.job for attempt in row.attempts] == [job.name for job in outcome.jobs_of("a")]


def test_a_buffer_that_overflows_loses_no_due_time() -> None:
    """What was dropped is found in the statuses, or is counted as unrecorded."""
    story = world(create(1, "a", every(10)), create(1, "b", every(10)), lasts_s=330)
    real = Outbox.__init__

    def small(self: Outbox, *, limit: int, **more: object) -> None:
        real(self, limit=12, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Outbox, "__init__", small)
        outcome = play(story, store=StoreTrouble(away=[(20, 250)]))

    lost = unrecorded(outcome)
    assert 0 < lost < 50
    expected = f"ledger: {lost} unrecorded, and no more than 0 waited to be written"
    assert violations(outcome) == [expected]  # nobody was killed: it was the buffer


# --- the oracles themselves -----------------------------------------------------------------------


def a_run(tables: Tables) -> RunRow:
    return next(iter(tables.runs.values())).row


def test_a_row_that_is_not_there_is_found() -> None:
    outcome = right(play(world(create(1, "a", TWENTY))))
    outcome.vault.tables.runs.pop(a_run(outcome.vault.tables).run)

    found = violations(outcome)
    assert "ledger: default/a: 1 missing: due 20" in found
    assert "ledger: default/a due 20: no row, and its status says succeeded" in found
    assert any("succeeded and 0 unrecorded, and its status counts" in wrong for wrong in found)


def test_a_row_with_another_end_than_the_status_tells_is_found() -> None:
    outcome = right(play(world(create(1, "a", TWENTY))))
    cold = next(iter(outcome.vault.tables.runs.values()))
    object.__setattr__(cold.row, "state", RunState.LOST)

    found = violations(outcome)
    assert "ledger: default/a due 20: lost, and its status says succeeded" in found
    assert any("1 lost and 0 unrecorded" in wrong for wrong in found)


def test_a_syncer_that_writes_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outbox, "tell", lambda *args, **more: None)
    found = violations(play(world(create(1, "a", TWENTY))))
    assert any("left over at the end" in wrong and "ledger" in wrong for wrong in found)
