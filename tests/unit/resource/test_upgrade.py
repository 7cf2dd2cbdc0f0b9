"""What two versions of the operator must agree on to the letter, side by side in a rolling upgrade.

A Job of another name is a second Job of the same run. Another hash of the same timing is an edit:
its schedule counts from the upgrade on, and what was missed during it never runs. Another hash of
the same template is a dry run of every template there is.

Whoever has to change a text below breaks running installations, and needs a way from old to new.
"""

import pytest
from tests.builders import instant

from evenkeel.model import At, Cron, DayMatch, Fold, Gap, Hourly, Interval, RunId, Schedule, Timing
from evenkeel.resource.job import job_name, schedule_label
from evenkeel.resource.read import read
from evenkeel.resource.timing import timing_hash

RUN = RunId("0a9e8a52-6b1a-4d0e-9a55-1d7a2a4f9c11", instant("10:05"))

TIMINGS = {
    "cron": (Timing(Cron("0 2 * * *")), "5e133bc158b8af9e"),
    "cron, each field": (
        Timing(
            Cron("0 2 13 * 5", DayMatch.AND),
            zone="Europe/Berlin",
            gap=Gap.SKIP,
            fold=Fold.BOTH,
            start=instant("09:00"),
            end=instant("23:00"),
        ),
        "1f360dd04c86a439",
    ),
    "hourly": (Timing(Hourly(17)), "1a1e63437edd7836"),
    "interval": (Timing(Interval(1500, 120, instant("10:00"))), "adc57fb7345bf556"),
    "interval to be placed": (Timing(Interval(1500)), "e09ad3ea12d455f1"),
    "at": (Timing(At(instant("10:05"))), "4a92e36da0a46dba"),
}


def test_a_run_has_the_same_job_in_every_version():
    assert job_name("nightly.report", RUN) == "nightly.report-29540765"
    assert job_name("nightly.report", RUN, 2) == "nightly.report-retry1-29540765"
    beside = RunId(RUN.uid, RUN.due + 7)
    assert job_name("nightly.report", beside) == "nightly.report-1772445907"
    requested = RunId(RUN.uid, RUN.due, "q0abcdef")
    assert job_name("nightly.report", requested) == "nightly.report-q0abcdef-29540765"
    cut = "nightly-nightly-nightly-nightly-nightly-night-llm6j2-29540765"
    assert job_name("nightly-" * 8 + "report", RUN) == cut


def test_a_schedule_with_a_long_name_has_the_same_label_in_every_version():
    assert (
        schedule_label("nightly-" * 9)
        == "nightly-nightly-nightly-nightly-nightly-nightly-nightl-f41fc002"
    )


@pytest.mark.parametrize(("timing", "known"), TIMINGS.values(), ids=TIMINGS)
def test_a_timing_has_the_same_hash_in_every_version(timing, known):
    assert timing_hash(timing) == known


def test_a_template_has_the_same_hash_in_every_version():
    container = {"name": "main", "image": "report:1"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    seen = read(
        {
            "metadata": {
                "uid": "uid",
                "namespace": "shop",
                "name": "report",
                "creationTimestamp": "2026-03-02T10:00:00Z",
                "generation": 1,
            },
            "spec": {"schedule": "0 2 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}},
        }
    )
    assert isinstance(seen, Schedule)
    assert seen.template_hash == "e60696f49f6b58ac3b95"
