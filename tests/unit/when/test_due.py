"""Due times of all kinds of timing: examples, bounds, local days, and that all methods agree."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.when.oracle import Watch, instant, offset_s, plain_cron, shown, work_of

from evenkeel.errors import BadField
from evenkeel.model import At, Cron, DayMatch, Fold, Gap, Hourly, Interval, Timing
from evenkeel.when import columns, compile_timing, expand, parse_duration
from evenkeel.when.expand import LONGEST_WINDOW_S

MIDNIGHT = instant("2026-06-01T00:00Z")
HOUR_S = 3600
DAY_S = 86_400


def dues_of(rule, **timing):
    return compile_timing(Timing(rule, **timing), seed="ns/name")


def clock(instants: list[int]) -> list[str]:
    return [text[11:16] for text in shown(instants)]


# --- the worked examples: started at midnight -------------------------------------------------

WORKED = {
    "hourly 17": (Hourly(17), ["00:17", "01:17", "02:17"]),
    "every 4 minutes": (Interval(240, 0, MIDNIGHT), ["00:04", "00:08", "00:12"]),
    "every 6 minutes, offset 1": (Interval(360, 60, MIDNIGHT), ["00:07", "00:13", "00:19"]),
    "every 25, offset 2": (Interval(1500, 120, MIDNIGHT), ["00:27", "00:52", "01:17", "01:42"]),
    "every 100 minutes": (Interval(6000, 0, MIDNIGHT), ["01:40", "03:20", "05:00"]),
}


@pytest.mark.parametrize(("rule", "expected"), WORKED.values(), ids=WORKED)
def test_worked_example(rule, expected):
    dues = dues_of(rule)
    assert clock(dues.between(MIDNIGHT, MIDNIGHT + DAY_S, limit=len(expected))) == expected
    expansion = expand([dues], MIDNIGHT, MIDNIGHT + DAY_S)
    assert clock([MIDNIGHT + s for s in expansion.second.tolist()])[: len(expected)] == expected


OFF_THE_GRID = ["7m", "25m", "90m", "100m", "3d", "45s", "1h30m", "2w", "36h"]


@pytest.mark.parametrize("every", OFF_THE_GRID)
def test_an_interval_keeps_its_rhythm_for_ever(every):
    every_s = parse_duration(every, field="interval.every")
    dues = dues_of(Interval(every_s, 0, MIDNIGHT))
    far = MIDNIGHT + 1000 * every_s
    assert dues.next_after(MIDNIGHT) == MIDNIGHT + every_s
    assert dues.next_after(far) == far + every_s
    assert dues.between(far, far + 3 * every_s) == [far, far + every_s, far + 2 * every_s]
    assert dues.count(MIDNIGHT, far) == 999
    assert dues.newest(MIDNIGHT, far, limit=2) == [far - 2 * every_s, far - every_s]


def test_an_anchor_is_never_a_run_and_nothing_runs_before_it():
    dues = dues_of(Interval(HOUR_S, 0, MIDNIGHT))
    assert dues.between(MIDNIGHT - DAY_S, MIDNIGHT + 1) == []
    assert dues.next_after(MIDNIGHT - DAY_S) == MIDNIGHT + HOUR_S


def test_nothing_is_due_before_an_anchor_in_the_future():
    dues = dues_of(Interval(60, 30, MIDNIGHT + DAY_S))
    assert dues.next_after(MIDNIGHT) == MIDNIGHT + DAY_S + 90


def test_without_an_anchor_an_interval_counts_from_1970():
    assert dues_of(Interval(7, 3)).next_after(MIDNIGHT) % 7 == 3


def test_an_interval_that_was_not_placed_is_a_defect():
    with pytest.raises(AssertionError):
        dues_of(Interval(60))


# --- intervals of whole days ------------------------------------------------------------------


def test_whole_days_in_a_zone_keep_the_local_time_through_both_changes():
    three_in_berlin = instant("2026-01-01T02:00Z")
    dues = dues_of(Interval(DAY_S, 0, three_in_berlin), zone="Europe/Berlin")
    spring = instant("2026-03-27T00:00Z")
    assert clock(dues.between(spring, spring + 4 * DAY_S)) == ["02:00", "02:00", "01:00", "01:00"]
    autumn = instant("2026-10-23T00:00Z")
    assert clock(dues.between(autumn, autumn + 4 * DAY_S)) == ["01:00", "01:00", "02:00", "02:00"]


def test_whole_days_in_utc_and_odd_hours_in_a_zone_are_elapsed_time():
    start = instant("2026-03-27T02:30Z")
    assert dues_of(Interval(DAY_S, 0, start)).count(start, start + 10 * DAY_S) == 9
    odd = dues_of(Interval(25 * HOUR_S, 0, start), zone="Europe/Berlin")
    times = odd.between(start, start + 10 * DAY_S)
    rhythm = {after - before for before, after in itertools.pairwise(times)}
    assert rhythm == {25 * HOUR_S}


DAYS_IN_BERLIN = {
    "the gap shifts to its end": (
        "2026-03-29T00:00Z",
        Gap.SHIFT,
        Fold.FIRST,
        ["2026-03-29T01:00Z"],
    ),
    "the gap is skipped": ("2026-03-29T00:00Z", Gap.SKIP, Fold.FIRST, []),
    "the repeated hour runs first": (
        "2026-10-25T00:00Z",
        Gap.SHIFT,
        Fold.FIRST,
        ["2026-10-25T00:30Z"],
    ),
    "the repeated hour runs twice": (
        "2026-10-25T00:00Z",
        Gap.SHIFT,
        Fold.BOTH,
        ["2026-10-25T00:30Z", "2026-10-25T01:30Z"],
    ),
}


@pytest.mark.parametrize(
    ("day", "gap", "fold", "expected"), DAYS_IN_BERLIN.values(), ids=DAYS_IN_BERLIN
)
def test_a_daily_interval_at_half_past_two_in_berlin(day, gap, fold, expected):
    rule = Interval(DAY_S, 0, instant("2026-01-01T01:30Z"))
    dues = dues_of(rule, zone="Europe/Berlin", gap=gap, fold=fold)
    a, b = instant(day), instant(day) + 20 * HOUR_S
    assert shown(dues.between(a, b)) == expected
    assert dues.count(a, b) == len(expected)
    assert shown([a + s for s in expand([dues], a, b).second.tolist()]) == expected


HALF_PAST_TWO = {
    "cron": Cron("30 2 * * *"),
    "days": Interval(DAY_S, 0, instant("2026-01-01T01:30Z")),
}


@pytest.mark.parametrize("rule", HALF_PAST_TWO.values(), ids=HALF_PAST_TWO)
def test_start_and_end_hold_for_a_shifted_run_too(rule):
    shifted_to = instant("2026-03-29T01:00Z")
    a, b = shifted_to - HOUR_S, shifted_to + HOUR_S
    for start, end, expected in (
        (shifted_to, shifted_to + 1, [shifted_to]),
        (shifted_to + 1, None, []),
        (None, shifted_to, []),
    ):
        dues = dues_of(rule, zone="Europe/Berlin", start=start, end=end)
        assert dues.between(a, b) == expected
        assert dues.count(a, b) == len(expected)
        assert [a + second for second in expand([dues], a, b).second.tolist()] == expected


def test_the_day_that_apia_left_out_is_shifted_or_skipped():
    noon = instant("2011-12-20T22:00Z")
    missing = instant("2011-12-30T10:00Z")
    shift = dues_of(Interval(DAY_S, 0, noon), zone="Pacific/Apia")
    skip = dues_of(Interval(DAY_S, 0, noon), zone="Pacific/Apia", gap=Gap.SKIP)
    assert shown(shift.between(missing - DAY_S, missing + DAY_S)) == [
        "2011-12-29T22:00Z",
        "2011-12-30T10:00Z",
        "2011-12-30T22:00Z",
    ]
    assert shown(skip.between(missing - DAY_S, missing + DAY_S)) == [
        "2011-12-29T22:00Z",
        "2011-12-30T22:00Z",
    ]


# --- once, start and end ----------------------------------------------------------------------


def test_at_is_due_once():
    dues = dues_of(At(MIDNIGHT))
    assert dues.next_after(MIDNIGHT - 1) == MIDNIGHT
    assert dues.next_after(MIDNIGHT) is None
    assert dues.between(MIDNIGHT, MIDNIGHT + 1) == [MIDNIGHT]
    assert dues.newest(0, MIDNIGHT, limit=5) == []
    assert expand([dues], MIDNIGHT, MIDNIGHT + 60).second.tolist() == [0]
    assert expand([dues], MIDNIGHT + 1, MIDNIGHT + 60).second.tolist() == []


RULES = {
    "cron": Cron("*/10 * * * *"),
    "hourly": Hourly(30),
    "interval": Interval(600, 0),
    "days": Interval(DAY_S, 1800),
    "at": At(MIDNIGHT + 1800),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_start_is_included_and_end_is_not(rule):
    zone = "Europe/Berlin"
    due = dues_of(rule, zone=zone).next_after(MIDNIGHT)
    for start, end, expected in (
        (due, due + 1, [due]),
        (due, None, [due]),
        (due + 1, due + 2, []),
        (due - 1, due, []),
        (None, due, []),
    ):
        dues = dues_of(rule, zone=zone, start=start, end=end)
        assert dues.between(due - 60, due + 60) == expected
        assert dues.newest(due - 60, due + 60, limit=1) == expected
        assert dues.count(due - 60, due + 60) == len(expected)
        seconds = expand([dues], due - 60, due + 60).second.tolist()
        assert [due - 60 + s for s in seconds] == expected
        assert (dues.next_after(due - 1) == due) == bool(expected)


TEXTS = {
    "*/5 * * * *": Cron(" */5  * * * * "),
    "hourly at :07": Hourly(7),
    "every 25m + 2m": Interval(1500, 120),
    "every 1h30m": Interval(5400, 0, MIDNIGHT),
    "once at 2026-06-01T00:00:00Z": At(MIDNIGHT),
}


@pytest.mark.parametrize(("text", "rule"), TEXTS.items(), ids=TEXTS)
def test_a_timing_in_words_is(text, rule):
    dues = dues_of(rule)
    assert dues.text == text
    assert dues.timing.rule == rule


# --- far away ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
def test_400_days_of_every_minute_are_counted_without_a_list(zone):
    dues = dues_of(Cron("* * * * *"), zone=zone)
    span = MIDNIGHT, MIDNIGHT + 400 * DAY_S
    assert dues.count(*span) == 400 * 1440
    _, calls = work_of(lambda: dues.count(*span))
    assert calls < 100


def test_a_time_that_the_clock_always_jumps_over_is_never_due():
    rule = Cron("0 2 * 3 0#2")
    dues = dues_of(rule, zone="America/New_York", gap=Gap.SKIP)
    assert dues.next_after(MIDNIGHT) is None
    shifted = dues_of(rule, zone="America/New_York")
    assert shown([shifted.next_after(MIDNIGHT)]) == ["2027-03-14T07:00Z"]


def test_a_yearly_run_in_a_repeated_hour_comes_again_although_its_first_pass_is_over():
    dues = dues_of(Cron("10 2 25 10 *"), zone="Europe/Berlin", fold=Fold.BOTH)
    between_the_passes = instant("2026-10-25T00:50Z")
    assert shown([dues.next_after(between_the_passes)]) == ["2026-10-25T01:10Z"]


def test_chatham_works_where_cronjobs_library_loops_for_ever():
    dues = dues_of(Cron("*/15 0-12/3 * * *"), zone="Pacific/Chatham")
    after = instant("2026-04-03T16:00Z")
    assert shown([dues.next_after(after)]) == ["2026-04-03T16:15Z"]
    watch = Watch("Pacific/Chatham", after, after + 2 * DAY_S)
    expected = watch.due(plain_cron("*/15 0-12/3 * * *"), shift=True, first=True)
    assert dues.between(after, after + 2 * DAY_S) == expected


# --- one answer, whatever the question --------------------------------------------------------

SOME_ZONES = [
    "UTC",
    "Africa/Casablanca",
    "America/New_York",
    "America/Santiago",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
]
CHANGES = [
    instant(text)
    for text in (
        "2026-03-29T01:00Z",
        "2026-10-25T01:00Z",
        "2026-03-08T07:00Z",
        "2026-11-01T06:00Z",
        "2026-04-04T14:00Z",
        "2026-10-03T15:30Z",
        "2026-09-06T04:00Z",
        "2026-02-15T02:00Z",
        "2011-12-30T10:00Z",
    )
]


def _values(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.integers(1, high + 1)
    entry = st.one_of(
        number.map(str),
        span,
        st.tuples(span, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.tuples(number, step).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    )
    return st.lists(entry, min_size=1, max_size=3).map(",".join)


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    star = st.sampled_from(["*", "*", "?", "*/1", "*/2", "*/7"])
    return st.one_of(star, _values(low, high))


texts = st.tuples(
    _field(0, 59), _field(0, 23), _field(1, 31), st.one_of(st.just("*"), _field(1, 12)),
    _field(0, 6),
).map(" ".join)  # fmt: skip
clocks = st.fixed_dictionaries(
    {
        "zone": st.sampled_from(SOME_ZONES),
        "gap": st.sampled_from(Gap),
        "fold": st.sampled_from(Fold),
    }
)
begins = st.builds(
    lambda change, shift: change + shift,
    st.sampled_from(CHANGES),
    st.integers(-10 * HOUR_S, 4 * HOUR_S),
)


@settings(max_examples=200, deadline=None)
@given(texts, clocks, begins, st.integers(1, 10 * HOUR_S), st.sampled_from(DayMatch))
def test_any_cron_text_is_as_the_wall_clock_says(text, clock_rules, begin, length, day_match):
    try:
        dues = dues_of(Cron(text, day_match), **clock_rules)
    except BadField as bad:
        if bad.reason != "NeverFires":
            raise
        return
    watch = Watch(clock_rules["zone"], begin, begin + length, before_s=5 * HOUR_S)
    cron = plain_cron(text, together=day_match is DayMatch.AND)
    expected = watch.due(
        cron,
        shift=clock_rules["gap"] is Gap.SHIFT,
        first=clock_rules["fold"] is Fold.FIRST,
    )
    assert shown(dues.between(begin, begin + length)) == shown(expected)


rules = st.one_of(
    texts.map(Cron),
    st.integers(0, 59).map(Hourly),
    st.builds(
        lambda every_s, part, anchor: Interval(every_s, part % every_s, anchor),
        st.one_of(st.integers(60, 200_000), st.integers(1, 40).map(lambda n: n * DAY_S)),
        st.integers(0, 40 * DAY_S),
        st.one_of(st.none(), begins),
    ),
    begins.map(At),
)
bounds = st.one_of(st.none(), begins)


def _compile(rule, clock_rules, start, end):
    try:
        return compile_timing(Timing(rule, start=start, end=end, **clock_rules), seed="ns/n")
    except BadField:
        return None


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.tuples(rules, clocks, bounds, bounds), min_size=1, max_size=12),
    begins,
    st.integers(0, 3 * DAY_S),
)
def test_all_methods_agree(members, begin, length):
    found = [_compile(*member) for member in members]
    compiled = [dues for dues in found if dues is not None]
    end = begin + length
    expected = [dues.between(begin, end) for dues in compiled]
    expansion = expand(columns(compiled), begin, end)
    pairs = list(zip(expansion.ordinal.tolist(), expansion.second.tolist(), strict=True))
    assert pairs == [(n, t - begin) for n, times in enumerate(expected) for t in times]
    for dues, times in zip(compiled, expected, strict=True):
        assert times == sorted(set(times))
        assert dues.count(begin, end) == len(times)
        assert dues.newest(begin, end, limit=7) == times[-7:]
        assert dues.newest(begin, end, limit=0) == []
        assert dues.between(begin, end, limit=7) == times[:7]
        walked, after = [], begin - 1
        while len(walked) < 7 and (due := dues.next_after(after)) is not None and due < end:
            assert due > after
            walked.append(due)
            after = due
        assert walked == times[:7]


@settings(max_examples=60, deadline=None)
@given(rules, clocks, begins, st.integers(1, 2 * DAY_S), st.integers(1, 2 * DAY_S))
def test_neighbouring_windows_join_without_loss_or_repeat(rule, clock_rules, a, first, second):
    dues = _compile(rule, clock_rules, None, None)
    if dues is None:
        return
    b, c = a + first, a + first + second
    assert dues.between(a, b) + dues.between(b, c) == dues.between(a, c)
    assert dues.count(a, b) + dues.count(b, c) == dues.count(a, c)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20), st.integers(0, 19), clocks, begins, st.integers(1, 5 * DAY_S))
def test_whole_days_read_the_same_local_time_unless_a_gap_took_it(
    number, offset_hours, clock_rules, begin, length
):
    zone = clock_rules["zone"]
    rule = Interval(number * DAY_S, offset_hours * HOUR_S, CHANGES[0] - 400 * DAY_S)
    base = rule.anchor + rule.offset_s
    wall_time = (base + offset_s(zone, base)) % DAY_S
    dues = dues_of(rule, zone=zone, gap=Gap.SKIP, fold=clock_rules["fold"])
    for due in dues.between(begin, begin + length):
        assert (due + offset_s(zone, due)) % DAY_S == wall_time


# --- expand -----------------------------------------------------------------------------------


def test_columns_serve_many_windows_and_are_not_changed_by_them():
    compiled = [dues_of(Cron(f"{n} * * * *"), zone=zone) for n in range(60) for zone in SOME_ZONES]
    table = columns(compiled)
    for begin in (*CHANGES, MIDNIGHT, CHANGES[0]):
        kept = expand(table, begin, begin + HOUR_S)
        fresh = expand(compiled, begin, begin + HOUR_S)
        assert kept.second.tolist() == fresh.second.tolist()
        assert kept.ordinal.tolist() == fresh.ordinal.tolist()


def test_a_large_set_computed_in_chunks_loses_nothing():
    compiled = [dues_of(Cron(f"{n % 60} {n % 24} * * *")) for n in range(3000)]
    expansion = expand(compiled, MIDNIGHT, MIDNIGHT + 7 * DAY_S)
    assert expansion.ordinal.tolist() == [n for n in range(3000) for _ in range(7)]
    firsts = expansion.second.tolist()[::7]
    assert firsts == [n % 60 * 60 + n % 24 * HOUR_S for n in range(3000)]


def test_the_arrays_have_the_types_that_the_index_needs():
    expansion = expand([dues_of(Hourly(1)), dues_of(Interval(60, 0))], MIDNIGHT, MIDNIGHT + DAY_S)
    assert (expansion.second.dtype, expansion.ordinal.dtype) == ("uint32", "int32")


EMPTY = {
    "no schedules": ([], MIDNIGHT, MIDNIGHT + 60),
    "no time": ([Hourly(0)], MIDNIGHT, MIDNIGHT),
    "time that runs backwards": ([Hourly(0)], MIDNIGHT, MIDNIGHT - 60),
    "before 1970": ([Hourly(0), Interval(60, 0)], -DAY_S, 0),
    "after 9999": ([Hourly(0), Interval(60, 0)], 253_402_300_800, 253_402_300_800 + DAY_S),
}


@pytest.mark.parametrize(("rules_given", "a", "b"), EMPTY.values(), ids=EMPTY)
def test_nothing_is_due_in(rules_given, a, b):
    assert len(expand([dues_of(rule) for rule in rules_given], a, b).second) == 0


def test_a_window_over_a_week_is_refused():
    with pytest.raises(ValueError, match="longer than"):
        expand([], MIDNIGHT, MIDNIGHT + LONGEST_WINDOW_S + 1)
