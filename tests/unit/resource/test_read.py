"""What the guarded edge makes of right and wrong ScheduledJobs."""

import copy

import orjson
import pytest
from tests.unit.resource.cases import (
    GOOD,
    LET_THROUGH_BY_THE_SCHEMA,
    REFUSED_BY_BOTH,
    REFUSED_IN_OTHER_WORDS,
    TEMPLATE,
    Bad,
    Json,
    scheduled_job,
    spec,
)

from evenkeel.model import (
    At,
    Concurrency,
    Cron,
    DayMatch,
    Fold,
    Gap,
    Hourly,
    Interval,
    MissedRuns,
    PlacementWish,
    Rejection,
    Retry,
    Schedule,
    Timing,
    Window,
)
from evenkeel.resource.read import TEMPLATE_BYTES, read

NEW_YEAR_2026 = 1_767_225_600
NEW_YEAR_2030 = 1_893_456_000

ALL_BAD = (
    *REFUSED_BY_BOTH,
    *(bad for bad, _ in REFUSED_IN_OTHER_WORDS),
    *LET_THROUGH_BY_THE_SCHEMA,
)


def accepted(raw: Json) -> Schedule:
    result = read(raw)
    assert isinstance(result, Schedule), result
    return result


@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD)
def test_what_is_right_is_accepted(good: Json) -> None:
    accepted(scheduled_job(good))


@pytest.mark.parametrize("bad", ALL_BAD, ids=[bad.why for bad in ALL_BAD])
def test_what_is_wrong_is_refused_with_field_and_sentence(bad: Bad) -> None:
    result = read(scheduled_job(bad.spec))
    assert isinstance(result, Rejection)
    assert result.field == bad.field
    assert bad.sentence in result.sentence
    assert result.sentence
    assert result.reason == bad.reason


@pytest.mark.parametrize("bad", ALL_BAD, ids=[bad.why for bad in ALL_BAD])
def test_a_rejection_says_whose_it_is(bad: Bad) -> None:
    raw = scheduled_job(bad.spec)
    result = read(raw)
    assert isinstance(result, Rejection)
    assert (result.ns, result.name, result.generation) == ("shop", "nightly", 3)
    assert result.uid == raw["metadata"]["uid"]


def test_what_nobody_wrote_has_the_documented_default() -> None:
    raw = scheduled_job(spec(schedule="0 3 * * *"))
    template = orjson.dumps(TEMPLATE, option=orjson.OPT_SORT_KEYS)
    assert accepted(raw) == Schedule(
        uid=raw["metadata"]["uid"],
        ns="shop",
        name="nightly",
        created=NEW_YEAR_2026,
        generation=3,
        timing=Timing(Cron("0 3 * * *", DayMatch.OR), "UTC", Gap.SHIFT, Fold.FIRST),
        template=template,
        template_hash=accepted(raw).template_hash,
        suspend=False,
        starting_deadline_s=None,
        missed_runs=MissedRuns.LATEST,
        catch_up_limit=100,
        concurrency=Concurrency.ALLOW,
        max_queued=20,
        priority=0,
        placement=PlacementWish(weight=None, window=None, pinned=False),
        retry=Retry(limit=0, delay_s=10, factor=2, max_delay_s=3600),
        pause_after_failures=None,
        pending_deadline_s=None,
        keep_succeeded=3,
        keep_failed=1,
        ttl_s=None,
        weight_by_requests=1,
        images=("busybox:1",),
    )


def test_every_field_arrives_in_the_schedule() -> None:
    template = {"spec": {**TEMPLATE["spec"], "ttlSecondsAfterFinished": 60}}
    schedule = accepted(
        scheduled_job(
            spec(
                schedule="0 3 13 * 5",
                dayMatch="And",
                timeZone="Europe/Berlin",
                dst={"gap": "Skip", "fold": "Both"},
                startTime="2026-01-01T01:00:00+01:00",
                endTime="2030-01-01T00:00:00Z",
                suspend=True,
                startingDeadlineSeconds=30,
                missedRuns="All",
                catchUpLimit=7,
                concurrencyPolicy="Queue",
                maxQueued=3,
                priority=-5,
                placement={"weight": 9},
                retry={"limit": 2, "delaySeconds": 1, "factor": 3, "maxDelaySeconds": 90},
                pauseAfterFailures=4,
                pendingDeadlineSeconds=600,
                successfulJobsHistoryLimit=0,
                failedJobsHistoryLimit=5,
                jobTemplate=template,
            )
        )
    )
    assert schedule.timing == Timing(
        Cron("0 3 13 * 5", DayMatch.AND),
        "Europe/Berlin",
        Gap.SKIP,
        Fold.BOTH,
        NEW_YEAR_2026,
        NEW_YEAR_2030,
    )
    assert schedule.suspend
    assert schedule.starting_deadline_s == 30
    assert (schedule.missed_runs, schedule.catch_up_limit) == (MissedRuns.ALL, 7)
    assert (schedule.concurrency, schedule.max_queued) == (Concurrency.QUEUE, 3)
    assert schedule.priority == -5
    assert schedule.placement == PlacementWish(weight=9)
    assert schedule.retry == Retry(limit=2, delay_s=1, factor=3, max_delay_s=90)
    assert (schedule.pause_after_failures, schedule.pending_deadline_s) == (4, 600)
    assert (schedule.keep_succeeded, schedule.keep_failed) == (0, 5)
    assert schedule.ttl_s == 60


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        pytest.param({"hourly": {"minute": 17}}, Hourly(17), id="hourly"),
        pytest.param({"at": "2030-01-01T02:00:00+02:00"}, At(NEW_YEAR_2030), id="at"),
        pytest.param({"interval": {"every": "1w1d1h1m10s"}}, Interval(694_870), id="every unit"),
        pytest.param(
            {"interval": {"every": "1h", "offset": "0s"}}, Interval(3600, 0), id="an offset of 0s"
        ),
        pytest.param(
            {"interval": {"every": "2h", "offset": "1h", "anchor": "2026-01-01T00:00:00Z"}},
            Interval(7200, 3600, NEW_YEAR_2026),
            id="an anchor",
        ),
    ],
)
def test_each_kind_becomes_its_rule(fields: Json, rule: object) -> None:
    assert accepted(scheduled_job(spec(**fields))).timing.rule == rule


