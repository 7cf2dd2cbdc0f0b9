"""The output of `evenkeel load`, for people and for programs."""

import datetime as dt
import json
import os
import subprocess
import sys
from typing import Any

import click.testing
import pytest
import yaml

from evenkeel.cli.load import BAR_COLUMNS, load
from evenkeel.cli.plan import plan

MIDNIGHT = "2026-03-01T00:00:00Z"
NOON = "2026-03-01T12:00:00Z"
PAST_SIX = "2026-03-01T06:20:00Z"
SLOT_S = 900
POD = "{template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}"


def scheduled_job(name: str, spec: str) -> str:
    return (
        "apiVersion: evenkeel.dev/v1alpha1\n"
        "kind: ScheduledJob\n"
        f"metadata: {{name: {name}}}\n"
        f"spec: {{{spec}, jobTemplate: {{spec: {POD}}}}}\n"
    )


def manifests(*specs: str) -> str:
    return "---\n".join(scheduled_job(f"job-{n}", spec) for n, spec in enumerate(specs))


def weighing(weight: int) -> str:
    return f"placement: {{weight: {weight}}}"


def run(*arguments: str, stdin: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(load, ["-f", "-", *arguments], input=stdin)


def picture(text: str, *options: str, start: str = MIDNIGHT) -> dict[str, Any]:
    result = run("-o", "json", "--from", start, *options, stdin=text)
    assert (result.stderr, result.exit_code) == ("", 0)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def seconds(stamp: str) -> int:
    return int(dt.datetime.fromisoformat(stamp).timestamp())


MIXED = manifests(
    *[f"interval: {{every: {every}}}, {weighing(weight)}"
      for weight, every in enumerate(["1h", "2h", "90m", "6h", "1d", "25m", "4h", "1h"], start=1)],
    "schedule: '0 * * * *'",
    "schedule: '30 2 * * *', timeZone: Europe/Berlin",
)  # fmt: skip


def test_json_has_exactly_the_documented_fields() -> None:
    found = picture(MIXED)
    measures = ["slots", "distribution_score", "peak_to_mean", "lower_bound"]
    measures += ["busiest_minute", "busiest_second"]
    others = ["one_by_one", "rebalanced", "hash"]
    assert list(found) == [*measures, "placements", *others]
    assert list(found["one_by_one"]) == [*measures, "placements"]
    assert list(found["rebalanced"]) == [*measures, "placements"]
    assert list(found["hash"]) == measures
    for each in (found, *(found[name] for name in others)):
        assert len(each["slots"]) == 96
        assert all(isinstance(weight, int) for weight in each["slots"])
        assert 0 <= each["distribution_score"] <= 1
        assert each["peak_to_mean"] >= each["lower_bound"] >= 1
        mean = sum(each["slots"]) / 96
        assert each["peak_to_mean"] == pytest.approx(max(each["slots"]) / mean)
        for name in ("busiest_minute", "busiest_second"):
            busiest = each[name]
            assert list(busiest) == ["at", "starts", "bound", "fixed_alone", "names"]
            assert busiest["starts"] >= busiest["bound"] >= busiest["fixed_alone"]
    assert {tuple(each) for each in found["placements"]} == {("schedule", "anchor", "first")}


def test_concurrency_is_there_where_durations_are_known() -> None:
    text = manifests("schedule: '0,30 * * * *'", "hourly: {minute: 0}")
    assert "concurrency" not in picture(text)
    for name in ("", "one_by_one", "rebalanced", "hash"):
        found = picture(text, "--duration", "40m")
        each = found[name] if name else found
        # Each half hour one begins; that of 0:30 goes on until 1:10, beside the two of 1:00.
        assert each["concurrency"] == {"peak": 3, "mean": pytest.approx(72 * 40 / 1440)}


def test_the_busiest_minute_names_who_is_behind_it() -> None:
    found = picture(
        manifests("schedule: '0 4 * * *'", "schedule: '0 */4 * * *'", "hourly: {minute: 9}")
    )
    assert found["busiest_minute"] == {
        "at": "2026-03-01T04:00:00Z",
        "starts": 2,
        "bound": 2,
        "fixed_alone": 2,
        "names": ["default/job-0", "default/job-1"],
    }


def test_slots_begin_at_from_rounded_down_and_count_the_weight() -> None:
    daily = manifests(
        f"schedule: '20 6 * * *', {weighing(7)}",  # in the slot that --from lies in
        f"schedule: '14 6 * * *', {weighing(5)}",  # in the last: the slot begins at 06:15
        f"schedule: '0,10 7 * * *', {weighing(2)}",  # two runs in 07:00, three slots on
    )
    slots = picture(daily, start=PAST_SIX)["slots"]
    assert {number: weight for number, weight in enumerate(slots) if weight} == {0: 7, 3: 4, 95: 5}


def test_every_interval_is_placed_and_plan_runs_it_at_that_phase() -> None:
    found = picture(MIXED)
    anchors = {each["schedule"]: seconds(each["anchor"]) for each in found["placements"]}
    firsts = {each["schedule"]: each["first"] for each in found["placements"]}
    assert list(anchors) == [f"default/job-{n}" for n in range(8)]
    planned = click.testing.CliRunner().invoke(
        plan, ["-f", "-", "-o", "json", "--from", MIDNIGHT], input=MIXED
    )
    due: dict[str, list[int]] = {}
    for line in planned.stdout.splitlines():
        each = json.loads(line)
        due.setdefault(each["schedule"], []).append(seconds(each["due"]))
    every_s = dict(zip(anchors, [3600, 7200, 5400, 21600, 86400, 1500, 14400, 3600], strict=True))
    for key, anchor in anchors.items():
        first = anchor + every_s[key]
        assert seconds(firsts[key]) == first
        assert seconds(MIDNIGHT) < first <= seconds(MIDNIGHT) + every_s[key]
        runs = list(range(first, seconds(MIDNIGHT) + 86_400, every_s[key]))
        assert due.get(key, []) == runs


def test_slots_are_what_plan_prints_times_the_weight() -> None:
    """For schedules of fixed times and intervals that divide the day, from a slot's start."""
    found = picture(MIXED)
    planned = click.testing.CliRunner().invoke(
        plan, ["-f", "-", "-o", "json", "--from", MIDNIGHT], input=MIXED
    )
    slots = [0] * 96
    for line in planned.stdout.splitlines():
        each = json.loads(line)
        number = int(each["schedule"].rpartition("-")[2])
        weight = number + 1 if number < 8 else 1
        slots[(seconds(each["due"]) - seconds(MIDNIGHT)) // SLOT_S] += weight
    assert found["slots"] == slots


def test_four_hourly_intervals_share_the_hour_evenly() -> None:
    found = picture(manifests(*["interval: {every: 1h}"] * 4))
    assert set(found["slots"]) == {1}
    assert (found["distribution_score"], found["peak_to_mean"]) == (1.0, 1.0)


def test_a_rebalance_is_never_worse_and_names_the_same_schedules() -> None:
    found = picture(MIXED)
    rebalanced = found["rebalanced"]
    assert rebalanced["distribution_score"] >= found["distribution_score"]
    assert [each["schedule"] for each in rebalanced["placements"]] == [
        each["schedule"] for each in found["placements"]
    ]


def test_rebalanced_anchors_make_the_rebalanced_slots() -> None:
    """Light intervals first, heavy ones last: the worst order for placing one by one."""
    hours = {f"default/job-{n}": n % 3 + 1 for n in range(40)}
    found = picture(
        manifests(
            *[
                f"interval: {{every: {every}h}}, {weighing(25 * n + 1)}"
                for n, every in enumerate(hours.values())
            ]
        )
    )
    slots = [0] * 96
    for n, each in enumerate(found["rebalanced"]["placements"]):
        every_s = hours[each["schedule"]] * 3600
        first_s = seconds(each["anchor"]) + every_s - seconds(MIDNIGHT)
        for second in range(first_s, 86_400, every_s):
            slots[second // SLOT_S] += 25 * n + 1
    assert slots == found["rebalanced"]["slots"]
    assert found["rebalanced"]["placements"] != found["placements"]
    assert found["rebalanced"]["peak_to_mean"] < found["peak_to_mean"]


def test_a_set_is_evener_than_one_by_one_and_that_is_evener_than_by_hash() -> None:
    found = picture(
        manifests(
            *[
                f"interval: {{every: {n % 6 + 1}h}}, {weighing(n % 9 * n % 7 + 1)}"
                for n in range(90)
            ]
        )
    )
    peaks = [each["peak_to_mean"] for each in (found, found["one_by_one"], found["hash"])]
    assert peaks == sorted(peaks)
    assert peaks[0] < peaks[2]
    assert found["peak_to_mean"] == pytest.approx(found["rebalanced"]["peak_to_mean"], rel=0.05)


def test_the_order_of_the_files_does_not_matter_to_the_set() -> None:
    specs = [f"interval: {{every: {n % 5 + 1}h}}, {weighing(n % 7 + 1)}" for n in range(40)]
    named = [scheduled_job(f"job-{n}", spec) for n, spec in enumerate(specs)]
    forwards, backwards = picture("---\n".join(named)), picture("---\n".join(reversed(named)))
    assert forwards["slots"] == backwards["slots"]
    anchors = [
        {each["schedule"]: each["anchor"] for each in found["placements"]}
        for found in (forwards, backwards)
    ]
    assert anchors[0] == anchors[1]
    assert forwards["one_by_one"]["placements"] != list(
        reversed(backwards["one_by_one"]["placements"])
    )


# --- what a cluster holds ---------------------------------------------------------------------


def from_cluster(*items: dict[str, Any]) -> str:
    """What `kubectl get sj,cj -A -o json` prints."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})


def live(name: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "ScheduledJob",
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {**spec, "jobTemplate": {"spec": yaml.safe_load(POD)}},
        "status": status,
    }


def phase(anchor: str, **more: Any) -> dict[str, Any]:
    return {"anchor": anchor, "every": "3600s", "placedAt": "2026-02-01T00:00:00Z", **more}


HOURLY = {"interval": {"every": "1h"}}


def placements_of(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["schedule"]: (each["anchor"], each["first"]) for each in found["placements"]}


def test_a_phase_of_the_status_is_kept() -> None:
    kept = "2026-02-27T07:13:44Z"
    text = from_cluster(live("kept", HOURLY, placement=phase(kept)), live("new", HOURLY))
    found = picture(text)
    for each in (found, found["one_by_one"]):
        at = placements_of(each)
        assert at["ns/kept"] == (kept, "2026-03-01T00:13:44Z")
        assert at["ns/new"][0] != kept
    assert found["slots"][0] == 1
    by_hash = run("--from", MIDNIGHT, stdin=text).stdout
    assert "by hash" in by_hash


@pytest.mark.parametrize(
    ("spec", "placement"),
    [
        pytest.param({"interval": {"every": "2h"}}, {}, id="another interval"),
        pytest.param({**HOURLY, "placement": {"weight": 3}}, {"weight": 2}, id="another weight"),
        pytest.param(HOURLY, {"anchor": "soon"}, id="an anchor that is no time"),
    ],
)
def test_a_phase_that_no_longer_fits_is_not_kept(
    spec: dict[str, Any], placement: dict[str, Any]
) -> None:
    status = {**phase("2026-02-27T07:13:44Z"), **placement}
    found = picture(from_cluster(live("old", spec, placement=status)))
    assert placements_of(found)["ns/old"][0] >= "2026-02-28"


def test_a_schedule_that_has_become_fixed_keeps_no_phase() -> None:
    """Its status is written a moment after the edit."""
    edited = live("edited", {"hourly": {"minute": 3}}, placement=phase("2026-02-27T07:13:44Z"))
    found = picture(from_cluster(edited))
    assert found["placements"] == []
    assert found["busiest_minute"]["at"] == "2026-03-01T00:03:00Z"


def test_paused_schedules_have_no_load() -> None:
    paused = live("paused", HOURLY, pause={"since": MIDNIGHT, "by": "me", "reason": "repair"})
    result = run("-o", "json", "--from", MIDNIGHT, stdin=from_cluster(paused, live("on", HOURLY)))
    assert sum(json.loads(result.stdout)["slots"]) == 24
    assert result.stderr == "paused, so never due: ns/paused\n"


def test_with_requests_a_run_weighs_its_cpu() -> None:
    pod = "containers: [{name: a, image: b, resources: {requests: {cpu: 250m}}}]"
    cron = (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: heavy}\n"
        'spec: {schedule: "0 3 * * *", jobTemplate: {spec: {template: {spec: '
        f"{{restartPolicy: Never, {pod}}}}}}}}}}}\n"
    )
    assert max(picture(cron)["slots"]) == 1
    assert max(picture(cron, "--weigh", "Requests")["slots"]) == 3


def test_what_the_operator_has_learned_of_durations_is_counted() -> None:
    lasting = live("a", HOURLY, placement=phase("2026-02-28T00:20:00Z", expectedSeconds=5400))
    text = from_cluster(lasting, live("unknown", HOURLY))
    assert picture(text)["concurrency"] == {"peak": 2, "mean": 1.5}
    assert picture(text, "--duration", "6m")["concurrency"]["mean"] == pytest.approx(0.2)
    table = run("--from", MIDNIGHT, stdin=text).stdout
    assert "AT ONCE" in table
    assert "1 schedule without a known duration not counted" in " ".join(table.split())


def test_runs_that_do_not_overlap_last_at_most_one_interval() -> None:
    forbid = {**HOURLY, "concurrencyPolicy": "Forbid"}
    found = picture(from_cluster(live("a", forbid)), "--duration", "90m")
    assert found["concurrency"] == {"peak": 1, "mean": 1}


@pytest.mark.parametrize("text", ["10", "0s", "367d", "ten"])
def test_a_bad_duration_is_a_usage_error(text: str) -> None:
    result = run("--duration", text, stdin=MIXED)
    assert result.exit_code == 2
    assert "--duration" in result.stderr


# --- which schedules count --------------------------------------------------------------------


def test_without_intervals_all_three_placements_are_equal() -> None:
    found = picture(manifests("schedule: '*/20 * * * *'", "hourly: {minute: 3}"))
    assert found["placements"] == []
    assert found["slots"] == found["rebalanced"]["slots"] == found["hash"]["slots"]
    table = run("--from", MIDNIGHT, stdin=manifests("schedule: '*/20 * * * *'")).stdout
    assert "as it is" in table
    assert "by hash" not in table


def test_fixed_times_later_in_the_file_are_known_before_intervals_are_placed() -> None:
    found = picture(manifests("interval: {every: 1h}", f"schedule: '5 * * * *', {weighing(9)}"))
    slots_of_first_hour = found["slots"][:4]
    assert slots_of_first_hour[0] == 9
    assert sorted(slots_of_first_hour) == [0, 0, 1, 9]


def test_suspended_schedules_have_no_load() -> None:
    text = manifests("hourly: {minute: 0}, suspend: true", "hourly: {minute: 30}")
    result = run("-o", "json", "--from", MIDNIGHT, stdin=text)
    assert result.exit_code == 0
    assert sum(json.loads(result.stdout)["slots"]) == 24
    assert "suspended, so never due: default/job-0" in result.stderr


def test_a_bad_manifest_is_named_and_the_rest_is_shown() -> None:
    text = manifests("schedule: '61 * * * *'", "hourly: {minute: 30}")
    result = run("-o", "json", "--from", MIDNIGHT, stdin=text)
    assert result.exit_code == 1
    assert sum(json.loads(result.stdout)["slots"]) == 24
    assert "default/job-0: spec.schedule: " in result.stderr


@pytest.mark.parametrize("start", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_the_first_and_last_years_are_no_crash(start: str) -> None:
    result = run("-o", "json", "--from", start, stdin=MIXED)
    assert isinstance(result.exception, SystemExit | None)
    assert len(json.loads(result.stdout)["slots"]) == 96


def test_the_load_of_no_accepted_manifest_is_not_drawn() -> None:
    result = run("--from", MIDNIGHT, stdin=manifests("schedule: '61 * * * *'"))
    assert (result.exit_code, result.stdout) == (1, "")
    (message,) = result.stderr.splitlines()
    assert "default/job-0: spec.schedule: " in message


def test_a_file_without_schedules_has_no_load_and_a_message_says_so() -> None:
    result = run("-o", "json", "--from", MIDNIGHT, stdin="")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert (set(found["slots"]), found["distribution_score"]) == ({0}, 1.0)
    assert "found no ScheduledJob and no CronJob" in result.stderr
    assert run("--from", MIDNIGHT, stdin="").exit_code == 0


# --- the table --------------------------------------------------------------------------------


def test_table_has_a_bar_for_each_hour_of_the_day_in_eighty_columns() -> None:
    result = run("--from", PAST_SIX, stdin=MIXED)
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert "10 schedules" in lines[0]
    assert "2026-03-01T06:15:00Z" in lines[0]
    hours = [line for line in lines if line[2:5] == ":00"]
    assert [line[:2] for line in hours] == [f"{hour:02}" for hour in range(24)]
    assert all("█" in line for line in hours)
    assert len([line for line in hours if "peak" in line]) == 1
    assert max(map(len, lines)) <= 80


def test_table_shows_each_hour_its_own_load_wherever_the_day_begins() -> None:
    text = manifests(
        f"schedule: '0 6 * * *', {weighing(7)}",
        f"schedule: '20,50 6 * * *', {weighing(2)}",
        f"schedule: '0 13 * * *', {weighing(5)}",
    )
    result = run("--from", PAST_SIX, stdin=text)
    hours = {line[:2]: line.split() for line in result.stdout.splitlines() if line[2:5] == ":00"}
    numbers = {
        hour: [word for word in words[1:] if word.isdigit()] for hour, words in hours.items()
    }
    assert numbers["06"] == ["11", "3", "7"]  # load, runs, and the peak beside
    assert numbers["13"] == ["5", "1"]
    assert numbers["07"] == ["0", "0"]


def test_table_does_not_cut_large_numbers() -> None:
    heavy = manifests(*[f"schedule: '* * * * *', {weighing(1000)}"] * 150)
    result = run("--from", MIDNIGHT, stdin=heavy)
    assert result.exit_code == 0
    assert "peak 2,250,000" in result.stdout
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_table_shows_the_placements_side_by_side() -> None:
    result = run("--from", MIDNIGHT, "--duration", "10m", stdin=MIXED)
    found = picture(MIXED, "--duration", "10m")
    for title, each in (
        ("as a set", found),
        ("one by one", found["one_by_one"]),
        ("rebalanced", found["rebalanced"]),
        ("by hash", found["hash"]),
    ):
        (row,) = [line for line in result.stdout.splitlines() if line.startswith(title)]
        assert row.removeprefix(title).split() == [
            f"{each['distribution_score']:.3f}",
            str(max(each["slots"])),
            f"{each['peak_to_mean']:.2f}",
            f"{each['lower_bound']:.2f}",
            str(each["busiest_minute"]["starts"]),
            str(each["busiest_second"]["starts"]),
            str(each["concurrency"]["peak"]),
        ]
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_table_names_who_is_behind_the_busiest_minute_and_points_to_advise() -> None:
    crowd = manifests(*["schedule: '0 4 * * *'"] * 9, "interval: {every: 1h}")
    said = " ".join(run("--from", MIDNIGHT, stdin=crowd).stdout.split())
    assert (
        "Busiest minute: 9 starts at 04:00 UTC (fixed schedules alone: 9; at least 9 in any "
        "placement). default/job-0, default/job-1, default/job-2, default/job-3, default/job-4 "
        "and 4 more" in said
    )
    assert "`evenkeel advise` says which fixed schedules could" in said


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_process_prints_bars_in_any_encoding(encoding: str) -> None:
    done = subprocess.run(
        [
            sys.executable, "-W", "error", "-c", "from evenkeel.cli.load import load; load()",
            "-f", "-", "--from", NOON,
        ],
        input=MIXED.encode(),
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode(encoding).splitlines()
    full = ("█" if encoding == "utf-8" else "#") * BAR_COLUMNS
    assert any(full in line for line in lines)
