"""The run index against a naive sort and scan, and under the eyes of readers in threads."""

import dataclasses
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.core.index import LONGEST_SPAN_S, IndexCell, RunIndex, nothing_yet

MIDNIGHT = 1_772_323_200  # 2026-03-01T00:00:00Z
MORNING = MIDNIGHT + 7 * 3600
TEN_MINUTES_S = 600


def built(
    due_by_schedule: list[list[int]],
    *,
    origin: int = MORNING,
    span_s: int = TEN_MINUTES_S,
    generation: int = 1,
) -> RunIndex:
    """An index of schedule 0's seconds, schedule 1's seconds, and so on."""
    pairs = [(s, ordinal) for ordinal, due in enumerate(due_by_schedule) for s in due]
    return RunIndex(
        generation=generation,
        origin=origin,
        end=origin + span_s,
        uids=[f"uid-{ordinal}" for ordinal in range(len(due_by_schedule))],
        second=np.array([second for second, _ in pairs], np.uint32),
        ordinal=np.array([ordinal for _, ordinal in pairs], np.int32),
    )


@dataclasses.dataclass(frozen=True)
class Case:
    """Any set of runs, and a window that may lie anywhere about it."""

    span_s: int
    due_by_schedule: list[list[int]]
    start: int
    end: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    span_s = draw(st.sampled_from([1, 2, 60, TEN_MINUTES_S, LONGEST_SPAN_S]))
    seconds = st.one_of(
        st.integers(0, span_s - 1), st.sampled_from([0, span_s - 1]), st.integers(0, 3)
    ).filter(lambda second: second < span_s)
    return Case(
        span_s=span_s,
        due_by_schedule=draw(st.lists(st.lists(seconds, max_size=12).map(sorted), max_size=8)),
        start=draw(st.integers(-5, span_s + 5)),
        end=draw(st.integers(-5, span_s + 5)),
    )


@given(cases())
def test_index_equals_a_naive_sort_and_scan(case: Case) -> None:
    index = built(case.due_by_schedule, span_s=case.span_s)
    naive = sorted(
        (MORNING + second, ordinal)
        for ordinal, due in enumerate(case.due_by_schedule)
        for second in due
    )
    in_window = [run for run in naive if MORNING + case.start <= run[0] < MORNING + case.end]
    found = index.query(MORNING + case.start, MORNING + case.end)

    assert list(index) == naive
    assert len(index) == len(naive)
    assert index.peek() == (naive[0] if naive else None)
    assert list(found) == in_window
    assert len(found) == len(in_window)
    assert found.peek() == (in_window[0] if in_window else None)


@given(cases())
def test_neighbouring_queries_give_every_run_once(case: Case) -> None:
    index = built(case.due_by_schedule, span_s=case.span_s)
    cut = MORNING + case.start
    before, after = index.query(MORNING - 9, cut), index.query(cut, MORNING + case.span_s)
    assert [*before, *after] == list(index)


def test_same_second_is_ordered_by_schedule() -> None:
    index = built([[5, 7], [5], [3, 5]])
    assert list(index.query(MORNING + 5, MORNING + 6)) == [
        (MORNING + 5, 0),
        (MORNING + 5, 1),
        (MORNING + 5, 2),
    ]
    assert [index.uids[ordinal] for _, ordinal in index] == [
        "uid-2", "uid-0", "uid-1", "uid-2", "uid-0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("start_s", "end_s", "found"),
    [
        pytest.param(10, 20, [10], id="start is inside, end is outside"),
        pytest.param(11, 20, [], id="between two runs there is nothing"),
        pytest.param(0, 600, [0, 10, 20, 599], id="the whole span has all"),
        pytest.param(-3600, 0, [], id="before the origin there is nothing"),
        pytest.param(600, 90_000, [], id="after the end there is nothing"),
        pytest.param(-90_000, 90_000, [0, 10, 20, 599], id="a window wider than the index"),
        pytest.param(20, 20, [], id="an empty window"),
        pytest.param(20, 10, [], id="a window that ends before it starts"),
    ],
)
def test_query_is_half_open(start_s: int, end_s: int, found: list[int]) -> None:
    runs = built([[0, 10, 20, 599]]).query(MORNING + start_s, MORNING + end_s)
    assert [due - MORNING for due, _ in runs] == found


def test_longest_span_holds_its_last_second() -> None:
    last = LONGEST_SPAN_S - 1
    index = built([[0, last]], span_s=LONGEST_SPAN_S)
    assert index.query(MORNING + last, index.end).peek() == (MORNING + last, 0)


def test_index_before_the_first_build_is_empty_and_covers_no_time() -> None:
    index = nothing_yet(MORNING)
    assert len(index) == 0
    assert index.peek() is None
    assert list(index.query(MORNING - 30, MORNING + 10)) == []
    assert index.end == index.origin == MORNING


