"""The name of a Job is the lock of its run, says which run that is, and shows whose it is."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import cron, every, instant, once, schedule
from tests.unit.resource.job_names import ATTEMPTS, KINDS, MINUTES, NAMES, SECONDS

from evenkeel.model import BY_SCHEDULE, Hourly, Retry, RunId
from evenkeel.resource.job_name import (
    NamedRun,
    due_of,
    job_name,
    pod_name_problem,
    read_job_name,
)
from evenkeel.rfc3339 import LAST

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

names = st.builds(
    lambda stem, ends: "-".join([stem, *ends])[:253].rstrip("-."),
    st.sampled_from(["a", "b.c", "retry2", "q0abcdef", "0", "x" * 40, "y" * 60])
    | st.from_regex(r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z0-9]{1,60}){0,3}", fullmatch=True),
    st.lists(
        st.sampled_from(["retry", "retry0", "retry1", "retry2", "q0abcdef", "q0", "29540764", "1"]),
        max_size=3,
    ),
)
dues = st.sampled_from([*MINUTES, *SECONDS, 0, 1, 60, 61]) | st.integers(0, LAST)
kinds = st.sampled_from(KINDS) | st.from_regex(r"q0[a-z2-7]{6}", fullmatch=True)
attempts = st.integers(1, 21)


def named(name: str, due: int, kind: str = BY_SCHEDULE, attempt: int = 1) -> str:
    return job_name(name, RunId("uid", due, kind), attempt)


# --- as documented ----------------------------------------------------------------------------

AT = instant("10:04")  # minute 29,540,764 since the epoch
DOCUMENTED = {
    "as CronJob's": (("backup", AT), "backup-29540764"),
    "with dots": (("nightly.report", AT), "nightly.report-29540764"),
    "beside a whole minute": (("backup", AT + 1), "backup-1772445841"),
    "a retry": (("backup", AT, "s", 3), "backup-retry2-29540764"),
    "requested": (("backup", AT, "q0k3v7ab"), "backup-q0k3v7ab-29540764"),
    "requested, a retry": (("backup", AT, "q0k3v7ab", 2), "backup-q0k3v7ab-retry1-29540764"),
    "requested, as long as it is whole": (
        ("a" * 30, AT, "q0k3v7ab"),
        "a" * 30 + "-q0k3v7ab-29540764",
    ),
    "requested, longer": (
        ("a" * 31, AT, "q0k3v7ab"),
        "a" * 23 + "-mhdaws-q0k3v7ab-29540764",
    ),
    "like a retry's": (("backup-retry2", AT), "backup-retry2-4vy5fl-29540764"),
    "like a request's": (("backup-q0abcdef", AT), "backup-q0abcdef-qfii4p-29540764"),
    "as long as CronJob's": (("a" * 52, AT), "a" * 52 + "-29540764"),
    "the same in seconds": (("a" * 52, AT + 1), "a" * 52 + "-1772445841"),
    "longer": (("a" * 53, AT), "a" * 45 + "-vprunj-29540764"),
    "too long with its retry": (("a" * 52, AT, "s", 2), "a" * 40 + "-nqnt3r-retry1-29540764"),
}


@pytest.mark.parametrize(("run", "name"), DOCUMENTED.values(), ids=DOCUMENTED)
def test_a_name_is_as_documented(run, name):
    assert named(*run) == name


# --- the table --------------------------------------------------------------------------------

TABLE = {
    (name, due, kind, attempt): named(name, due, kind, attempt)
    for name, due, kind, attempt in itertools.product(NAMES, MINUTES + SECONDS, KINDS, ATTEMPTS)
}


def test_the_table_has_thirty_names_of_schedules():
    assert len(set(NAMES)) == 30
    assert all(SUBDOMAIN.fullmatch(name) for name in NAMES)
    assert max(map(len, NAMES)) == 252


def test_no_two_runs_share_a_name():
    assert len(set(TABLE.values())) == len(TABLE)


def test_each_name_is_one_that_a_job_may_have():
    """The API server wants a subdomain, and the Job controller a label's value of it."""
    for (name, *_), found in TABLE.items():
        assert SUBDOMAIN.fullmatch(found), found
        assert len(found) <= 63, found
        assert "." in name or LABEL.fullmatch(found), found


def test_each_name_says_which_run_it_is_and_of_which_schedule():
    for (name, due, kind, attempt), found in TABLE.items():
        assert read_job_name(found) == NamedRun(due, kind, attempt)
        assert [other for other in NAMES if read_job_name(found, other)] == [name]


# --- any runs ---------------------------------------------------------------------------------


