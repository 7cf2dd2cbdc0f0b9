"""The syncer and requests: which status their rows wait for, and what is told of a schedule's
past."""

from __future__ import annotations

from tests.builders import MONDAY
from tests.ledger.model import Tables
from tests.unit.ledger.scripted import World, syncing

from evenkeel.core import effects
from evenkeel.core.messages import LedgerTold, PastRun, RunsTold
from evenkeel.ledger.outbox import MOST_HELD
from evenkeel.ledger.rows import RunRow
from evenkeel.ledger.store import StoreAway
from evenkeel.ledger.sync import LedgerSync
from evenkeel.model import RunId, RunState, kind_of_request
from evenkeel.reasons import Reason
from evenkeel.resource.record import RecentRun

REQUEST = "uid-of-the-request"
KIND = kind_of_request(REQUEST)
TOLD_BY = effects.ToldBy(REQUEST, "again", "ann")
LATER = 6 * 3600


def wanted(due: int) -> RunId:
    return RunId("a", due, KIND)


def requested_run_began(world: World, due: int, revision: int) -> None:
    world.sync.take(
        effects.RunBegan(
            wanted(due), "shop/a", 1, f"job-{due}", sent_at=due + LATER, revision=revision,
            told_by=TOLD_BY,
        )
    )  # fmt: skip


def requested_run_ended(world: World, due: int, revision: int, state=RunState.SUCCEEDED) -> None:
    world.sync.take(
        effects.RunEnded(
            wanted(due), "shop/a", state, None, 1, f"job-{due}", due, due + 1,
            revision=revision, told_by=TOLD_BY,
        )
    )  # fmt: skip


def request_told(world: World, revision: int) -> None:
    world.sync.take(effects.RequestTold(REQUEST, "a", "shop/a", revision))


def ask(world: World, first: int, end: int, *, within_s: float = 0.1) -> RunsTold:
    async def asking() -> None:
        world.sync.take(effects.AskRuns(REQUEST, "a", "shop/a", first, end))

    world.messages()
    world.loop.run_until_complete(asking())
    world.advance(within_s)
    (told,) = [each for each in world.messages() if isinstance(each, RunsTold)]
    assert told.request == REQUEST
    return told


def due_and_kind(run: PastRun) -> tuple[int, str]:
    return run.due, run.kind


def row(world: World, due: int) -> RunRow | None:
    cold = world.tables.runs.get(wanted(due))
    return cold.row if cold else None


# --- which status the rows wait for ---------------------------------------------------------------


def test_a_row_of_a_requested_run_waits_for_the_status_of_its_request():
    with syncing() as world:
        world.begin("a")
        requested_run_began(world, MONDAY, revision=2)
        world.told("a", 9, MONDAY + 60)
        request_told(world, 1)
        world.advance(10)
        assert row(world, MONDAY) is None
        assert world.mark("a") == MONDAY + 60, "no mark waits for a request"
        request_told(world, 2)
        world.advance(0.1)
        found = row(world, MONDAY)
        assert found is not None
        assert (found.state, found.request, found.requested_by) == (
            RunState.RUNNING, "again", "ann",
        )  # fmt: skip


def test_rows_of_a_deleted_request_wait_for_nothing():
    with syncing() as world:
        world.begin("a")
        requested_run_began(world, MONDAY, revision=2)
        world.sync.take(effects.RequestClosed(REQUEST, "a", "shop/a"))
        world.advance(1)
        found = row(world, MONDAY)
        assert found is not None
        assert found.state is RunState.RUNNING


def test_when_a_request_is_read_again_its_revisions_begin_anew():
    with syncing() as world:
        world.begin("a")
        request_told(world, 8)
        requested_run_began(world, MONDAY, revision=9)
        world.sync.take(effects.RequestKnown(REQUEST, "a", "shop/a", "again", KIND))
        requested_run_ended(world, MONDAY, revision=2)
        request_told(world, 1)
        world.advance(1)
        found = row(world, MONDAY)
        assert found is not None
        assert found.state is RunState.RUNNING
        request_told(world, 2)
        world.advance(1)
        found = row(world, MONDAY)
        assert found is not None
        assert found.state is RunState.SUCCEEDED


