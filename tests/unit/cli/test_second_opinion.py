"""croniter as a second opinion: where it differs, and that its faults stay its own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.when.oracle import instant, shown
from tests.unit.when.test_other_programs import CRONITER_DIFFERS, VALIDITY, _croniter, _ours

from evenkeel.cli import second_opinion
from evenkeel.cli.second_opinion import AGREES, REFUSES, SecondOpinion
from evenkeel.errors import BadField
from evenkeel.model import Cron, DayMatch
from evenkeel.when.cron import parse_cron

START = instant("2026-06-01T00:00Z")
IN_UTC = {name: case for name, case in CRONITER_DIFFERS.items() if case[1] == "UTC"}


@pytest.mark.parametrize("case", IN_UTC.values(), ids=IN_UTC)
def test_the_first_time_at_which_the_two_part_is_found(case) -> None:
    text, _, after, ours, theirs = case
    found = SecondOpinion(instant(after)).of(Cron(text))
    assert found.parting is not None
    first = min(next((a, b) for a, b in zip(ours, theirs, strict=True) if a != b))
    assert shown([found.parting]) == [first]
    assert found.theirs is (first in theirs)


@pytest.mark.parametrize("text", [text for text, takes in VALIDITY.items() if takes[0]])
def test_what_it_refuses_is_refused_and_the_rest_is_read_alike(text: str) -> None:
    found = SecondOpinion(START).of(Cron(text))
    assert found == (AGREES if VALIDITY[text][2] else REFUSES)


@pytest.mark.parametrize(
    "text",
    [
        "0 0 1-31 * 1",
        "0 0 * * 1-7",
        "0 0 */2 * 1",
        "0 0 1,L * *",
        "0 0 ? * MON-FRI",
        "*/90 */36 * * *",
        "5/90 * * * *",
        "0 0 29 2 *",
        "0 0 * 1-12 0-6",
    ],
)
@pytest.mark.parametrize("day_match", DayMatch)
def test_texts_that_look_odd_and_are_read_alike(text: str, day_match: DayMatch) -> None:
    assert SecondOpinion(START).of(Cron(text, day_match)) == AGREES


@pytest.mark.parametrize("text", ["H * * * *", "0 H/6 * * *", "1,H * * * *"])
def test_a_hash_is_not_compared(text: str) -> None:
    assert SecondOpinion(START).of(Cron(text)) == AGREES


def entries(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    spans = st.tuples(number, number, st.integers(1, 90)).map("{0[0]}-{0[1]}/{0[2]}".format)
    steps = st.tuples(number | st.just("*"), st.integers(1, 90)).map("{0[0]}/{0[1]}".format)
    return st.lists(number | spans | steps | st.just("*"), min_size=1, max_size=3).map(",".join)


@given(
    minute=entries(0, 59),
    hour=entries(0, 23),
    dom=entries(1, 31) | st.sampled_from(["L", "1,L", "?"]),
    month=entries(1, 12),
    dow=entries(0, 7) | st.sampled_from(["5#2", "5#5,1#1", "5L", "?"]),
)
@settings(max_examples=300, deadline=None)
def test_what_is_said_to_be_read_alike_has_the_same_times(
    minute: str, hour: str, dom: str, month: str, dow: str
) -> None:
    text = f"{minute} {hour} {dom} {month} {dow}"
    try:
        parse_cron(text, day_match=DayMatch.OR, seed="")
        ours = _ours(text, "UTC", START, 5)
    except BadField:
        return
    found = SecondOpinion(START).of(Cron(text))
    if found.refused:
        return
    try:
        theirs = _croniter(text, "UTC", START, 5)
    except Exception:  # noqa: BLE001 - its search fails where its reading does not
        return
    if found == AGREES:
        assert shown(ours) == shown(theirs)
    elif found.parting is not None and ours != theirs:
        first = min(set(ours) ^ set(theirs))
        assert shown([found.parting]) == shown([first])


class Broken:
    """A croniter with each of the faults at once."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise OverflowError("Python int too large to convert to C int")

    @staticmethod
    def expand(text: str) -> object:
        return [[0], [0], ["*"], ["*"], ["*"]], {}


def test_a_fault_of_croniter_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_opinion, "croniter", Broken)
    assert SecondOpinion(START).of(Cron("5 * * * *")) == REFUSES


class Agreeing(Broken):
    """It reads the fields otherwise, and all its times are ours: every hour at :05."""

    asked = 0

    def __init__(self, text: str, start: float, **options: object) -> None:
        self.at = int(start)

    def get_next(self, kind: type[float]) -> float:
        Agreeing.asked += 1
        self.at = (self.at - 300) // 3600 * 3600 + 3900
        return float(self.at)


def test_how_long_it_is_asked_is_bounded_for_a_text_and_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(second_opinion, "croniter", Agreeing)
    opinion = SecondOpinion(START)
    Agreeing.asked = 0
    assert opinion.of(Cron("5 * * * *")) == AGREES
    assert Agreeing.asked == second_opinion.TIMES_COMPARED
    opinion.of(Cron("5 * * * *"))
    assert Agreeing.asked == second_opinion.TIMES_COMPARED
    for blanks in range(2, 60):
        opinion.of(Cron("5" + " " * blanks + "* * * *"))
    assert Agreeing.asked == second_opinion.TIMES_IN_ALL


def test_it_does_not_look_further_than_some_years() -> None:
    found = SecondOpinion(START).of(Cron("0 0 29 2 6-6"))
    assert found.parting is None or found.parting < START + 6 * second_opinion.YEAR_S
