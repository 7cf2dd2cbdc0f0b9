"""`evenkeel lint`: what it prints for people, programs and GitHub, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import click.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mistakes import MISTAKES, Where
from tests.unit.cli.test_plan import MIDNIGHT, POD, scheduled_job

from evenkeel.cli.lint import Finding, github_line, lint, table_line

GOOD = scheduled_job("good", "hourly: {minute: 17}")
BAD = scheduled_job("bad", "schedul: '0 3 * * *', concurencyPolicy: Forbid")


def cron_job(name: str, spec: str) -> str:
    return (
        f"apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {name}}}\n"
        f"spec: {{{spec}, jobTemplate: {{spec: {POD}}}}}\n"
    )


def run(*arguments: str, stdin: str | None = None) -> click.testing.Result:
    return click.testing.CliRunner().invoke(lint, ["--from", MIDNIGHT, *arguments], input=stdin)


def notes(stdin: str) -> list[str]:
    """The messages of the notes on one right manifest."""
    result = run("-f", "-", "-o", "json", stdin=stdin)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, {line["level"] for line in lines} - {"note"}) == (0, set())
    return [line["message"] for line in lines]


# --- codes and forms --------------------------------------------------------------------------


def test_without_a_mistake_it_ends_with_zero() -> None:
    result = run("-f", "-", stdin=GOOD)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no mistakes; 1 schedule without a mistake\n"


def test_every_mistake_is_a_line_and_it_ends_with_one(tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(f"{GOOD}---\n{BAD}")
    result = run("-f", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{file}:9:8: default/bad: spec.schedul: is not a field of a ScheduledJob; did you mean "
        "schedule?",
        f"{file}:9:30: default/bad: spec.concurencyPolicy: is not a field of a ScheduledJob; did "
        "you mean concurrencyPolicy?",
    ]
    assert result.stderr == "2 mistakes; 1 schedule without a mistake\n"


def test_lines_are_in_the_order_of_the_file_whoever_found_them() -> None:
    text = "---\n".join(
        [
            scheduled_job("a", "schedule: '59/5 * * * *'"),
            BAD,
            scheduled_job("c", "interval: {every: 5s}"),
        ]
    )
    result = run("-f", "-", "-o", "json", stdin=text)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["line"] for line in lines] == sorted(line["line"] for line in lines)
    assert [line["level"] for line in lines] == ["note", "mistake", "mistake", "mistake"]


def test_json_has_one_object_a_line() -> None:
    result = run("-f", "-", "-o", "json", stdin=scheduled_job("a", "schedule: 5"))
    assert json.loads(result.stdout) == {
        "level": "mistake",
        "file": "stdin",
        "line": 4,
        "column": 8,
        "object": "default/a",
        "field": "spec.schedule",
        "message": "must be a string; without quotes YAML reads it as a number: put it in quotes",
    }


def test_github_gets_errors_and_notices(tmp_path: Path) -> None:
    file = tmp_path / "a, b: 100%.yaml"
    file.write_text(f"{BAD}---\n{scheduled_job('a', 'schedule: 59/5 * * * *')}")
    result = run("-f", str(file), "-o", "github")
    assert result.exit_code == 1
    where = f"file={tmp_path}/a%2C b%3A 100%25.yaml"
    first, _, third = result.stdout.splitlines()
    assert first == (
        f"::error {where},line=4,col=8,title=default/bad::spec.schedul: is not a field of a "
        "ScheduledJob; did you mean schedule?"
    )
    assert third.startswith(f"::notice {where},line=9,col=8,title=default/a::spec.schedule: cron")


@given(text=st.text(), name=st.text())
def test_nothing_in_a_manifest_ends_a_line_or_begins_a_command_of_its_own(
    text: str, name: str
) -> None:
    finding = Finding("mistake", name, 1, 1, name, text, text)
    assert "\n" not in github_line(finding)
    assert "\r" not in github_line(finding)
    properties = github_line(finding).removeprefix("::error ").partition("::")[0]
    assert [each.partition("=")[0] for each in properties.split(",")] == (
        ["file"] * bool(name and name != "stdin") + ["line", "col"] + ["title"] * bool(name)
    )
    assert table_line(finding).isprintable()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "-f"),
        (["-f", "no-such-file.yaml"], "no-such-file.yaml"),
        (["-f", "-", "-o", "yaml"], "yaml"),
        (["-f", "-", "--from", "yesterday"], "--from"),
    ],
)
def test_wrong_usage_ends_with_two(arguments: list[str], said: str) -> None:
    result = run(*arguments, stdin="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_nothing_to_look_at_is_said() -> None:
    result = run("-f", "-", stdin="")
    assert (result.exit_code, result.stderr) == (
        0,
        "found no ScheduledJob, no CronJob and no RunRequest\n",
    )


def test_a_suspended_schedule_is_looked_at_too() -> None:
    result = run("-f", "-", stdin=scheduled_job("a", "schedule: 0 24 * * *, suspend: true"))
    assert result.exit_code == 1


def test_a_window_that_the_clock_never_shows_is_a_mistake(tmp_path: Path) -> None:
    """Only placing an interval finds it. At the end of time there is no room for any."""
    spec = "interval: {every: 1d}, placement: {window: {start: '22:00', end: '06:00'}}"
    result = run("-f", "-", "--from", "9999-12-31T00:00:00Z", stdin=scheduled_job("a", spec))
    assert result.exit_code == 1
    assert "spec.interval.every: is too long" in result.stdout


def test_what_is_skipped_is_named_and_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("image: x\n")
    (tmp_path / "good.yaml").write_text(GOOD)
    result = run("-f", str(tmp_path))
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"skipped, no Kubernetes object: {tmp_path}/values.yaml: document 1" in result.stderr


# --- notes ------------------------------------------------------------------------------------


def test_where_croniter_reads_a_text_otherwise_the_first_time_is_told() -> None:
    (message,) = notes(scheduled_job("a", "schedule: '59/5 * * * *'"))
    assert "and tools that use it, read 59/5 * * * * otherwise" in message
    assert "otherwise: 2026-03-01 00:05 by the zone's clock is due there, and not here" in message


@pytest.mark.parametrize("text", ["*/5 * * * *", "0 0 L * *", "H 3 * * *", "0 0 * * 5L", "@daily"])
def test_where_croniter_reads_a_text_alike_or_refuses_it_nothing_is_said(text: str) -> None:
    assert notes(scheduled_job("a", f"schedule: '{text}'")) == []


def test_a_cron_job_that_a_clock_change_makes_different_is_told_once() -> None:
    berlin = "schedule: '30 2 * * *', timeZone: Europe/Berlin"
    (message,) = notes(cron_job("a", berlin))
    assert "first at 2026-03-29T01:00:00Z; dst: {gap: Skip, fold: Both}" in message
    assert notes(scheduled_job("a", berlin)) == []


@pytest.mark.parametrize(
    "spec",
    [
        "schedule: '30 12 * * *', timeZone: Europe/Berlin",
        "schedule: '*/5 * * * *', timeZone: Europe/Berlin",
        "schedule: '30 2 * * *', timeZone: Asia/Kolkata",
    ],
)
def test_a_cron_job_that_stays_as_it_is_has_no_note(spec: str) -> None:
    assert notes(cron_job("a", spec)) == []


def test_what_becomes_of_every_is_told() -> None:
    (message,) = notes(cron_job("a", "schedule: '@every 25m'"))
    assert message.startswith("becomes interval: {every: 25m}")


@pytest.mark.parametrize(
    "mistake", [each for each in MISTAKES if each.where is Where.HINT], ids=lambda each: each.name
)
def test_what_was_probably_meant_is_a_note(mistake) -> None:
    (message,) = notes(json.dumps(mistake.manifest()))
    assert mistake.says in message


# --- parameters -------------------------------------------------------------------------------


def with_command(parameters: str, **words: str) -> str:
    fields = ", ".join(f"{field}: {text}" for field, text in words.items())
    pod = POD.replace("image: busybox", f"image: busybox, {fields}")
    assert pod != POD
    text = scheduled_job("a", f"schedule: '@daily', parameters: {parameters}")
    return text.replace(POD, pod)


@pytest.mark.parametrize(
    ("parameters", "words", "at"),
    [
        ("[{name: DAY, value: x}]", {"command": "[sh, -c, 'echo $(DAY)']"}, ["command[2]"]),
        ("[{name: DAY, value: x}]", {"args": "[$(DAY), '$$$(DAY)']"}, ["args[0]", "args[1]"]),
        ("[{name: DAY, value: x, enum: [x]}]", {"args": "[$(DAY)]"}, []),
        ("[{name: DAY, value: x}]", {"args": "['$$(DAY)', $DAY, $(DAYS)]"}, []),
    ],
)
def test_a_command_of_which_a_request_chooses_a_part_is_noted(
    parameters: str, words: dict[str, str], at: list[str]
) -> None:
    result = run("-f", "-", "-o", "json", stdin=with_command(parameters, **words))
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, {line["level"] for line in lines} - {"note"}) == (0, set())
    container = "spec.jobTemplate.spec.template.spec.containers[0]"
    assert [line["field"] for line in lines] == [f"{container}.{each}" for each in at]
    assert all("has no enum: whoever may create RunRequests" in line["message"] for line in lines)


# --- as a process -----------------------------------------------------------------------------


def test_the_command_reads_a_pipe_and_keeps_the_streams_apart() -> None:
    command = [sys.executable, "-W", "error", "-m", "evenkeel.cli", "lint", "-f", "-"]
    command[3:5] = ["-c", "from evenkeel.cli import main; main()"]
    done = subprocess.run(command, input=BAD, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("stdin:4:8: default/bad: spec.schedul: ")
    assert done.stderr == "2 mistakes; 0 schedules without a mistake\n"