def test_rows_of_a_request_are_written_before_the_end_of_its_schedule():
    with syncing() as world:
        world.begin("a")
        requested_run_began(world, MONDAY, revision=2)
        world.sync.take(effects.ScheduleEnded("a", "shop/a", MONDAY + 61, MONDAY + 61))
        world.advance(1)
        found = row(world, MONDAY)
        assert found is not None
        assert (found.state, found.reason) == (RunState.CANCELLED, Reason.SCHEDULE_DELETED)
        assert world.sync.waiting == 0


def test_a_run_for_later_stands_in_the_hot_table_until_it_begins():
    with syncing() as world:
        world.begin("a")
        due = MONDAY + 600
        world.sync.take(
            effects.RunWaits(
                wanted(due), "shop/a", RunState.SCHEDULED, None, 1, None, 1,
                due_at=float(due), told_by=TOLD_BY,
            )
        )  # fmt: skip
        request_told(world, 1)
        world.advance(1)
        assert world.tables.hot[wanted(due)].row.request == "again"
        world.advance(700)  # the store believes that it waits; the scheduler has not begun it yet
        assert world.tables.hot[wanted(due)].row.state is RunState.PENDING
        requested_run_began(world, due, revision=2)
        request_told(world, 2)
        world.advance(1)
        assert wanted(due) not in world.tables.hot
        found = row(world, due)
        assert found is not None
        assert found.state is RunState.RUNNING


def test_a_run_for_later_goes_with_its_request():
    with syncing() as world:
        world.begin("a")
        due = MONDAY + 600
        world.sync.take(
            effects.RunWaits(
                wanted(due), "shop/a", RunState.SCHEDULED, None, 1, None, 1,
                due_at=float(due), told_by=TOLD_BY,
            )
        )  # fmt: skip
        request_told(world, 1)
        world.advance(1)
        world.sync.take(
            effects.RunEnded(
                wanted(due), "shop/a", RunState.CANCELLED, Reason.REQUEST_DELETED, 1, "", None,
                MONDAY + 2, revision=2, told_by=TOLD_BY,
            )
        )  # fmt: skip
        world.sync.take(effects.RequestClosed(REQUEST, "a", "shop/a"))
        world.advance(1)
        assert wanted(due) not in world.tables.hot
        found = row(world, due)
        assert found is not None
        assert found.reason == Reason.REQUEST_DELETED


# --- what the ledger knows of the past ------------------------------------------------------------


def test_without_a_ledger_the_answer_comes_at_once():
    with syncing(start=False) as world:
        world.sync = LedgerSync(
            None, world.inbox, world.clock, settings=world.settings, present=world.present
        )
        told = ask(world, MONDAY, MONDAY + 600, within_s=0)
        assert told == RunsTold(REQUEST, has_ledger=False)


def test_runs_of_each_kind_are_told_those_that_wait_to_be_written_too():
    with syncing() as world:
        world.begin("a")
        world.run_ended("a", MONDAY + 60, revision=1, state=RunState.FAILED)
        world.told("a", 1, MONDAY + 60)
        requested_run_ended(world, MONDAY + 60, revision=1)
        request_told(world, 1)
        world.advance(1)
        world.run_began("a", MONDAY + 120, revision=2)  # no status tells of these yet
        requested_run_began(world, MONDAY + 180, revision=2)
        told = ask(world, MONDAY, MONDAY + 600)
        assert sorted(told.runs, key=due_and_kind) == [
            PastRun(MONDAY + 60, KIND, RunState.SUCCEEDED, had_job=True),
            PastRun(MONDAY + 60, "s", RunState.FAILED, had_job=True),
            PastRun(MONDAY + 120, "s", RunState.RUNNING, had_job=True),
            PastRun(MONDAY + 180, KIND, RunState.RUNNING, had_job=True),
        ]
        assert (told.has_ledger, told.away, told.unknown) == (True, False, ())
        assert told.since == MONDAY


def test_a_run_that_was_never_created_had_no_job():
    with syncing() as world:
        world.begin("a")
        world.sync.take(
            effects.RunEnded(
                RunId("a", MONDAY + 60), "shop/a", RunState.SKIPPED, Reason.OVERLAP, 1, "", None,
                MONDAY + 60, revision=1,
            )
        )  # fmt: skip
        told = ask(world, MONDAY, MONDAY + 600)
        assert told.runs == (PastRun(MONDAY + 60, "s", RunState.SKIPPED, had_job=False),)