@given(names, dues, kinds, attempts)
@example("report-retry301633830", AT, BY_SCHEDULE, 1)
def test_what_is_in_a_name_is_read_back(name, due, kind, attempt):
    found = named(name, due, kind, attempt)
    assert len(found) <= 63
    assert SUBDOMAIN.fullmatch(found)
    assert read_job_name(found) == NamedRun(due, kind, attempt)
    assert read_job_name(found, name) == NamedRun(due, kind, attempt)


runs = st.tuples(names, dues, kinds, attempts)


@given(st.lists(runs, min_size=2, unique=True))
def test_different_runs_have_different_names(found):
    assert len({named(*run) for run in found}) == len(found)


@given(
    st.from_regex(r"[a-z0-9]+(-(retry[0-9]{1,3}|q0[a-z2-7]{6}|[0-9]{1,14})){1,4}", fullmatch=True)
)
def test_what_is_read_of_any_name_gives_that_name_again(name):
    """Or a Job that somebody else made would pass for a run's."""
    found = read_job_name(name)
    if found is not None:
        tail = job_name("x", RunId("", found.due, found.kind), found.attempt).removeprefix("x")
        assert name.endswith(tail)


OTHERS = {
    "no stamp": "backup",
    "nothing but a stamp": "-29540764",
    "a minute with a zero before it": "backup-029540764",
    "a whole minute in seconds": "backup-1772445840",
    "after the year 9999": "backup-253402300800",
    "longer than any": "backup-1000000000000",
    "a stamp that int would take": "backup-2954_0764",
    "digits of another script": "backup-\u0662\u0669\u0665\u0664\u0660\u0667\u0666\u0664",
    "a retry before the first": "backup-retry0-29540764",
    "a retry with a zero before it": "backup-retry02-29540764",
    "two retries": "backup-retry1-retry1-29540764",
    "a retry before its request": "backup-retry1-q0abcdef-29540764",
    "two requests": "backup-q0abcdef-q0abcdef-29540764",
    "a line more": "backup-29540764\n",
    "as names were before": "backup-20260302-100400-r2g6t2frm3",
}


@pytest.mark.parametrize("name", OTHERS.values(), ids=OTHERS)
def test_no_run_of_ours_is_called_so(name):
    assert read_job_name(name) is None
    assert due_of(name) is None


STAMPS = {
    "the epoch": (0, "0"),
    "a second after it": (1, "0000000001"),
    "the last second of nine digits": (999_999_999, "0999999999"),
    "the first of ten": (1_000_000_001, "1000000001"),
    "the last minute that is written so": (999_999_999 * 60, "999999999"),
    "the minute after it": (60_000_000_000, "60000000000"),
    "the last instant there is": (LAST, "253402300799"),
}


@pytest.mark.parametrize(("due", "stamp"), STAMPS.values(), ids=STAMPS)
def test_a_stamp_counts_minutes_or_seconds(due, stamp):
    name = named("backup", due)
    assert name == f"backup-{stamp}"
    assert due_of(name) == due


# --- what other programs make of a name -------------------------------------------------------


def by_pattern(pattern: str) -> Callable[[str, int], str | None]:
    compiled = re.compile(pattern)

    def read(name: str, due: int) -> str | None:
        found = compiled.match(name)
        return found[1] if found else None

    return read


def by_last_part(name: str, due: int) -> str | None:
    """All digits, and at least three of them."""
    base, _, last = name.rpartition("-")
    return base if re.fullmatch(r"[0-9]{3,}", last) else None


def by_minutes(name: str, due: int) -> str | None:
    """Eight digits that are minutes, at most a day from when the Job was created."""
    found = re.match(r"^(.*)-(\d{8})$", name)
    return found[1] if found and abs(int(found[2]) * 60 - due) <= 86_400 else None


PROGRAMS = {
    "Istio": by_pattern(r"(.+)-\d{8,10}$"),
    "OpenCost": by_pattern(r"^(.+)-(\d{10}|\d{8})$"),
    "Datadog": by_last_part,
    "OpenTelemetry": by_minutes,
}


def workloads(program: str, name: str, dues: list[int], *, kind="s", attempt=1) -> set[str | None]:
    return {PROGRAMS[program](named(name, due, kind, attempt), due) for due in dues}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_runs_of_a_schedule_are_one_workload(program, name):
    dues = MINUTES if program == "OpenTelemetry" else MINUTES + SECONDS
    (workload,) = workloads(program, name, dues)
    assert workload is not None
    short = len(name) <= 52 and not re.search(r"-(retry[0-9]+|q0[a-z2-7]{6})$", name)
    assert (workload == name) is short


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_workloads_of_two_schedules_differ(program):
    found = [workload for name in NAMES for workload in workloads(program, name, MINUTES)]
    assert len(set(found)) == len(NAMES)