def test_query_is_a_view_and_nobody_can_write_through_it() -> None:
    index = built([[1, 2, 3]])
    runs = index.query(MORNING + 2, MORNING + 4)
    assert np.shares_memory(runs.second, index.second)
    assert np.shares_memory(runs.ordinal, index.ordinal)
    with pytest.raises(ValueError, match="read-only"):
        runs.second[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        index.ordinal[0] = 9


def test_index_keeps_nothing_of_the_arrays_it_was_built_from() -> None:
    second, ordinal = np.array([4, 9], np.uint32), np.array([0, 0], np.int32)
    index = RunIndex(generation=1, origin=0, end=10, uids=["a"], second=second, ordinal=ordinal)
    second[:] = 0
    ordinal[:] = 7
    assert list(index) == [(4, 0), (9, 0)]


def test_a_run_costs_at_most_sixteen_bytes() -> None:
    index = built([list(range(TEN_MINUTES_S))] * 100)
    assert (index.second.nbytes + index.ordinal.nbytes) / len(index) <= 16


@pytest.mark.parametrize(
    ("second", "ordinal", "span_s", "sentence"),
    [
        pytest.param([600], [0], 600, "outside the index", id="a run at the end is outside"),
        pytest.param([1, 1], [1, 0], 600, "grouped by ordinal", id="ordinals must ascend"),
        pytest.param([1], [2], 600, "without a schedule", id="every ordinal has a schedule"),
        pytest.param([1], [-1], 600, "without a schedule", id="no negative ordinals"),
        pytest.param([], [], 65_537, "16-bit", id="a span beyond 16 bits"),
        pytest.param([], [], -1, "16-bit", id="an end before the origin"),
    ],
)
def test_runs_that_do_not_fit_are_refused(
    second: list[int], ordinal: list[int], span_s: int, sentence: str
) -> None:
    with pytest.raises(AssertionError, match=sentence):
        RunIndex(
            generation=1,
            origin=MORNING,
            end=MORNING + span_s,
            uids=["a", "b"],
            second=np.array(second, np.uint32),
            ordinal=np.array(ordinal, np.int32),
        )


# --- the cell ---------------------------------------------------------------------------------


def test_an_older_generation_never_comes_back() -> None:
    cell = IndexCell(nothing_yet(MORNING))
    second, third = built([[1]], generation=2), built([[1]], generation=3)
    assert cell.swap(third)
    assert not cell.swap(second)
    assert not cell.swap(built([[2]], generation=3))
    assert cell.current is third


def test_a_reader_keeps_the_index_it_took() -> None:
    cell = IndexCell(built([[1, 2]], generation=1))
    runs = cell.current.query(MORNING, MORNING + 10)
    cell.swap(built([], generation=2))
    assert [due - MORNING for due, _ in runs] == [1, 2]
    assert len(cell.current) == 0


def test_readers_see_whole_indexes_during_ten_thousand_swaps() -> None:
    """Generation g holds g % 97 + 1 runs, all at second g % 600, by schedules named after g."""
    swaps = 10_000
    cell = IndexCell(nothing_yet(MORNING))
    torn: list[str] = []
    looks = [0] * 4
    started = threading.Barrier(len(looks) + 1)
    finished = threading.Event()

    def read(reader: int) -> None:
        seen = 0
        started.wait()
        while not finished.is_set():
            index = cell.current
            generation = index.generation
            if generation < seen:
                torn.append(f"generation {generation} came back after {seen}")
            seen = generation
            runs = index.query(MORNING, MORNING + TEN_MINUTES_S)
            expected = 0 if generation == 0 else generation % 97 + 1
            due = set(runs.due().tolist())
            if len(runs) != expected or len(index.uids) != expected:
                torn.append(f"generation {generation} has {len(runs)} runs")
            elif expected and due != {MORNING + generation % TEN_MINUTES_S}:
                torn.append(f"generation {generation} has runs at {due}")
            elif expected and index.uids[runs.ordinal[-1]] != f"{generation}/{expected - 1}":
                torn.append(f"generation {generation} names {index.uids}")
            looks[reader] += 1

    readers = [threading.Thread(target=read, args=(reader,)) for reader in range(len(looks))]
    for reader in readers:
        reader.start()
    started.wait()
    for generation in range(1, swaps + 1):
        size = generation % 97 + 1
        cell.swap(
            RunIndex(
                generation=generation,
                origin=MORNING,
                end=MORNING + TEN_MINUTES_S,
                uids=[f"{generation}/{ordinal}" for ordinal in range(size)],
                second=np.full(size, generation % TEN_MINUTES_S, np.uint32),
                ordinal=np.arange(size, dtype=np.int32),
            )
        )
    finished.set()
    for reader in readers:
        reader.join()

    assert torn == []
    assert min(looks) > 0
    assert cell.current.generation == swaps