def test_a_schedule_that_no_status_tells_of_yet_is_answered_from_what_waits():
    with syncing() as world:
        world.advance(1)
        timing = effects.TimingBegan("a", "shop/a", MONDAY + 100, None, 1)
        world.sync.take(timing)
        told = ask(world, MONDAY, MONDAY + 600)
        assert (told.since, told.runs, told.away) == (MONDAY + 100, (), False)
        world.sync.take(effects.StatusTold("a", "shop/a", 1, MONDAY + 100))
        assert ask(world, MONDAY, MONDAY + 600).since == MONDAY + 100


def test_of_a_schedule_that_nothing_tells_of_nothing_is_known():
    with syncing() as world:
        world.advance(1)
        assert ask(world, MONDAY, MONDAY + 600).since == MONDAY + 599


def test_a_store_that_is_away_answers_later():
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        world.store.hangs = True
        told = ask(world, MONDAY, MONDAY + 600, within_s=6)
        assert (told.away, told.has_ledger) == (True, True)
        world.store.hangs, world.store.fails = False, StoreAway("nobody answers")
        world.run_ended("a", MONDAY + 60, revision=0)
        world.advance(5)
        assert ask(world, MONDAY, MONDAY + 600).away


def test_an_answer_waits_until_the_gap_of_its_schedule_is_filled():
    """What was dropped would look as if it had not run."""
    with syncing() as world:
        world.begin("a")
        world.told("a", 0, MONDAY)
        world.advance(1)
        for minute in range(1, MOST_HELD + 4):
            world.run_ended("a", MONDAY + 60 * minute, revision=1)
        assert ask(world, MONDAY, MONDAY + 600, within_s=6).away
        world.told("a", 1, MONDAY + 60 * (MOST_HELD + 3))
        told = ask(world, MONDAY, MONDAY + 600, within_s=1)
        assert told.unknown == ((MONDAY + 60, MONDAY + 181),)
        dues = sorted(run.due for run in told.runs)
        assert dues == [MONDAY + 60 * each for each in range(4, 10)]


def test_the_states_of_some_runs_are_still_told():
    with syncing() as world:
        world.begin("a")
        requested_run_began(world, MONDAY, revision=1)
        request_told(world, 1)
        world.advance(1)
        world.messages()
        world.ask("a", wanted(MONDAY))
        world.advance(0.1)
        assert world.messages() == [LedgerTold("a", {wanted(MONDAY): RunState.RUNNING}, known=True)]


# --- what an earlier process left -----------------------------------------------------------------


def left_over(*states: RunState) -> Tables:
    """The store of a process that died: requested runs in these states, a minute apart."""
    with syncing() as world:
        world.begin("a")
        for minute, state in enumerate(states):
            due = MONDAY + 60 * minute
            world.sync.take(
                effects.RunWaits(
                    wanted(due), "shop/a", state, None, 1, None, 1,
                    due_at=float(MONDAY + 3_600) if state is RunState.SCHEDULED else None,
                    told_by=TOLD_BY,
                )
                if state is not RunState.RUNNING
                else effects.RunBegan(
                    wanted(due), "shop/a", 1, "job-1", revision=1, told_by=TOLD_BY
                )
            )  # fmt: skip
        world.run_began("a", MONDAY + 60, revision=0)
        request_told(world, 1)
        world.told("a", 1, MONDAY)
        world.advance(1)
        return world.tables


def request_known(world: World, *, alive=(), recent=()) -> None:
    world.sync.take(
        effects.RequestKnown(REQUEST, "a", "shop/a", "again", KIND, tuple(alive), tuple(recent))
    )


def states(world: World) -> list[RunState]:
    runs = sorted(
        (run.due, cold.row.state) for run, cold in world.tables.runs.items() if run.kind == KIND
    )
    return [state for _, state in runs]


def ended(due: int, state: RunState) -> RecentRun:
    return RecentRun(due, state, finished=due + 5, job="job-1")


