"""The output of `evenkeel advise`, for people, for programs, and for kubectl."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click.testing
import pytest
import yaml
from tests.unit.cli.clusters import as_list, cron_jobs

from evenkeel.cli.advice_text import TIMES
from evenkeel.cli.advise import advise
from evenkeel.cli.load import load

MIDNIGHT = "2026-03-01T00:00:00Z"
POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
TEMPLATE = {"spec": {"template": {"spec": POD}}}
Json = dict[str, Any]


def cron_job(name: str, schedule: str, **spec: Any) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, **spec, "jobTemplate": TEMPLATE},
    }


def scheduled_job(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "ScheduledJob",
        "metadata": {"name": name},
        "spec": {**spec, "jobTemplate": TEMPLATE},
    }


def crowd(schedule: str, count: int, **spec: Any) -> list[Json]:
    slug = "".join(c if c.isalnum() else "x" for c in schedule.lower())
    return [cron_job(f"{slug}-{n}", schedule, **spec) for n in range(count)]


def run(objects: list[Json], *arguments: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(
        advise, ["-f", "-", "--from", MIDNIGHT, *arguments], input=as_list(objects)
    )


def advice(objects: list[Json], *arguments: str) -> Json:
    result = run(objects, "-o", "json", *arguments)
    assert result.exit_code == 0
    assert all(line.startswith("suspended") for line in result.stderr.splitlines())
    found: Json = json.loads(result.stdout)
    return found


def loaded(objects: list[Json]) -> Json:
    """What `load` shows of these objects, without how the intervals were placed."""
    result = click.testing.CliRunner().invoke(
        load, ["-f", "-", "--from", MIDNIGHT, "-o", "json"], input=as_list(objects)
    )
    assert result.exit_code == 0
    return {
        name: value
        for name, value in json.loads(result.stdout).items()
        if name not in ("placements", "one_by_one", "rebalanced", "hash")
    }


def after(objects: list[Json], changed: list[Json]) -> list[Json]:
    """The files with the changed objects in the place of those of the same name."""
    new = {_key(each): each for each in changed}
    return [new.get(_key(each), each) for each in objects]


def _key(each: Json) -> tuple[str, str]:
    return each["metadata"].get("namespace", "default"), each["metadata"]["name"]


# --- steps ------------------------------------------------------------------------------------


def test_the_most_useful_step_comes_first_and_steps_are_cumulative() -> None:
    objects = [*crowd("0 */6 * * *", 30), *crowd("0 * * * *", 50), *crowd("0 3 * * 1", 4)]
    found = advice(objects)
    assert found["now"]["busiest_minute"]["starts"] == 80
    assert [
        (change["pattern"], change["interval"], len(change["schedules"]))
        for step in found["steps"]
        for change in step["changes"]
    ] == [("0 * * * *", {"every": "1h"}, 50), ("0 */6 * * *", {"every": "6h"}, 30)]
    minutes = [step["then"]["busiest_minute"]["starts"] for step in found["steps"]]
    assert minutes == [30, 1]


def test_patterns_that_win_only_together_are_one_step() -> None:
    found = advice([*crowd("0 * * * *", 9), *crowd("30 * * * *", 9)])
    (step,) = found["steps"]
    assert {change["pattern"] for change in step["changes"]} == {"0 * * * *", "30 * * * *"}
    assert step["then"]["busiest_minute"]["starts"] == 1


def test_a_step_that_wins_nothing_is_not_shown() -> None:
    found = advice([*crowd("0 0 1 * *", 40), *crowd("30 */6 * * *", 2), *crowd("* * * * *", 3)])
    assert found["steps"] == []
    (idle,) = [left for left in found["left_alone"] if "nothing to win" in left["reason"]]
    assert set(idle["patterns"]) == {"30 */6 * * *", "* * * * *"}


def test_at_most_ten_steps_are_shown_and_fewer_where_that_is_asked() -> None:
    objects = [job for n in range(14) for job in crowd(f"{n} * * * *", 40 - 2 * n)]
    found = advice(objects)
    assert len(found["steps"]) == 10
    fewer = advice(objects, "--steps", "3")
    assert fewer["steps"] == found["steps"][:3]
    for each, shown in ((found, 10), (fewer, 3)):
        (later,) = each["left_alone"]
        assert later["reason"] == "for later steps, which are not shown"
        assert len(later["patterns"]) == 14 - shown


def test_daily_schedules_are_changed_only_on_request() -> None:
    objects = [*crowd("30 2 * * *", 25, timeZone="Europe/Berlin"), *crowd("0 0 1 * *", 2)]
    assert advice(objects)["steps"] == []
    assert [left["reason"] for left in advice(objects)["left_alone"]] == [
        "once a day; --daily tries a window of two hours either side",
        "on certain days",
    ]
    found = advice(objects, "--daily")
    (step,) = found["steps"]
    (change,) = step["changes"]
    assert change["interval"] == {"every": "24h"}
    assert change["window"] == {"start": "00:30", "end": "04:30"}
    assert step["then"]["busiest_minute"]["starts"] < 3


def test_intervals_with_an_offset_and_hourly_schedules_can_leave_their_time_too() -> None:
    objects = [
        *[scheduled_job(f"hourly-{n}", hourly={"minute": 0}) for n in range(6)],
        *[
            scheduled_job(f"interval-{n}", interval={"every": "7m", "offset": "0s"})
            for n in range(7)
        ],
        scheduled_job("placed", interval={"every": "1h"}),
    ]
    found = advice(objects)
    changes = {
        change["pattern"]: change["interval"]["every"]
        for step in found["steps"]
        for change in step["changes"]
    }
    assert changes == {
        "hourly: {minute: 0}": "1h",
        "interval: {every: 7m, offset: 0s}": "7m",
    }


def test_suspended_and_paused_schedules_are_not_advised_on() -> None:
    paused = scheduled_job("paused", hourly={"minute": 0})
    paused["status"] = {"pause": {"since": MIDNIGHT, "by": "me", "reason": "repair"}}
    result = run([*crowd("0 * * * *", 3, suspend=True), paused], "-o", "json")
    found = json.loads(result.stdout)
    assert (found["steps"], found["left_alone"]) == ([], [])


# --- promises ---------------------------------------------------------------------------------


def changed_by(objects: list[Json], *options: str) -> list[Json]:
    result = run(objects, "-o", "manifests", *options)
    assert result.exit_code == 0
    return list(yaml.safe_load_all(result.stdout))


def assert_load_shows_the_promises(objects: list[Json], *options: str) -> None:
    """The figures of each step are those that `load` shows once the manifests have changed,
    whatever the order of the files."""
    steps = advice(objects, *options)["steps"]
    assert len(steps) > 2
    changed = changed_by(objects, *options)
    for step in steps:
        count = sum(len(change["schedules"]) for change in step["changes"])
        done, changed = changed[:count], changed[count:]
        objects = after(objects, done)
        assert loaded(objects) == step["then"]
    assert changed == []
    assert loaded(objects[::-1]) == steps[-1]["then"]


@pytest.mark.parametrize("options", [(), ("--daily",)], ids=["", "daily"])
def test_load_shows_what_advise_promised(options: tuple[str, ...]) -> None:
    assert_load_shows_the_promises(cron_jobs(3, 120), *options)


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--daily",)], ids=["", "daily"])
@pytest.mark.parametrize("seed", range(10))
def test_load_shows_what_advise_promised_of_nine_hundred(
    seed: int, options: tuple[str, ...]
) -> None:
    assert_load_shows_the_promises(cron_jobs(seed), *options)


def test_the_manifests_of_fewer_steps_are_the_first_of_all() -> None:
    objects = [*crowd("0 */6 * * *", 9), *crowd("0 * * * *", 12)]
    assert changed_by(objects, "--steps", "1") == changed_by(objects)[:12]


# --- manifests and patch ----------------------------------------------------------------------


def test_manifests_say_how_a_cron_job_is_handed_over() -> None:
    objects = [
        *crowd("0 * * * *", 3),
        *[scheduled_job(f"s-{n}", hourly={"minute": 0}) for n in "ab"],
    ]
    result = run(objects, "-o", "manifests")
    comment = [line for line in result.stdout.splitlines() if line.startswith("#")]
    assert comment[0].startswith("# Of these 5 schedules 3 are CronJobs now.")
    commands = [line.removeprefix("#   ").split()[:2] for line in comment if "kubectl" in line]
    assert [command for _, command in commands] == ["patch", "apply", "wait", "delete"]
    documents = list(yaml.safe_load_all(result.stdout))
    assert {each["kind"] for each in documents} == {"ScheduledJob"}
    assert len(documents) == 5


def test_a_patch_holds_scheduled_jobs_only_and_says_what_it_leaves_out() -> None:
    mine = [scheduled_job(f"mine-{n}", hourly={"minute": 0}) for n in range(9)]
    objects = [*crowd("0 * * * *", 3), *mine]
    result = run(objects, "-o", "patch")
    (component,) = yaml.safe_load_all(result.stdout)
    assert component["kind"] == "Component"
    names = [yaml.safe_load(each["patch"])["metadata"] for each in component["patches"]]
    assert names == [{"name": f"mine-{n}"} for n in range(9)]
    assert "default/0xxxxxxxx-0, default/0xxxxxxxx-1, default/0xxxxxxxx-2" in result.stderr
    assert result.exit_code == 0


@pytest.mark.parametrize("form", ["manifests", "patch"])
def test_where_nothing_is_won_nothing_is_written(form: str) -> None:
    result = run([cron_job("one", "0 * * * *")], "-o", form)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no step wins anything" in result.stderr


# --- the text ---------------------------------------------------------------------------------


def said(objects: list[Json], *arguments: str) -> str:
    result = run(objects, *arguments)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    return result.stdout


def test_the_text_says_what_to_change_and_what_it_wins() -> None:
    objects = [*crowd("0 */6 * * *", 30), *crowd("0 3 * * 1", 4), *crowd("0 9-17 * * *", 2)]
    text = " ".join(said(objects).split())
    assert "36 schedules, all of them with fixed times" in text
    assert "In the busiest minute, 12:00 UTC, 32 runs start." in text
    assert f"1. 30 {TIMES} `0 */6 * * *` could become `interval: {{every: 6h}}`:" in text
    assert "busiest minute 32 -> 2, peak 32 -> " in text
    assert "4 on certain days: `0 3 * * 1`" in text
    assert "2 in one part of the day: `0 9-17 * * *`" in text
    assert f"evenkeel advise -f - --from {MIDNIGHT} \\ -o manifests > changed.yaml" in text
    assert "All of these are CronJobs." in text
    assert "kubectl delete cronjob NAME -n NAMESPACE --cascade=orphan" in text


def test_the_commands_that_it_prints_read_the_same_subdirectories(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "all.json").write_text(as_list(crowd("0 */6 * * *", 9)))
    result = click.testing.CliRunner().invoke(advise, ["-f", str(tmp_path), "-R"])
    assert f"evenkeel advise -f {tmp_path} -R --from " in " ".join(
        result.stdout.replace("\\\n", "").split()
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from", "2026-11-22T05:05:05Z", "--weigh", "Requests"),
        ("--from", MIDNIGHT, "--steps", "1"),
        ("--from", MIDNIGHT, "--daily"),
    ],
)
def test_the_commands_that_it_prints_show_and_write_what_it_promises(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    objects = [*crowd("0 * * * *", 5), *crowd("0 */6 * * *", 4), *crowd("30 2 * * *", 8)]
    given = tmp_path / "my jobs.json"
    given.write_text(as_list(objects))
    call = ["-f", str(given), *arguments]
    text = click.testing.CliRunner().invoke(advise, call).stdout
    promised = json.loads(click.testing.CliRunner().invoke(advise, [*call, "-o", "json"]).stdout)
    assert promised["steps"]

    writes, shows = (
        shlex.split(command.replace("\\\n", ""))
        for command in re.findall(r"^  (evenkeel (?:.*\\\n)*.*)$", text, re.MULTILINE)
    )

    assert writes[-2:] == [">", "changed.yaml"]
    written = click.testing.CliRunner().invoke(advise, writes[2:-2]).stdout
    changed = list(yaml.safe_load_all(written))
    assert {_key(each)[1] for each in changed} == {
        key.partition("/")[2]
        for step in promised["steps"]
        for change in step["changes"]
        for key in change["schedules"]
    }
    given.write_text(as_list(after(objects, changed)))
    shows[shows.index("...")] = str(given)
    loaded = click.testing.CliRunner().invoke(load, [*shows[2:], "-o", "json"])
    now = json.loads(loaded.stdout)
    assert now["slots"] == promised["steps"][-1]["then"]["slots"]


def test_the_text_says_so_where_nothing_can_be_won() -> None:
    assert "No schedule has fixed times" in said([scheduled_job("a", interval={"every": "1h"})])
    nothing = " ".join(said([cron_job("a", "0 3 * * 1")]).split())
    assert "No change of a fixed schedule would win" in nothing
    assert "--daily" not in nothing
    daily = " ".join(said([cron_job("a", "0 3 * * *")]).split())
    assert "Those that run once a day were not tried: --daily tries them." in daily
    assert "no schedule to advise on" in run([]).stdout


def test_schedules_that_have_ended_are_left_alone() -> None:
    ended = [scheduled_job(f"gone-{n}", schedule="0 * * * *", endTime=MIDNIGHT) for n in range(3)]
    found = advice([*ended, *crowd("0 * * * *", 2)])
    (left,) = found["left_alone"]
    assert (left["reason"], len(left["schedules"])) == ("that never run again", 3)
    assert [len(step["changes"][0]["schedules"]) for step in found["steps"]] == [2]


def test_cron_jobs_with_every_are_told_of_and_counted_as_placed() -> None:
    found = advice([*crowd("@every 1h", 2), *crowd("0 * * * *", 3)])
    (left,) = found["left_alone"]
    assert left == {
        "reason": "with @every, counted as intervals that the operator places",
        "patterns": ["@every 1h"],
        "schedules": ["default/xeveryx1h-0", "default/xeveryx1h-1"],
    }


def test_a_bad_manifest_is_named_and_the_rest_is_advised_on() -> None:
    result = run([*crowd("0 * * * *", 5), cron_job("bad", "61 * * * *")], "-o", "json")
    assert result.exit_code == 1
    assert "default/bad: spec.schedule: " in result.stderr
    assert len(json.loads(result.stdout)["steps"]) == 1


def test_a_file_without_schedules_is_no_crash() -> None:
    result = run([])
    assert result.exit_code == 0
    assert "found no ScheduledJob and no CronJob" in result.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_process_prints_the_advice_in_any_encoding(encoding: str) -> None:
    done = subprocess.run(
        [
            sys.executable, "-W", "error", "-c", "from evenkeel.cli.advise import advise; advise()",
            "-f", "-", "--from", MIDNIGHT,
        ],
        input=as_list(crowd("0 * * * *", 9)).encode(),
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    times = TIMES if encoding == "utf-8" else "x"
    assert f"1. 9 {times} `0 * * * *` could become" in done.stdout.decode(encoding)
