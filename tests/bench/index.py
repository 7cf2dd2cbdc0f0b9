"""The run index alone: build, query, peek, memory."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.bench._measure import side_by_side, take

from evenkeel.core.index import RunIndex

ORIGIN = 1_772_323_200
HOUR_S = 3600
LONGEST_S = 18 * HOUR_S


def columns(runs: int, *, span_s: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Seconds and ordinals as expansion gives them: ten runs a schedule, grouped by schedule."""
    schedules = max(1, runs // 10)
    rng = np.random.default_rng(7)
    second = np.sort(rng.integers(0, span_s, (schedules, runs // schedules)), axis=1)
    ordinal = np.repeat(np.arange(schedules, dtype=np.int32), runs // schedules)
    return second.ravel().astype(np.uint32), ordinal, schedules


def build(runs: int, *, span_s: int) -> RunIndex:
    second, ordinal, schedules = columns(runs, span_s=span_s)
    return RunIndex(
        generation=1,
        origin=ORIGIN,
        end=ORIGIN + span_s,
        uids=("",) * schedules,
        second=second,
        ordinal=ordinal,
    )


def rows() -> Iterator[dict[str, Any]]:
    yield from build_rows()
    yield from query_rows()
    yield from memory_rows()


def build_rows() -> Iterator[dict[str, Any]]:
    for runs in (10, 1_000, 10_000, 100_000, 1_000_000):
        second, ordinal, schedules = columns(runs, span_s=HOUR_S)
        uids = ("",) * schedules
        wide = second.astype(np.int64)

        def ours(
            second: np.ndarray = second, ordinal: np.ndarray = ordinal, uids: tuple[str, ...] = uids
        ) -> RunIndex:
            return RunIndex(
                generation=1,
                origin=ORIGIN,
                end=ORIGIN + HOUR_S,
                uids=uids,
                second=second,
                ordinal=ordinal,
            )

        spread = side_by_side(
            {
                "ours": ours,
                "np.sort of int64 seconds alone": lambda wide=wide: np.sort(wide),
            },
            rounds=21,
            calls=max(1, 20_000 // runs),
        )
        yield {
            "name": f"build {runs:,} runs",
            "value": spread["ours"].median_ms,
            "unit": "ms",
            "beside": {
                "np_sort_int64_ms": spread["np.sort of int64 seconds alone"].median_ms,
            },
        }


def query_rows() -> Iterator[dict[str, Any]]:
    windows = {"1 min": 60, "1 h": HOUR_S, "1 day": 86_400}
    for runs in (1_000, 10_000, 100_000, 1_000_000):
        index = build(runs, span_s=LONGEST_S)
        for label, window_s in windows.items():
            yield query_row(f"query {runs:,} runs, {label}", index, window_s=window_s)
    index = build(1_000_000, span_s=LONGEST_S)
    for results in (10, 100, 1_000, 10_000):
        window_s = max(1, round(results * LONGEST_S / 1_000_000))
        yield query_row(f"query 1,000,000 runs for ~{results:,}", index, window_s=window_s)
    spread = take(index.peek, rounds=21, calls=10_000)
    yield {"name": "peek 1,000,000 runs", "value": spread.median_us, "unit": "us"}


def query_row(name: str, index: RunIndex, *, window_s: int) -> dict[str, Any]:
    """Our query against two searchsorted calls and nothing else, keys ready made."""
    start = max(0, (LONGEST_S - window_s) // 2)
    search = index.second.searchsorted
    low = np.uint16(start)
    high = np.uint16(min(LONGEST_S, start + window_s))

    def bare() -> None:
        search(low)
        search(high)

    query = index.query
    begin, end = ORIGIN + start, ORIGIN + start + window_s

    def ours() -> None:
        query(begin, end)

    spread = side_by_side({"ours": ours, "bare": bare}, rounds=41, calls=1_000)
    return {
        "name": name,
        "value": spread["ours"].median_s / spread["bare"].median_s,
        "unit": "x bare",
        "beside": {
            "query_us": spread["ours"].median_us,
            "bare_us": spread["bare"].median_us,
            "results": len(query(begin, end)),
        },
    }


def memory_rows() -> Iterator[dict[str, Any]]:
    """What an index keeps, by the allocator, without the uids it shares with the scheduler."""
    runs = 1_000_000
    second, ordinal, schedules = columns(runs, span_s=HOUR_S)
    uids = ("",) * schedules
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    index = RunIndex(
        generation=1,
        origin=ORIGIN,
        end=ORIGIN + HOUR_S,
        uids=uids,
        second=second,
        ordinal=ordinal,
    )
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    yield {
        "name": "memory per run",
        "value": (after - before) / len(index),
        "unit": "B",
        "beside": {"while_building_B": (peak - before) / len(index)},
    }