def test_to_open_telemetry_a_run_beside_a_whole_minute_is_a_job_of_its_own():
    assert workloads("OpenTelemetry", "backup", SECONDS) == {None}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", NAMES)
def test_retries_and_requests_are_workloads_of_their_own(program, name):
    """A cost or a duration of theirs does not change what a scheduled run is known to take."""
    found = [
        workloads(program, name, MINUTES, kind=kind, attempt=attempt)
        for kind, attempt in itertools.product(KINDS, ATTEMPTS)
    ]
    assert [len(each) for each in found] == [1] * len(found)
    assert len(set().union(*found)) == len(found)


# --- names of Pods ----------------------------------------------------------------------------


def template(completions: object = 10, mode: object = "Indexed") -> bytes:
    spec = {"completions": completions, "completionMode": mode, "template": {"spec": {}}}
    return orjson.dumps({"spec": spec})


FIT = {
    "not an Indexed Job": cron("* * * * *", name="a" * 52, template=template(mode="NonIndexed")),
    "no mode": cron("* * * * *", name="a" * 52, template=template(mode=None)),
    "no completions": cron("* * * * *", name="a" * 52, template=template(None)),
    "none to complete": cron("* * * * *", name="a" * 52, template=template(0)),
    "completions that are none": cron("* * * * *", name="a" * 52, template=template("10")),
    "no template": cron("* * * * *", name="a" * 52, template=b'{"spec":null}'),
    "all 63 characters": cron("* * * * *", name="a" * 52, template=template(10)),
    "by the hour": schedule(Hourly(5), name="a" * 52, template=template(10)),
    "whole minutes from a whole minute": every(60, name="a" * 52, template=template(10)),
    "once, at a whole minute": once("10:05", name="a" * 52, template=template(10)),
    "seconds in a short name": every(7, name="a" * 50, template=template(10)),
    "retries in a short name": cron(
        "* * * * *", name="a" * 44, retry=Retry(limit=20), template=template(10)
    ),
}


@pytest.mark.parametrize("fits", FIT.values(), ids=FIT)
def test_these_pods_can_be_named(fits):
    assert pod_name_problem(fits) is None


TOO_LONG = {
    "an index of two digits": (cron("* * * * *", name="a" * 52, template=template(11)), 64, 51),
    "an index of three digits": (cron("* * * * *", name="a" * 52, template=template(1000)), 65, 50),
    "every 7 s": (every(7, name="a" * 52, template=template(10)), 65, 50),
    "an offset in seconds": (every(60, offset_s=7, name="a" * 52, template=template(10)), 65, 50),
    "an anchor beside the minute": (
        every(60, anchor="10:00:07", name="a" * 52, template=template(10)),
        65,
        50,
    ),
    "a phase that is still to be found": (
        every(60, offset_s=None, name="a" * 52, template=template(10)),
        65,
        50,
    ),
    "once, beside the minute": (once("10:05:30", name="a" * 52, template=template(10)), 65, 50),
    "a retry": (
        cron("* * * * *", name="a" * 52, retry=Retry(limit=1), template=template(10)),
        65,
        45,
    ),
    "a retry of a requested run": (
        cron("* * * * *", name="a" * 30, retry=Retry(limit=20), template=template(1_000_001)),
        66,
        27,
    ),
    "a name that is cut": (cron("* * * * *", name="a" * 253, template=template(11)), 64, 51),
    "a name with a hash behind it": (
        cron("* * * * *", name="a" * 37 + "-retry2", template=template(1000)),
        64,
        43,
    ),
}


@pytest.mark.parametrize(("seen", "length", "most"), TOO_LONG.values(), ids=TOO_LONG)
def test_these_pods_cannot_be_named_and_a_sentence_says_what_would_help(seen, length, most):
    sentence = pod_name_problem(seen)
    assert sentence is not None
    assert f"it would have {length}; " in sentence
    assert f"at most {most} characters has room" in sentence
    end = "-retry2" if seen.name.endswith("-retry2") else ""
    fits = "a" * (most - len(end)) + end
    assert pod_name_problem(replace(seen, name="a" * most)) is None
    assert pod_name_problem(replace(seen, name=fits)) is None


def test_the_sentence_has_the_name_the_index_and_the_numbers():
    seen = cron("* * * * *", name="a" * 52, template=template(1000))
    assert pod_name_problem(seen) == (
        "the Pods of an Indexed Job are named after it, and a Pod's hostname has at most 63 "
        f"characters: with a Job named {'a' * 52}-99999999 and the index 999, the last of 1000 "
        "completions, it would have 65; a schedule with a name of at most 50 characters has room "
        "for so many"
    )
