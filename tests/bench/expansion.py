"""Due times of many schedules: ours, croniter and cronsim in the same run; and whole rebuilds."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from croniter import croniter
from cronsim import CronSim
from tests.bench._measure import side_by_side, take

from evenkeel.core.index import RunIndex
from evenkeel.model import Cron, Interval, Timing
from evenkeel.when import Columns, DueTimes, columns, compile_timing, expand

NOON = int(datetime(2026, 3, 3, 12, tzinfo=UTC).timestamp())
HOUR_S = 3600
TEN_MINUTES_S = 600
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney")


def rows() -> Iterator[dict[str, Any]]:
    yield from cron_rows()
    yield from rebuild_rows()


def cron_texts(count: int) -> list[str]:
    """What clusters run: half every few minutes, the rest hourly, daily, weekly, monthly."""
    rng = random.Random(3)
    kinds = (
        [lambda: f"*/{rng.choice((5, 10, 15, 20))} * * * *"] * 4
        + [lambda: f"{rng.randrange(60)}-59/{rng.choice((5, 10, 15))} * * * *"] * 2
        + [lambda: f"{rng.randrange(60)} * * * *"] * 6
        + [lambda: f"{rng.randrange(60)} */{rng.choice((2, 4, 6))} * * *"] * 2
        + [lambda: f"{rng.randrange(60)} {rng.randrange(24)} * * *"] * 3
        + [lambda: f"*/{rng.choice((2, 3))} 8-18 * * 1-5"]
        + [lambda: f"{rng.randrange(60)} {rng.randrange(24)} * * {rng.randrange(7)}"]
        + [lambda: f"{rng.randrange(60)} {rng.randrange(24)} {rng.randrange(1, 29)} * *"]
    )
    return [rng.choice(kinds)() for _ in range(count)]


def compiled(timings: list[Timing]) -> list[DueTimes]:
    return [compile_timing(timing, seed=f"bench/{number}") for number, timing in enumerate(timings)]


def cron_rows() -> Iterator[dict[str, Any]]:
    """10,000 cron schedules over an hour, expanded and sorted."""
    texts = cron_texts(10_000)
    dues = compiled([Timing(Cron(text)) for text in texts])
    start = datetime.fromtimestamp(NOON, UTC)

    def with_croniter() -> int:
        found = 0
        for text in texts:
            each = croniter(text, NOON - 1)
            while each.get_next() < NOON + HOUR_S:
                found += 1
        return found

    def with_cronsim() -> int:
        found = 0
        last = datetime.fromtimestamp(NOON + HOUR_S, UTC)
        for text in texts:
            for due in CronSim(text, datetime.fromtimestamp(NOON - 1, UTC)):
                if due >= last:
                    break
                found += 1
        return found

    runs = len(expand(dues, NOON, NOON + HOUR_S).second)
    assert start.second == 0
    assert with_cronsim() == runs, "ours and cronsim must find the same runs"
    peers = side_by_side({"croniter": with_croniter, "cronsim": with_cronsim}, rounds=3)
    spread = take(lambda: indexed(dues, NOON, NOON + HOUR_S), rounds=31)
    yield {
        "name": "10,000 cron schedules x 1 h",
        "value": spread.median_ms,
        "unit": "ms",
        "beside": {
            "runs": runs,
            "croniter_s": peers["croniter"].median_s,
            "cronsim_s": peers["cronsim"].median_s,
            "times_faster_than_croniter": peers["croniter"].median_s / spread.median_s,
            "times_faster_than_cronsim": peers["cronsim"].median_s / spread.median_s,
        },
    }


def mixed(count: int) -> list[DueTimes]:
    """Half cron in five zones, half intervals that were placed."""
    rng = random.Random(5)
    timings = [
        Timing(Cron(text), zone=rng.choice(ZONES)) for text in cron_texts(count - count // 2)
    ]
    periods = (300, 420, 600, 900, 1500, HOUR_S, 5400, 6 * HOUR_S, 86_400)
    for _ in range(count // 2):
        every_s = rng.choice(periods)
        anchor = NOON - rng.randrange(every_s)
        timings.append(Timing(Interval(every_s=every_s, offset_s=0, anchor=anchor)))
    rng.shuffle(timings)
    return compiled(timings)


def indexed(dues: list[DueTimes] | Columns, start: int, end: int) -> RunIndex:
    """One rebuild: expand, sort, check."""
    expansion = expand(dues, start, end)
    return RunIndex(
        generation=1,
        origin=start,
        end=end,
        uids=("",) * (dues.length if isinstance(dues, Columns) else len(dues)),
        second=expansion.second,
        ordinal=expansion.ordinal,
    )


def rebuild_rows() -> Iterator[dict[str, Any]]:
    """A rebuild as the scheduler does it: the clock has moved on by a minute each time."""
    for count, rounds in ((10_000, 41), (100_000, 15)):
        dues = mixed(count)
        clock = [NOON]

        def rebuild(dues: list[DueTimes] = dues, clock: list[int] = clock) -> RunIndex:
            clock[0] += 60
            return indexed(dues, clock[0] - 30, clock[0] - 30 + TEN_MINUTES_S)

        kept = columns(dues)
        spread = take(rebuild, rounds=rounds)
        with_columns = take(
            lambda kept=kept: indexed(kept, NOON, NOON + TEN_MINUTES_S), rounds=rounds
        )
        yield {
            "name": f"rebuild {count:,} schedules x 10 min",
            "value": spread.median_ms,
            "unit": "ms",
            "beside": {
                "runs": len(rebuild()),
                "slowest_ms": max(spread.rounds_s) * 1e3,
                "with_columns_kept_ms": with_columns.median_ms,
                "incremental_ten_replaced_ms": take(ten_replaced(dues), rounds=rounds).median_ms,
            },
        }


def ten_replaced(dues: list[DueTimes]) -> Callable[[], object]:
    """What an incremental rebuild would do, at least: ten schedules' runs out, and in again.

    Measured to decide against it: nothing here renumbers schedules that came or went.
    """
    end = NOON + TEN_MINUTES_S
    index = indexed(dues, NOON, end)
    changed = np.arange(0, len(dues), len(dues) // 10)
    some = [dues[place] for place in changed]

    def replace() -> tuple[np.ndarray, np.ndarray]:
        is_changed = np.zeros(len(dues), np.bool_)
        is_changed[changed] = True
        kept = ~is_changed[index.ordinal]
        found = expand(some, NOON, end)
        second = np.concatenate((index.second[kept], found.second.astype(np.uint16)))
        ordinal = np.concatenate((index.ordinal[kept], changed[found.ordinal].astype(np.int32)))
        order = np.lexsort((ordinal, second))
        return second[order], ordinal[order]

    second, ordinal = replace()
    assert (second == index.second).all() and (ordinal == index.ordinal).all()
    return replace