def test_a_window_is_kept_in_seconds_after_midnight() -> None:
    window = {"start": "22:30", "end": "06:00"}
    schedule = accepted(scheduled_job(spec(interval={"every": "1d"}, placement={"window": window})))
    assert schedule.placement.window == Window(start_s=81_000, end_s=21_600)


def test_an_explicit_null_is_an_absent_field() -> None:
    with_nulls = accepted(scheduled_job(GOOD["explicit nulls"]))
    assert with_nulls == accepted(scheduled_job(spec(schedule="0 * * * *")))


def test_the_template_is_the_same_bytes_and_hash_in_any_order_of_keys() -> None:
    turned = {
        "spec": {"template": {"spec": dict(reversed(TEMPLATE["spec"]["template"]["spec"].items()))}}
    }
    one = accepted(scheduled_job(spec(schedule="@daily")))
    other = accepted(scheduled_job(spec(schedule="@daily", jobTemplate=turned)))
    assert one.template == other.template
    assert one.template_hash == other.template_hash
    assert orjson.loads(one.template) == TEMPLATE


def test_another_template_has_another_hash() -> None:
    changed = copy.deepcopy(TEMPLATE)
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    one = accepted(scheduled_job(spec(schedule="@daily")))
    other = accepted(scheduled_job(spec(schedule="@daily", jobTemplate=changed)))
    assert one.template_hash != other.template_hash


def test_pod_fields_that_we_do_not_know_stay_in_the_template() -> None:
    newer = copy.deepcopy(TEMPLATE)
    newer["spec"]["template"]["spec"]["fromTheFuture"] = {"deep": [1, {"er": None}]}
    schedule = accepted(scheduled_job(spec(schedule="@daily", jobTemplate=newer)))
    assert orjson.loads(schedule.template) == newer


def test_the_least_interval_is_a_setting() -> None:
    raw = scheduled_job(spec(interval={"every": "1s"}))
    refused = read(raw, min_interval_s=2)
    assert isinstance(refused, Rejection)
    assert refused.reason == "TooFrequent"
    assert isinstance(read(raw, min_interval_s=1), Schedule)


def test_a_manifest_without_namespace_is_in_default_and_counts_from_nowhere() -> None:
    raw = {"metadata": {"name": "nightly"}, "spec": spec(schedule="@daily")}
    schedule = accepted(raw)
    assert (schedule.key, schedule.uid, schedule.created) == ("default/nightly", "", 0)


def test_fields_of_a_newer_crd_are_ignored() -> None:
    raw = scheduled_job(spec(schedule="@daily", blackout={"from": "08:00"}))
    assert accepted(raw) == accepted(scheduled_job(spec(schedule="@daily")))


def of_size(size: int) -> Json:
    """A ScheduledJob whose template has so many bytes of JSON."""
    template = copy.deepcopy(TEMPLATE)
    container = template["spec"]["template"]["spec"]["containers"][0]
    container["args"] = [""]
    container["args"] = ["x" * (size - len(orjson.dumps(template)))]
    return scheduled_job(spec(schedule="0 3 * * *", jobTemplate=template))


def test_a_template_that_would_fill_the_memory_of_all_is_refused_with_what_to_do() -> None:
    assert len(accepted(of_size(TEMPLATE_BYTES)).template) == TEMPLATE_BYTES
    result = read(of_size(TEMPLATE_BYTES + 1))
    assert isinstance(result, Rejection)
    assert result.field == "spec.jobTemplate"
    assert result.sentence == (
        "has 257 KiB of JSON, and at most 256 KiB are taken: keep large texts in a ConfigMap that "
        "the Pod mounts"
    )
