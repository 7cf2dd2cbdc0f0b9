"""The output of `evenkeel plan`, for people and for programs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click.testing
import pytest
import yaml

from evenkeel.cli.plan import plan

MIDNIGHT = "2026-03-01T00:00:00Z"
SIX = "2026-03-01T06:00:00Z"
NEXT_MIDNIGHT = "2026-03-02T00:00:00Z"
POD = "{template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}"


def scheduled_job(name: str, spec: str, *, namespace: str = "default") -> str:
    """A ScheduledJob manifest. `spec` holds the other fields than jobTemplate, in flow style."""
    return (
        "apiVersion: evenkeel.dev/v1alpha1\n"
        "kind: ScheduledJob\n"
        f"metadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{{spec}, jobTemplate: {{spec: {POD}}}}}\n"
    )


def run(*arguments: str, stdin: str | None = None) -> click.testing.Result:
    return click.testing.CliRunner().invoke(plan, [*arguments], input=stdin)


def planned(*arguments: str, stdin: str) -> list[tuple[str, str]]:
    """(schedule, due) of each line that `plan -f -` prints as JSON, without a message or error."""
    result = run("-f", "-", "-o", "json", *arguments, stdin=stdin)
    assert (result.stderr, result.exit_code) == ("", 0)
    return lines_of(result.stdout)


def lines_of(text: str) -> list[tuple[str, str]]:
    objects = [json.loads(line) for line in text.splitlines()]
    assert all(list(found) == ["schedule", "due"] for found in objects)
    return [(found["schedule"], found["due"]) for found in objects]


# --- due times --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "minutes"),
    [
        pytest.param("hourly: {minute: 17}", "00:17 01:17 02:17", id="hourly at 17"),
        pytest.param("interval: {every: 4m, offset: 0s, ANCHOR}", "00:04 00:08", id="every 4"),
        pytest.param(
            "interval: {every: 6m, offset: 1m, ANCHOR}", "00:07 00:13 00:19", id="every 6, offset 1"
        ),
        pytest.param(
            "interval: {every: 25m, offset: 2m, ANCHOR}",
            "00:27 00:52 01:17 01:42",
            id="every 25, offset 2",
        ),
        pytest.param(
            "interval: {every: 100m, offset: 0s, ANCHOR}", "01:40 03:20 05:00", id="every 100"
        ),
    ],
)
def test_the_documented_examples_are_exact(spec: str, minutes: str) -> None:
    expected = [("default/it", f"2026-03-01T{minute}:00Z") for minute in minutes.split()]
    spec = spec.replace("ANCHOR", f"anchor: '{MIDNIGHT}'")
    found = planned(
        "--from", MIDNIGHT, "--limit", str(len(expected)), stdin=scheduled_job("it", spec)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("every", "first", "second"),
    [
        pytest.param("45s", "2026-03-01T00:00:45Z", "2026-03-01T00:01:30Z", id="seconds"),
        pytest.param("7m", "2026-03-01T00:07:00Z", "2026-03-01T00:14:00Z", id="off the cron grid"),
        pytest.param("90m", "2026-03-01T01:30:00Z", "2026-03-01T03:00:00Z", id="past the hour"),
        pytest.param("1h30m", "2026-03-01T01:30:00Z", "2026-03-01T03:00:00Z", id="two units"),
        pytest.param("5h", "2026-03-01T05:00:00Z", "2026-03-01T10:00:00Z", id="hours"),
        pytest.param("3d", "2026-03-04T00:00:00Z", "2026-03-07T00:00:00Z", id="days"),
        pytest.param("2w", "2026-03-15T00:00:00Z", "2026-03-29T00:00:00Z", id="weeks"),
    ],
)
def test_every_unit_counts_from_the_anchor(every: str, first: str, second: str) -> None:
    spec = f"interval: {{every: {every}, offset: 0s, anchor: '{MIDNIGHT}'}}"
    found = planned(
        "--from", MIDNIGHT, "--to", "2027-01-01T00:00:00Z", "--limit", "2",
        stdin=scheduled_job("it", spec),
    )  # fmt: skip
    assert [due for _, due in found] == [first, second]


def test_from_is_inclusive_and_to_is_not() -> None:
    hourly = scheduled_job("it", "hourly: {minute: 0}")
    found = planned("--from", MIDNIGHT, "--to", "2026-03-01T02:00:00Z", stdin=hourly)
    assert [due for _, due in found] == [MIDNIGHT, "2026-03-01T01:00:00Z"]


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("2026-03-01T02:00:00+02:00", id="an offset"),
        pytest.param("2026-02-28T19:30:00-04:30", id="an offset in minutes"),
        pytest.param("2026-03-01t00:00:00z", id="small letters"),
        pytest.param("2026-02-28T23:59:59.25Z", id="a fraction goes up to the next second"),
        pytest.param("2026-03-01T00:00:00.000Z", id="a fraction of nothing"),
    ],
)
def test_from_takes_any_rfc_3339_time(start: str) -> None:
    found = planned(
        "--from", start, "--limit", "1", stdin=scheduled_job("it", "hourly: {minute: 0}")
    )
    assert found == [("default/it", MIDNIGHT)]


def test_without_to_a_day_is_planned() -> None:
    found = planned("--from", SIX, stdin=scheduled_job("it", "hourly: {minute: 0}"))
    assert (len(found), found[-1][1]) == (24, "2026-03-02T05:00:00Z")


def test_without_from_the_plan_begins_now() -> None:
    found = planned(stdin=scheduled_job("it", "schedule: '* * * * *'"))
    assert len(found) == 24 * 60


def test_lines_are_ordered_by_due_then_schedule() -> None:
    found = planned(
        "--from", MIDNIGHT, "--to", SIX,
        stdin="---\n".join(
            scheduled_job(name, spec, namespace=namespace)
            for namespace, name, spec in [
                ("b", "late", "schedule: '0 5 * * *'"),
                ("b", "a", "schedule: '0 */2 * * *'"),
                ("a-b", "z", "schedule: '0 */2 * * *'"),
                ("a", "z", "schedule: '0 */4 * * *'"),
                ("a", "x", "hourly: {minute: 0}"),
            ]
        ),
    )  # fmt: skip
    assert found == sorted(found, key=lambda line: (line[1], line[0]))
    assert found[:4] == [(key, MIDNIGHT) for key in ("a-b/z", "a/x", "a/z", "b/a")]
    assert len(found) == 3 + 3 + 2 + 6 + 1


def test_runs_of_one_second_are_ordered_by_schedule() -> None:
    names = [f"job-{n:03}" for n in range(300)]
    every = "interval: {every: 10s, offset: 0s}"
    herd = "---\n".join(scheduled_job(name, every) for name in names[::-1])
    found = planned("--from", MIDNIGHT, "--to", "2026-03-01T00:01:00Z", stdin=herd)
    assert [schedule for schedule, _ in found] == [f"default/{name}" for name in names] * 6


def test_limit_stops_in_the_middle_of_one_second() -> None:
    three = "---\n".join(scheduled_job(name, "hourly: {minute: 0}") for name in "abc")
    assert planned("--from", MIDNIGHT, "--limit", "2", stdin=three) == [
        ("default/a", MIDNIGHT),
        ("default/b", MIDNIGHT),
    ]


def test_limit_of_a_rare_schedule_is_found_far_away() -> None:
    found = planned(
        "--from", MIDNIGHT, "--to", "2100-01-01T00:00:00Z", "--limit", "3",
        stdin=scheduled_job("it", "schedule: '0 0 29 2 *'"),
    )  # fmt: skip
    assert [due[:10] for _, due in found] == ["2028-02-29", "2032-02-29", "2036-02-29"]


def test_the_end_of_time_is_planned_without_a_crash() -> None:
    found = planned(
        "--from", "9999-12-31T23:59:00Z", stdin=scheduled_job("it", "schedule: '59 * * * *'")
    )
    assert found == [("default/it", "9999-12-31T23:59:00Z")]


@pytest.mark.parametrize("start", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_an_interval_that_cannot_be_placed_at_the_ends_of_time_is_no_crash(start: str) -> None:
    text = scheduled_job("it", "interval: {every: 366d}") + "---\n"
    text += scheduled_job("other", "at: '9999-12-31T23:59:59Z'")
    result = run("-f", "-", "-o", "json", "--from", start, stdin=text)
    assert isinstance(result.exception, SystemExit | None)
    assert "Traceback" not in result.stderr


def test_start_and_end_time_bound_the_runs() -> None:
    spec = "hourly: {minute: 0}, startTime: '2026-03-01T02:00:00Z', endTime: '2026-03-01T04:00:00Z'"
    found = planned("--from", MIDNIGHT, stdin=scheduled_job("it", spec))
    assert [due[11:13] for _, due in found] == ["02", "03"]


def test_at_is_one_run_and_a_past_one_is_none() -> None:
    two = "---\n".join(
        [
            scheduled_job("coming", "at: '2026-03-01T07:00:00Z'"),
            scheduled_job("gone", "at: '2026-03-01T05:00:00Z'"),
        ]
    )
    assert planned("--from", SIX, stdin=two) == [("default/coming", "2026-03-01T07:00:00Z")]


def test_a_cron_job_is_planned_like_a_scheduled_job() -> None:
    cron_job = (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: report}\n"
        f"spec: {{schedule: '30 3 * * *', jobTemplate: {{spec: {POD}}}}}\n"
    )
    assert planned("--from", MIDNIGHT, stdin=cron_job) == [
        ("default/report", "2026-03-01T03:30:00Z")
    ]


def test_suspended_schedules_have_no_runs_and_are_named() -> None:
    suspended = scheduled_job("it", "hourly: {minute: 0}, suspend: true")
    result = run("-f", "-", "-o", "json", "--from", MIDNIGHT, stdin=suspended)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "default/it" in result.stderr
    assert "suspended" in result.stderr


# --- placement --------------------------------------------------------------------------------


def test_intervals_without_offset_are_placed_apart_and_keep_their_rhythm() -> None:
    four = "---\n".join(scheduled_job(name, "interval: {every: 1h}") for name in "abcd")
    found = planned("--from", MIDNIGHT, "--to", SIX, stdin=four)
    quarters: dict[str, set[int]] = {}
    for schedule, due in found:
        quarters.setdefault(schedule, set()).add(int(due[14:16]) // 15)
    assert sorted(map(len, quarters.values())) == [1, 1, 1, 1]
    assert set.union(*quarters.values()) == {0, 1, 2, 3}
    assert len(found) == 4 * 6


def test_placement_is_the_same_each_time() -> None:
    text = "---\n".join(scheduled_job(f"j{n}", "interval: {every: 25m}") for n in range(20))
    assert planned("--from", MIDNIGHT, stdin=text) == planned("--from", MIDNIGHT, stdin=text)


# --- files ------------------------------------------------------------------------------------


def test_files_directories_and_standard_input_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(scheduled_job("one", "hourly: {minute: 1}"))
    directory = tmp_path / "more"
    directory.mkdir()
    (directory / "two.yml").write_text(scheduled_job("two", "hourly: {minute: 2}"))
    (directory / "three.json").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "List",
                "items": [
                    {
                        "apiVersion": "evenkeel.dev/v1alpha1",
                        "kind": "ScheduledJob",
                        "metadata": {"name": "three"},
                        "spec": {
                            "hourly": {"minute": 3},
                            "jobTemplate": {"spec": yaml.safe_load(POD)},
                        },
                    }
                ],
            }
        )
    )
    result = run(
        "-f", str(tmp_path / "one.yaml"), "-f", str(directory), "-f", "-", "-o", "json",
        "--from", MIDNIGHT, "--limit", "4",
        stdin=scheduled_job("four", "hourly: {minute: 4}"),
    )  # fmt: skip
    assert result.exit_code == 0
    assert [schedule for schedule, _ in lines_of(result.stdout)] == [
        "default/one", "default/two", "default/three", "default/four",
    ]  # fmt: skip


def test_other_kinds_are_ignored() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" + scheduled_job(
        "it", "hourly: {minute: 0}"
    )
    result = run("-f", "-", "-o", "json", "--from", MIDNIGHT, "--limit", "1", stdin=text)
    assert (result.exit_code, lines_of(result.stdout)) == (0, [("default/it", MIDNIGHT)])


def test_of_two_manifests_with_one_name_the_second_is_refused() -> None:
    text = (
        scheduled_job("it", "hourly: {minute: 5}")
        + "---\n"
        + scheduled_job("it", "hourly: {minute: 7}")
    )
    result = run("-f", "-", "-o", "json", "--from", MIDNIGHT, "--limit", "1", stdin=text)
    assert (result.exit_code, lines_of(result.stdout)) == (
        1, [("default/it", "2026-03-01T00:05:00Z")],
    )  # fmt: skip
    assert "default/it: metadata.name" in result.stderr


def test_subdirectories_are_read_with_recursive(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "it.yaml").write_text(scheduled_job("it", "hourly: {minute: 0}"))
    arguments = ("-f", str(tmp_path), "-o", "json", "--from", MIDNIGHT, "--limit", "1")
    without = run(*arguments)
    assert (without.exit_code, without.stdout) == (1, "")
    assert "with -R its subdirectories are read, too" in without.stderr
    assert lines_of(run(*arguments, "-R").stdout) == [("default/it", MIDNIGHT)]


def test_yaml_of_a_directory_that_is_no_manifest_is_skipped_and_named(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("image: x\n")
    (tmp_path / "it.yaml").write_text(scheduled_job("it", "hourly: {minute: 0}"))
    result = run("-f", str(tmp_path), "-o", "json", "--from", MIDNIGHT, "--limit", "1")
    assert (result.exit_code, lines_of(result.stdout)) == (0, [("default/it", MIDNIGHT)])
    assert result.stderr == (f"skipped, no Kubernetes object: {tmp_path}/values.yaml: document 1\n")


def test_explain_says_on_standard_error_how_each_schedule_is_read() -> None:
    text = "---\n".join(
        [
            scheduled_job("alike", "schedule: '0 3 * * *', timeZone: Europe/Berlin"),
            scheduled_job("other", "schedule: '59/5 * * * *'"),
            scheduled_job("refused", "schedule: '0 0 * * 5L'"),
            scheduled_job("placed", "interval: {every: 25m}"),
            scheduled_job("past", "at: '2020-01-01T00:00:00Z'"),
        ]
    )
    arguments = ("-f", "-", "-o", "json", "--from", MIDNIGHT)
    result = run(*arguments, "--explain", stdin=text)
    assert result.stdout == run(*arguments, stdin=text).stdout
    said = result.stderr.splitlines()
    first = said.pop(-2)
    assert first.startswith("default/placed: every 25m in UTC, placed here; next due 2026-03-01T00")
    version = said[2].split()[3]
    assert said == [
        "default/alike: 0 3 * * * in Europe/Berlin; next due 2026-03-01T02:00:00Z",
        "default/other: 59/5 * * * * in UTC; next due 2026-03-01T00:59:00Z",
        f"default/other: note: croniter {version} and tools that use it, read 59/5 * * * * "
        "otherwise: 2026-03-01 00:05 by the zone's clock is due there, and not here",
        "default/refused: 0 0 * * 5L in UTC; next due 2026-03-27T00:00:00Z",
        f"default/refused: note: croniter {version} and tools that use it, refuse 0 0 * * 5L",
        "default/past: once at 2020-01-01T00:00:00Z in UTC; never due again",
    ]


POISON = [
    pytest.param("schedule: '0 0 31 2 *'", "schedule", id="a day that never comes"),
    pytest.param("schedule: '0 0 1 1 * 9999'", "schedule", id="six fields"),
    pytest.param("schedule: '" + "0," * 2_500 + "0 * * * *'", "schedule", id="5,000 characters"),
    pytest.param("schedule: '٣ * * * *'", "schedule", id="digits that are not ASCII"),
    pytest.param("schedule: 'R * * * *'", "schedule", id="R"),
    pytest.param("schedule: '0 0 15W * *'", "schedule", id="W"),
    pytest.param("schedule: '0 22-2 * * *'", "schedule", id="a reversed range"),
    pytest.param("schedule: '@every 5m'", "schedule", id="@every"),
    pytest.param("schedule: '60 * * * *'", "schedule", id="minute 60"),
    pytest.param("schedule: ''", "schedule", id="an empty schedule"),
    pytest.param("schedule: 5", "schedule", id="a number for a schedule"),
    pytest.param("interval: {every: 0s}", "interval.every", id="interval 0"),
    pytest.param("interval: {every: -5m}", "interval.every", id="a negative interval"),
    pytest.param(
        "interval: {every: 99999999999999999999w}", "interval.every", id="a huge interval"
    ),
    pytest.param("interval: {every: 1m, offset: 2m}", "interval.offset", id="offset beyond every"),
    pytest.param("hourly: {minute: 60}", "hourly.minute", id="hourly at 60"),
    pytest.param("at: '9999-99-99T00:00:00Z'", "at", id="month 99"),
    pytest.param("hourly: {minute: 0}, timeZone: Mars/Olympus", "timeZone", id="an unknown zone"),
    pytest.param(
        "interval: {every: 1d}, placement: {window: {start: '22:00', end: '22:00'}}",
        "placement.window",
        id="a window without width",
    ),
    pytest.param("suspend: false", "schedule", id="none of the four"),
]


@pytest.mark.parametrize(("spec", "field"), POISON)
def test_a_wrong_manifest_is_named_and_the_rest_is_planned(
    spec: str, field: str, tmp_path: Path
) -> None:
    file = tmp_path / "poison.yaml"
    file.write_text(
        "---\n".join(
            [
                scheduled_job("before", "hourly: {minute: 0}"),
                scheduled_job("poison", spec),
                scheduled_job("after", "hourly: {minute: 0}"),
            ]
        )
    )
    result = run("-f", str(file), "-o", "json", "--from", MIDNIGHT, "--to", "2026-03-01T00:30:00Z")
    assert result.exit_code == 1
    assert lines_of(result.stdout) == [("default/after", MIDNIGHT), ("default/before", MIDNIGHT)]
    (message,) = result.stderr.splitlines()
    assert "poison.yaml" in message
    assert "default/poison" in message
    assert field in message
    assert "Traceback" not in message
    assert len(message) < 500


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [1\n", id="not YAML"),
        pytest.param("\x00\x01", id="not text"),
        pytest.param("just a sentence\n", id="not an object"),
        pytest.param("kind: ScheduledJob\napiVersion: evenkeel.dev/v1alpha1\n", id="no name"),
        pytest.param(
            "kind: ScheduledJob\napiVersion: evenkeel.dev/v1alpha1\nmetadata: {name: [1]}\n",
            id="wrong types everywhere",
        ),
    ],
)
def test_a_file_that_cannot_be_read_does_not_stop_the_others(text: str, tmp_path: Path) -> None:
    (tmp_path / "a-bad.yaml").write_text(text)
    (tmp_path / "b-good.yaml").write_text(scheduled_job("good", "hourly: {minute: 0}"))
    result = run("-f", str(tmp_path), "-o", "json", "--from", MIDNIGHT, "--limit", "1")
    assert result.exit_code == 1
    assert lines_of(result.stdout) == [("default/good", MIDNIGHT)]
    assert "a-bad.yaml" in result.stderr
    assert "Traceback" not in result.stderr


# --- usage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "-f", id="no file"),
        pytest.param(
            ["-f", "no-such-file.yaml"], "no-such-file.yaml", id="a file that is not there"
        ),
        pytest.param(["-f", "-", "--from", "yesterday"], "--from", id="from is no time"),
        pytest.param(["-f", "-", "--from", "2026-03-01T00:00:00"], "--from", id="from has no zone"),
        pytest.param(["-f", "-", "--from", "2026-02-30T00:00:00Z"], "--from", id="no such day"),
        pytest.param(["-f", "-", "--from", SIX, "--to", MIDNIGHT], "--to", id="to before from"),
        pytest.param(["-f", "-", "--from", SIX, "--to", SIX], "--to", id="to equals from"),
        pytest.param(["-f", "-", "-o", "yaml"], "yaml", id="an unknown form"),
        pytest.param(["-f", "-", "--limit", "-1"], "--limit", id="a negative limit"),
    ],
)
def test_wrong_usage_ends_with_two(arguments: list[str], said: str) -> None:
    result = run(*arguments, stdin="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


# --- the table --------------------------------------------------------------------------------


def test_table_shows_due_schedule_and_rule_in_eighty_columns() -> None:
    text = "---\n".join(
        [
            scheduled_job("hourly-report", "hourly: {minute: 17}"),
            scheduled_job("nightly", "schedule: '30 2 * * *', timeZone: Europe/Berlin"),
        ]
    )
    result = run("-f", "-", "--from", MIDNIGHT, "--limit", "3", stdin=text)
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines[0].split() == ["DUE", "LOCAL", "SCHEDULE", "WHEN"]
    assert lines[1].startswith("2026-03-01T00:17:00Z  Sun 00:17 +00:00  default/hourly-report  ")
    assert lines[3].startswith("2026-03-01T01:30:00Z  Sun 02:30 +01:00  default/nightly")
    assert "30 2 * * *" in lines[3]
    assert max(map(len, lines)) <= 80


def test_table_leaves_out_local_time_when_all_is_utc() -> None:
    result = run("-f", "-", "--from", MIDNIGHT, stdin=scheduled_job("it", "hourly: {minute: 0}"))
    assert result.stdout.splitlines()[0].split() == ["DUE", "SCHEDULE", "WHEN"]


def test_a_refused_manifest_is_the_only_message_if_there_is_no_other() -> None:
    never = scheduled_job("it", "at: '2026-01-01T00:00:00Z', endTime: '2026-01-01T00:00:00Z'")
    result = run("-f", "-", "--from", MIDNIGHT, stdin=never)
    assert (result.exit_code, result.stdout) == (1, "")
    (message,) = result.stderr.splitlines()
    assert message == "stdin: document 1: default/it: spec.at: is not before endTime: it never runs"


def test_a_message_tells_schedules_that_are_not_due_from_refused_ones() -> None:
    past = scheduled_job("past", f"at: '{MIDNIGHT}'")
    result = run("-f", "-", "--from", SIX, stdin=f"{past}\n---\n{scheduled_job('bad', 'at: soon')}")
    assert (result.exit_code, result.stdout) == (1, "")
    refused, nothing = result.stderr.splitlines()
    assert "default/bad: spec.at" in refused
    assert "no accepted schedule is due from" in nothing


def test_a_message_says_that_no_schedule_is_due() -> None:
    result = run("-f", "-", "--from", SIX, stdin=scheduled_job("it", f"at: '{MIDNIGHT}'"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no schedule is due from" in result.stderr


# --- as a process -----------------------------------------------------------------------------

COMMAND = [sys.executable, "-W", "error", "-c", "from evenkeel.cli.plan import plan; plan()"]


def test_process_ends_with_the_code_and_keeps_the_streams_apart(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(
        scheduled_job("good", "hourly: {minute: 0}")
        + "---\n"
        + scheduled_job("bad", "schedule: nonsense")
    )
    done = subprocess.run(
        [*COMMAND, "-f", str(file), "-o", "json", "--from", MIDNIGHT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert len(lines_of(done.stdout)) == 24
    assert "default/bad" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(scheduled_job("it", "schedule: '* * * * *'"))
    with subprocess.Popen(
        [*COMMAND, "-f", str(file), "-o", "json", "--to", "2999-01-01T00:00:00Z"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_after_ctrl_c_it_ends_without_a_message(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(scheduled_job("it", "schedule: '* * * * *'"))
    with subprocess.Popen(
        [*COMMAND, "-f", str(file), "-o", "json", "--to", "2999-01-01T00:00:00Z"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read() == b""
        assert process.wait(60) == 130
