"""A ledger to read: two schedules whose due times all have a row, in a store of its own.

    url = await filled(f"sqlite://{tmp_path}/evenkeel.db")

`shop/sweep` is due every ten minutes, `bank/close` at each full hour. Called by the tests of the
commands that read a store.
"""

from __future__ import annotations

import orjson

from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Batch, MarkRow, Range, RunRow, SpanRow, TimingRow, Write
from evenkeel.model import Attempt, Instant, Interval, RunId, RunState, Timing
from evenkeel.resource.timing import timing_fields

BEGAN = 1_767_225_600  # 2026-01-01T00:00:00Z
HOUR_S = 3600
TEN_MINUTES_S = 600
MARK = BEGAN + 6 * HOUR_S
SWEEP, CLOSE = ("uid-sweep", "shop/sweep"), ("uid-close", "bank/close")


async def filled(url: str, *, without: int = 0) -> str:
    """A store in which six hours are recorded, but for so many runs of `bank/close`."""
    store = await open_store(url)
    try:
        writes = [*sweeps(), *closes()[without:], *schedules()]
        written = await store.write(Batch(MARK, tuple(writes)), term=await store.take_term())
        assert written.accepted == len(writes), written
    finally:
        await store.close()
    return url


def schedules() -> list[Write]:
    return [
        *(_timing(SWEEP, TEN_MINUTES_S), _timing(CLOSE, HOUR_S)),
        *(MarkRow(*SWEEP, MARK), MarkRow(*CLOSE, MARK)),
    ]


def sweeps() -> list[Write]:
    """Two hours of runs, an hour missed as a whole, and again runs."""
    missed = range(BEGAN + 2 * HOUR_S, BEGAN + 3 * HOUR_S)
    dues = range(BEGAN + TEN_MINUTES_S, MARK + 1, TEN_MINUTES_S)
    span = SpanRow(*SWEEP, missed.start, missed.stop, {RunState.MISSED: 6}, "not_in_time")
    return [*(_run(SWEEP, due) for due in dues if due not in missed), span]


def closes() -> list[Write]:
    """One of them failed at its second attempt, one was skipped, and the schedule is suspended."""
    dues = range(BEGAN + HOUR_S, MARK + 1, HOUR_S)
    first, second, *others = (_run(CLOSE, due) for due in dues)
    failed = RunRow(
        run=first.run,
        key=first.key,
        state=RunState.FAILED,
        reason="BackoffLimitExceeded",
        attempt=2,
        job="close-retry1-29453820",
        created=first.run.due + 0.031,
        started=first.run.due + 12,
        finished=first.run.due + 95,
        exit_code=2,
        exit_reason="Error",
        container="close",
        attempts=(
            Attempt(1, "close-29453820", first.run.due + 0.031, first.run.due, None, 2, "Error"),
            Attempt(2, "close-retry1-29453820", first.run.due + 11.5),
        ),
    )
    skipped = RunRow(second.run, second.key, RunState.SKIPPED, "overlap")
    return [*others, failed, skipped, SpanRow(*CLOSE, MARK + 1, None, {}, "suspended", Range.OPEN)]


def _run(schedule: tuple[str, str], due: Instant) -> RunRow:
    uid, key = schedule
    return RunRow(
        run=RunId(uid, due),
        key=key,
        state=RunState.SUCCEEDED,
        job=f"{key.partition('/')[2]}-{due // 60}",
        taken_up=due - 10.0,
        created=due + 0.012,
        started=due + 1,
        finished=due + 41,
    )


def _timing(schedule: tuple[str, str], every_s: int) -> TimingRow:
    timing = Timing(Interval(every_s, 0, BEGAN))
    return TimingRow(*schedule, BEGAN, orjson.dumps(timing_fields(timing)).decode())
