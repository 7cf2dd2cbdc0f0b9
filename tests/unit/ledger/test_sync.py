"""The syncer: what the ledger has after each fault, on virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import MONDAY
from tests.ledger.model import Tables
from tests.unit.ledger.scripted import EVERY_MINUTE, Scripted, syncing

from evenkeel.core import effects
from evenkeel.core.messages import LedgerTold, PhasesRead
from evenkeel.ledger.audit import audit
from evenkeel.ledger.rows import Folded
from evenkeel.ledger.store import BadStore, StoreAway
from evenkeel.ledger.sync import LedgerState
from evenkeel.model import RunId, RunState
from evenkeel.reasons import Reason
from evenkeel.resource.record import Placed, RecentRun

AWAY = StoreAway("nobody answers")


@pytest.fixture(autouse=True)
def all_lines(caplog):
    caplog.set_level("INFO", logger="evenkeel")


def audited(world):
    """Whether all that was due up to the mark is accounted for."""
    store = world.store
    return world.loop.run_until_complete(audit(store, MONDAY - 86_400, MONDAY + 10 * 86_400))


# --- held until the status tells ------------------------------------------------------------------


def test_a_row_is_written_soon_after_the_status_that_tells_of_it_is_stored():
    with syncing() as world:
        world.begin("a")
        world.run_began("a", MONDAY + 60, revision=3)
        world.advance(20)
        assert world.rows() == {}
        world.told("a", 2, MONDAY)
        world.advance(1)
        assert world.rows() == {}
        world.told("a", 3, MONDAY + 60)
        world.advance(0.1)
        assert world.rows() == {("a", MONDAY + 60): RunState.RUNNING}
        assert world.mark("a") == MONDAY + 60


def test_a_row_that_no_status_tells_of_waits_however_long_that_takes():
    """After a crash the next process would know nothing of it, and give another verdict."""
    with syncing() as world:
        world.begin("a")
        world.run_began("a", MONDAY + 60, revision=3)
        world.advance(3_600)
        assert world.rows() == {}
        world.told("a", 3, MONDAY + 60)
        world.advance(1)
        assert world.rows() == {("a", MONDAY + 60): RunState.RUNNING}


def test_rows_of_a_deleted_schedule_are_written_before_its_end():
    with syncing() as world:
        world.begin("a")
        world.run_began("a", MONDAY + 60, revision=3)
        world.sync.take(effects.ScheduleEnded("a", "shop/a", MONDAY + 61, MONDAY + 61))
        world.advance(1)
        assert world.row("a", MONDAY + 60).state is RunState.CANCELLED
        assert world.tables.schedules["a"].ended_at == MONDAY + 61
        assert world.sync.waiting == 0


def test_what_comes_within_50_ms_is_one_batch_and_500_rows_do_not_wait():
    with syncing() as world:
        world.begin("a")
        world.told("a", 1, MONDAY)
        world.advance(2)
        world.store.batches.clear()
        for second in range(3):
            world.run_ended("a", MONDAY + second, revision=1)
            world.advance(0.01)
        world.advance(0.1)
        assert [len(batch.writes) for batch in world.store.batches] == [3]
        world.store.batches.clear()
        for second in range(700):
            world.run_ended("a", MONDAY + 1000 + second, revision=1)
        world.advance(0.001)
        assert [len(batch.writes) for batch in world.store.batches] == [500]
        world.advance(0.06)
        assert [len(batch.writes) for batch in world.store.batches] == [500, 200]


# --- a store that is away -------------------------------------------------------------------------


def test_nothing_is_lost_while_the_store_is_away_and_it_is_tried_again_ever_later(caplog):
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        world.store.fails = AWAY
        calls = []
        for minute in range(1, 11):
            world.run_ended("a", MONDAY + 60 * minute, revision=minute)
            world.told("a", minute, MONDAY + 60 * minute)
            before = world.store.calls
            world.advance(60)
            calls.append(world.store.calls - before)
        assert world.sync.state is LedgerState.AWAY
        assert world.sample("evenkeel_ledger_errors_total", kind="away") == sum(calls)
        assert calls[0] <= 7
        assert set(calls[2:]) == {2}
        assert world.sync.oldest_s > 590
        world.store.fails = None
        world.advance(31)
        assert world.sync.state is LedgerState.WRITING
        assert set(world.rows()) == {("a", MONDAY + 60 * minute) for minute in range(1, 11)}
        assert audited(world).balanced
        assert world.unrecorded("a") == 0
    lines = [record.getMessage() for record in caplog.records]
    assert lines.count("ledger away") == lines.count("ledger back") == 1
    assert 8 <= lines.count("ledger still away") <= 10


def test_a_store_that_cannot_be_reached_at_the_start_is_opened_later():
    with syncing(start=False) as world:
        world.opening = AWAY
        world.start()
        world.begin("a")
        world.run_ended("a", MONDAY + 60, revision=1)
        world.told("a", 1, MONDAY + 60)
        world.advance(60)
        assert world.sync.state is LedgerState.AWAY
        world.opening = None
        world.advance(31)
        assert world.rows() == {("a", MONDAY + 60): RunState.SUCCEEDED}


def test_a_wrong_setting_ends_the_process_at_the_start_and_never_later():
    with syncing(start=False) as world:
        world.opening = BadStore("store.url: no such schema")
        world.start()
        with pytest.raises(BadStore, match="no such schema"):
            world.advance(1)
        world.task = None
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        world.store.fails = BadStore("the password was changed")
        world.run_ended("a", MONDAY + 60, revision=0)
        world.advance(120)
        assert world.sync.state is LedgerState.AWAY
        world.store.fails = None
        world.advance(31)
        assert ("a", MONDAY + 60) in world.rows()


def test_a_defect_of_the_store_is_tried_again_and_its_text_is_not_logged(caplog):
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        world.store.fails = ValueError("postgresql://me:secret@db")
        world.run_ended("a", MONDAY + 60, revision=0)
        world.advance(10)
        world.store.fails = None
        world.advance(31)
        assert ("a", MONDAY + 60) in world.rows()
        assert world.sample("evenkeel_ledger_errors_total", kind="defect") > 0
    assert "secret" not in str([record.__dict__ for record in caplog.records])


def test_a_batch_whose_answer_was_lost_is_written_again_as_it_was():
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        world.store.batches.clear()
        world.store.loses_answers = 1
        world.run_ended("a", MONDAY + 60, revision=0)
        world.advance(0.1)
        world.run_ended("a", MONDAY + 120, revision=0)
        world.advance(3)
        first, again, *_ = world.store.batches
        assert again.writes == first.writes
        assert set(world.rows()) == {("a", MONDAY + 60), ("a", MONDAY + 120)}
        assert world.sample("evenkeel_ledger_refused_rows_total", reason="illegal") == 0


def test_taking_an_effect_never_waits_for_a_store_that_never_answers():
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        world.store.hangs = True
        for minute in range(100):
            world.run_ended("a", MONDAY + 60 * minute, revision=0)
            world.advance(1)
        assert world.sync.waiting >= 99
        assert world.sync.oldest_s > 90


def test_an_operator_that_lost_its_term_takes_a_newer_one_and_says_so(caplog):
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        world.tables.term += 5
        world.run_ended("a", MONDAY + 60, revision=0)
        world.advance(3)
        assert world.rows() == {("a", MONDAY + 60): RunState.SUCCEEDED}
        assert world.tables.term == 7
        for minute in range(2, 12):
            world.tables.term += 1
            world.run_ended("a", MONDAY + 60 * minute, revision=0)
            world.advance(3)
        assert len(world.rows()) == 11
        assert world.sample("evenkeel_ledger_errors_total", kind="older_term") == 11
    assert caplog.text.count("another operator writes to this ledger") == 1


# --- the bound ------------------------------------------------------------------------------------


def test_what_the_buffer_has_no_room_for_ends_up_as_unrecorded_and_never_as_a_hole():
    with syncing(store_buffer=1000) as world:
        world.begin("a")
        world.begin("b")
        world.advance(1)
        world.store.fails = AWAY
        for minute in range(1, 1201):
            at = MONDAY + 60 * minute
            world.run_ended("a", at, revision=minute)
            world.told("a", minute, at)
        world.run_ended("b", MONDAY + 60, revision=1)
        world.told("b", 1, MONDAY + 60)
        assert world.sync.sizes()["rows that wait"] == 1000
        world.advance(10)
        world.store.fails = None
        world.advance(60)
        assert world.sync.waiting == 0
        assert world.mark("a") == MONDAY + 60 * 1200
        assert len([uid for uid, _ in world.rows() if uid == "a"]) == 999
        assert world.unrecorded("a") == 201
        assert world.unrecorded("b") == 0
        assert audited(world).balanced
        assert world.sample("evenkeel_ledger_dropped_rows_total") == 201
        assert world.sample("evenkeel_ledger_unrecorded_runs_total") == 201


def test_what_the_status_still_tells_of_dropped_rows_is_filled_in():
    with syncing(store_buffer=1000) as world:
        world.begin("a")
        world.advance(1)
        world.store.fails = AWAY
        for minute in range(1, 1004):
            at = MONDAY + 60 * minute
            world.run_ended("a", at, revision=minute)
            world.told("a", minute, at)
        recent = tuple(
            RecentRun(MONDAY + 60 * minute, RunState.FAILED, attempt=2) for minute in (2, 3)
        )
        world.known["a"] = replace(world.known["a"], recent=recent)
        world.store.fails = None
        world.advance(20)
        assert world.unrecorded("a") == 1
        assert world.rows()["a", MONDAY + 120] is RunState.FAILED
        assert audited(world).balanced


# --- a store that was lost ------------------------------------------------------------------------


def test_a_store_that_was_begun_anew_is_filled_from_the_statuses(caplog):
    with syncing() as world:
        world.begin("a")
        for minute in range(1, 4):
            world.run_ended("a", MONDAY + 60 * minute, revision=minute)
            world.told("a", minute, MONDAY + 60 * minute)
        world.advance(2)
        recent = (RecentRun(MONDAY + 180, RunState.SUCCEEDED),)
        world.known["a"] = replace(world.known["a"], recent=recent)
        world.tables = world.store.tables = Tables(born="another")
        world.advance(62)  # it looks once a minute
        assert world.rows() == {("a", MONDAY + 180): RunState.SUCCEEDED}
        world.run_ended("a", MONDAY + 240, revision=4)
        world.told("a", 4, MONDAY + 240)
        world.advance(2)
        assert world.mark("a") == MONDAY + 240
        assert audited(world).balanced
    assert "ledger lost" in caplog.text


def test_an_older_copy_of_the_store_is_filled_as_a_lost_one():
    with syncing() as world:
        world.begin("a")
        world.run_ended("a", MONDAY + 60, revision=1)
        world.told("a", 1, MONDAY + 60)
        world.advance(30)
        older = Tables(born=world.tables.born)
        world.tables = world.store.tables = older
        world.store.fails = AWAY
        world.run_ended("a", MONDAY + 120, revision=2)
        world.told("a", 2, MONDAY + 120)
        world.advance(5)
        world.store.fails = None
        world.advance(31)
        assert world.mark("a") == MONDAY + 120
        assert audited(world).balanced


def test_a_clock_that_is_set_back_makes_no_older_copy_of_the_store(caplog):
    with syncing() as world:
        world.begin("a")
        world.run_ended("a", MONDAY + 60, revision=0)
        world.advance(2)
        world.clock.set_by_s = -3600
        world.store.loses_answers = 1
        world.run_ended("a", MONDAY + 120, revision=0)
        world.advance(5)
        assert len(world.rows()) == 2
    assert "ledger lost" not in caplog.text


# --- the start ------------------------------------------------------------------------------------


def test_at_the_start_what_a_kill_left_out_is_filled_in():
    """The earlier process stored its status, and was killed before it wrote the ledger."""
    with syncing() as world:
        world.begin("a")
        world.run_ended("a", MONDAY + 60, revision=1)
        world.told("a", 1, MONDAY + 60)
        world.advance(2)
        tables = world.tables
    with syncing(tables) as world:
        recent = tuple(RecentRun(MONDAY + 60 * n, RunState.SUCCEEDED) for n in (2, 1))
        world.begin("a", mark=MONDAY + 180, recent=recent)
        world.advance(2)
        assert set(world.rows()) == {("a", MONDAY + 60), ("a", MONDAY + 120)}
        assert world.unrecorded("a") == 1
        assert world.mark("a") == MONDAY + 180
        assert audited(world).balanced
        assert tables.term == 2


def test_phases_of_the_last_day_are_read_at_the_start():
    placed = Placed(MONDAY, 600, MONDAY, reason="least load")
    tables = Tables()
    with syncing(tables) as world:
        for name, hours in (("new", 1), ("old", 30)):
            at = MONDAY - 3600 * hours
            world.sync.take(effects.ScheduleEnded(name, f"shop/{name}", at, at, placed))
        world.advance(1)
    with syncing(tables) as world:
        world.advance(1)
        assert world.messages() == [PhasesRead((("shop/new", placed, MONDAY - 3600),))]


def test_schedules_that_were_deleted_while_nobody_watched_are_ended_once_all_are_known():
    with syncing() as world:
        world.begin("a")
        world.begin("b")
        world.run_began("a", MONDAY + 60, revision=0)
        world.advance(1)
        tables = world.tables
    with syncing(tables) as world:
        world.ready = False
        world.begin("b")
        world.advance(10)
        assert tables.schedules["a"].ended_at is None
        world.ready = True
        world.advance(2)
        assert tables.schedules["a"].ended_at is not None
        assert tables.schedules["b"].ended_at is None
        assert world.row("a", MONDAY + 60).state is RunState.CANCELLED


def test_an_operator_of_some_namespaces_ends_no_schedule_elsewhere():
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        tables = world.tables
    with syncing(tables, namespaces=("bank",)) as world:
        world.advance(5)
        assert tables.schedules["a"].ended_at is None


# --- deferred runs --------------------------------------------------------------------------------


def test_a_deferred_run_is_promoted_when_it_is_due_and_counted(caplog):
    with syncing() as world:
        world.begin("a", alive=(RunId("a", MONDAY),))
        world.run_waits("a", MONDAY, revision=0, due_at=MONDAY + 30)
        world.advance(29)
        assert next(iter(world.tables.hot.values())).row.state is RunState.RETRYING
        world.advance(3)
        assert next(iter(world.tables.hot.values())).row.state is RunState.PENDING
        assert world.sample("evenkeel_ledger_promoted_runs_total") == 1
    assert "deferred runs promoted" in caplog.text


def test_deferred_runs_of_an_earlier_process_are_promoted_and_ended_where_they_are_over():
    with syncing() as world:
        world.begin("a")
        world.run_waits("a", MONDAY, revision=0, due_at=MONDAY + 30)
        world.advance(1)
        tables = world.tables
    with syncing(tables) as world:
        world.begin("a", recent=(RecentRun(MONDAY, RunState.FAILED, attempt=2),))
        world.advance(40)
        assert tables.hot == {}
        assert world.row("a", MONDAY).state is RunState.FAILED


# --- questions ------------------------------------------------------------------------------------


def told(world):
    (answer,) = [each for each in world.messages() if isinstance(each, LedgerTold)]
    return answer


def test_the_scheduler_is_told_what_the_ledger_knows_of_runs():
    with syncing() as world:
        world.begin("a")
        world.run_ended("a", MONDAY + 60, revision=0)
        world.advance(1)
        asked = (RunId("a", MONDAY + 60), RunId("a", MONDAY + 120))
        world.ask("a", *asked)
        world.advance(0.5)
        assert told(world) == LedgerTold("a", {asked[0]: RunState.SUCCEEDED})


def test_a_question_before_the_store_is_open_is_answered_once_it_is():
    with syncing(start=False) as world:
        world.ask("a", RunId("a", MONDAY))
        world.start()
        world.advance(0.5)
        assert told(world) == LedgerTold("a", {})


def hanging(world):
    world.store.hangs = True


def failing(world):
    world.store.fails = AWAY


@pytest.mark.parametrize("trouble", [hanging, failing])
def test_without_an_answer_of_the_store_the_scheduler_is_told_so_within_two_seconds(trouble):
    with syncing() as world:
        world.advance(1)
        trouble(world)
        world.ask("a", RunId("a", MONDAY))
        world.advance(2.01)
        assert told(world) == LedgerTold("a", {}, known=False)


# --- the end --------------------------------------------------------------------------------------


def test_at_the_end_all_that_may_be_written_is_written_and_the_store_closed():
    with syncing() as world:
        world.begin("a")
        world.advance(2)
        for minute in range(1, 2001):
            world.run_ended("a", MONDAY + 60 * minute, revision=minute)
            world.told("a", minute, MONDAY + 60 * minute)
        world.run_ended("a", MONDAY, revision=5000)  # no stored status tells of it
        left = world.loop.run_until_complete(world.sync.flush(within_s=5))
        assert left == 1
        assert len(world.rows()) == 2000
        assert world.tables.minutes
    assert world.store.closed


@pytest.mark.parametrize(("trouble", "most_s"), [(hanging, 5.01), (failing, 0.1)])
def test_the_end_waits_five_seconds_at_most_and_no_longer_than_it_can_help(trouble, most_s):
    with syncing() as world:
        world.begin("a")
        world.advance(2)
        trouble(world)
        world.run_ended("a", MONDAY, revision=0)
        began = world.loop.time()
        assert world.loop.run_until_complete(world.sync.flush(within_s=5)) == 1
        assert world.loop.time() - began < most_s


# --- statistics -----------------------------------------------------------------------------------


def test_every_minute_has_its_statistics():
    with syncing() as world:
        world.begin("a")
        world.run_began("a", MONDAY, revision=0, sent_after_s=0.02)
        world.run_ended("a", MONDAY, revision=0)
        world.advance(70)
        world.run_ended("a", MONDAY + 60, revision=0, state=RunState.FAILED)
        world.advance(60)
        first, second = world.tables.minutes[MONDAY], world.tables.minutes[MONDAY + 60]
        assert (first.ended, second.ended) == ({"succeeded": 1}, {"failed": 1})
        assert first.lateness == (0, 1, *[0] * 12)
        assert sum(second.lateness) == 0


def test_old_rows_are_folded_by_the_settings():
    with syncing(store_retention_runs=3) as world:
        world.begin("a")
        for minute in range(1, 11):
            world.run_ended("a", MONDAY + 60 * minute, revision=minute)
            world.told("a", minute, MONDAY + 60 * minute)
        world.advance(59)
        assert len(world.rows()) == 10
        world.advance(3)
        assert sorted(due for _, due in world.rows()) == [MONDAY + 60 * n for n in (8, 9, 10)]


def test_a_store_that_has_more_to_fold_and_folds_nothing_is_asked_again_later(monkeypatch):
    calls = []

    async def retain(self, now, retention):
        calls.append(now)
        return Folded(more=True)

    monkeypatch.setattr(Scripted, "retain", retain)
    with syncing() as world:
        world.advance(700)
        assert len(calls) == 2


def test_of_an_outage_of_days_the_last_day_of_minutes_is_kept():
    with syncing() as world:
        world.advance(1)
        world.store.hangs = True
        world.run_ended("a", MONDAY, revision=0)
        world.begin("a")
        for _ in range(1500):
            world.advance(60)
            world.sync.take(
                effects.SpanEnded(
                    "a", "shop/a", MONDAY, MONDAY, 1, RunState.MISSED, Reason.PAST, revision=10**9
                )
            )
        assert world.sync.sizes()["minutes"] == 1440


# --- defects --------------------------------------------------------------------------------------


def test_an_effect_of_which_no_row_can_be_made_stops_nothing(caplog):
    with syncing() as world:
        world.begin("a")
        world.advance(1)
        broken = replace(EVERY_MINUTE, zone="\ud800")
        world.sync.take(effects.TimingBegan("a", "shop/a", MONDAY, broken, 1))
        world.run_ended("a", MONDAY + 60, revision=1)
        world.told("a", 1, MONDAY + 60)
        world.advance(2)
        assert world.rows() == {("a", MONDAY + 60): RunState.SUCCEEDED}
        assert world.sample("evenkeel_ledger_errors_total", kind="defect") == 1
    assert "ledger row not made" in caplog.text


def test_a_schedule_whose_gap_cannot_be_filled_holds_up_no_other(caplog):
    with syncing() as world:
        world.begin("a")
        world.begin("b")
        broken = replace(EVERY_MINUTE, zone="\ud800")
        world.sync.take(replace(world.known["a"], timing=broken))
        for uid in "ab":
            world.run_ended(uid, MONDAY + 60, revision=1)
            world.told(uid, 1, MONDAY + 60)
        world.advance(2)
        assert set(world.rows()) == {("a", MONDAY + 60), ("b", MONDAY + 60)}
        assert (world.mark("a"), world.mark("b")) == (0, MONDAY + 60)
        assert world.sync.state is LedgerState.WRITING
    assert "ledger gap not filled" in caplog.text


# --- nothing is left behind ----------------------------------------------------------------------


def test_a_closed_gap_leaves_nothing_behind():
    with syncing() as world:
        world.begin("a")
        world.run_ended("a", MONDAY + 60, revision=1)
        world.told("a", 1, MONDAY + 60)
        world.advance(70)
        world.sync.take(effects.ScheduleEnded("a", "shop/a", MONDAY + 70, MONDAY + 70))
        world.known.clear()
        world.advance(70)
        assert {what: size for what, size in world.sync.sizes().items() if size} == {}