def test_the_status_of_a_request_ends_the_rows_that_an_earlier_process_left():
    tables = left_over(*[RunState.RUNNING] * 3, RunState.SCHEDULED)
    with syncing(tables) as world:
        world.begin("a")
        world.requests = {KIND}
        request_known(world, alive=[wanted(MONDAY)], recent=[ended(MONDAY + 60, RunState.FAILED)])
        world.advance(2)
        expected = [RunState.RUNNING, RunState.FAILED, RunState.LOST, RunState.SCHEDULED]
        assert states(world) == expected
        found = row(world, MONDAY + 60)
        assert found is not None
        assert (found.finished, found.request) == (MONDAY + 65, "again")
        assert world.sample("evenkeel_ledger_reconciled_runs_total") == 1
        requested_run_ended(world, MONDAY, revision=0)
        world.advance(1)
        assert states(world)[0] is RunState.SUCCEEDED
        assert world.sync.sizes()["requests known"] == 0


def test_rows_of_a_request_that_was_deleted_meanwhile_are_ended():
    tables = left_over(RunState.RUNNING, RunState.RUNNING, RunState.SCHEDULED)
    with syncing(tables) as world:
        world.begin("a")
        world.launched = [(wanted(MONDAY), 1)]  # its Job is followed to its end
        world.advance(5)
        assert states(world) == [RunState.RUNNING, RunState.RUNNING, RunState.SCHEDULED]
        world.requests = {"q0other"}
        world.advance(2)
        assert states(world) == [RunState.RUNNING, RunState.LOST, RunState.CANCELLED]
        found = row(world, MONDAY + 120)
        assert found is not None
        assert found.reason == Reason.REQUEST_DELETED
        assert not world.tables.hot


def test_rows_of_a_request_that_is_not_read_yet_wait():
    with syncing(left_over(RunState.RUNNING)) as world:
        world.begin("a")
        world.requests = {KIND}
        world.advance(10)
        assert states(world) == [RunState.RUNNING]
        request_known(world)
        world.advance(2)
        assert states(world) == [RunState.LOST]


def test_a_run_that_began_since_the_start_is_nobodys_leftover():
    """The request is known from a status that does not tell of the run yet."""
    with syncing(left_over(RunState.SCHEDULED), start=False) as world:
        world.begin("a")
        requested_run_began(world, MONDAY, revision=1)
        request_known(world)
        requested_run_began(world, MONDAY + 60, revision=1)
        world.start()
        world.requests = {KIND}
        world.advance(1)
        request_told(world, 1)
        world.advance(5)
        assert states(world) == [RunState.RUNNING, RunState.RUNNING]


def test_a_run_for_later_that_the_dead_process_promoted_is_not_lost():
    tables = left_over(RunState.SCHEDULED)
    with syncing(tables) as world:  # it promotes the row, and dies before the run began
        world.begin("a")
        world.ready = False
        world.advance(4_000)
        assert world.tables.hot[wanted(MONDAY)].row.state is RunState.PENDING
    with syncing(tables) as world:
        world.begin("a")
        world.requests = {KIND}
        request_known(world)
        world.advance(0.5)
        assert states(world) == [RunState.SCHEDULED]


def test_a_request_whose_runs_are_all_followed_is_kept_no_longer():
    with syncing(left_over(RunState.RUNNING)) as world:
        world.begin("a")
        world.advance(1)
        request_known(world, alive=[wanted(MONDAY)])
        requested_run_ended(world, MONDAY, revision=1)
        assert world.sync.sizes()["requests known"] == 0


def test_rows_of_a_schedule_that_was_deleted_while_nobody_watched_are_not_kept():
    with syncing(left_over(RunState.RUNNING)) as world:
        world.requests = {KIND}
        world.advance(5)
        assert states(world) == [RunState.CANCELLED]
        assert world.sync.sizes()["runs left over"] == 0


def test_an_end_that_died_with_its_process_is_written_by_what_the_status_tells():
    with syncing() as world:
        world.begin("a")
        request_known(world, recent=[ended(MONDAY, RunState.FAILED)])
        world.advance(1)
        found = row(world, MONDAY)
        assert found is not None
        assert (found.state, found.request) == (RunState.FAILED, "again")


def test_an_end_that_a_status_tells_waits_since_it_was_told():
    """The alert on rows that wait long would fire at each start otherwise."""
    with syncing(start=False) as world:
        world.begin("a")
        world.requests = {KIND}
        world.advance(100)
        request_known(world, recent=[ended(MONDAY, RunState.FAILED)])
        assert world.sync.waiting == 1
        assert world.sync.oldest_s == 0
