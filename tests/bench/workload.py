"""A working hour: 10,000 schedules, a million runs, a rebuild every 30 s, a query every second.

The hour's waiting is left out. As in the scheduler, one thread rebuilds and queries; two readers
query in threads of their own all the while, during rebuilds and swaps too.
"""

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

from tests.bench._measure import percentile

from evenkeel.core.index import IndexCell, RunIndex, nothing_yet
from evenkeel.model import Interval, Timing
from evenkeel.when import DueTimes, compile_timing, expand

MORNING = 1_772_348_400  # 2026-03-01T07:00:00Z
SCHEDULES = 10_000
HOUR_S = LOOKAHEAD_S = 3600
REBUILD_S = 30
GRACE_S, PRE_SCHEDULE_S = 30, 10


def busy_schedules() -> list[DueTimes]:
    """A hundred runs an hour each: a million in the index."""
    rng = random.Random(11)
    return [
        compile_timing(
            Timing(Interval(every_s=36, offset_s=0, anchor=MORNING - 7200 - rng.randrange(36))),
            seed=f"bench/{number}",
        )
        for number in range(SCHEDULES)
    ]


def rows() -> Iterator[dict[str, Any]]:
    dues = busy_schedules()
    uids = tuple(f"uid-{number}" for number in range(SCHEDULES))
    cell = IndexCell(nothing_yet(MORNING))
    rebuilt_ms: list[float] = []

    def rebuild(number: int) -> None:
        started = time.perf_counter()
        origin = MORNING + number * REBUILD_S - GRACE_S
        expansion = expand(dues, origin, origin + LOOKAHEAD_S)
        index = RunIndex(
            generation=cell.current.generation + 1,
            origin=origin,
            end=origin + LOOKAHEAD_S,
            uids=uids,
            second=expansion.second,
            ordinal=expansion.ordinal,
        )
        assert cell.swap(index)
        rebuilt_ms.append((time.perf_counter() - started) * 1e3)

    finished = threading.Event()
    read_us: list[list[float]] = [[], []]

    def read(taken: list[float]) -> None:
        """A dashboard or an API call: it queries, and then does something else for a moment."""
        while not finished.is_set():
            taken.append(one_query(cell, cell.current.origin + GRACE_S))
            time.sleep(0.001)

    threads = [threading.Thread(target=read, args=(taken,)) for taken in read_us]
    query_us = []
    rebuild(0)
    for thread in threads:
        thread.start()
    for second in range(HOUR_S):
        if second % REBUILD_S == 0:
            rebuild(second // REBUILD_S)
        query_us.append(one_query(cell, MORNING + second))
        time.sleep(0.0002)
    finished.set()
    for thread in threads:
        thread.join()

    queries = sorted(query_us)
    readers = sorted(read_us[0] + read_us[1])
    rebuilds = sorted(rebuilt_ms)
    yield {
        "name": "query p99",
        "value": percentile(queries, 99),
        "unit": "us",
        "beside": {
            "p50_us": percentile(queries, 50),
            "p95_us": percentile(queries, 95),
            "queries": len(queries),
            "readers_p50_us": percentile(readers, 50),
            "readers_p95_us": percentile(readers, 95),
            "readers_p99_us": percentile(readers, 99),
            "reader_queries": len(readers),
            "runs": len(cell.current),
        },
    }
    yield {
        "name": "rebuild p50 beside readers",
        "value": percentile(rebuilds, 50),
        "unit": "ms",
        "beside": {
            "p95_ms": percentile(rebuilds, 95),
            "p99_ms": percentile(rebuilds, 99),
            "rebuilds": len(rebuilds),
        },
    }


def one_query(cell: IndexCell, now: int) -> float:
    """Microseconds that the scheduler's query took."""
    started = time.perf_counter()
    cell.current.query(now - GRACE_S, now + PRE_SCHEDULE_S)
    return (time.perf_counter() - started) * 1e6
