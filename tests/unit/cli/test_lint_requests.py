"""`evenkeel lint` of RunRequests: alone, beside their schedules, and beside one another."""

from __future__ import annotations

import json
from pathlib import Path

import click.testing
import pytest
from tests.unit.cli.test_lint import cron_job, run
from tests.unit.cli.test_plan import MIDNIGHT, scheduled_job

PARAMETERS = "parameters: [{name: REGION, value: eu, enum: [eu, us]}]"
REPORT = scheduled_job("report", f"schedule: '@hourly', {PARAMETERS}")


def request(name: str, spec: str, *, ns: str = "") -> str:
    where = f", namespace: {ns}" if ns else ""
    return (
        "apiVersion: evenkeel.dev/v1alpha1\nkind: RunRequest\n"
        f"metadata: {{name: {name}{where}}}\nspec: {{{spec}}}\n"
    )


def lines(*documents: str) -> list[str]:
    """`level object: field: message`."""
    result = run("-f", "-", "-o", "json", stdin="---\n".join(documents))
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == any(line["level"] == "mistake" for line in found)
    return [
        f"{line['level']} {line['object']}: {line['field']}: {line['message']}" for line in found
    ]


def test_a_request_beside_its_schedule_is_counted() -> None:
    result = run("-f", "-", stdin=f"{REPORT}---\n{request('again', 'schedule: report')}")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no mistakes; 1 schedule and 1 request without a mistake\n"


def test_a_mistake_has_its_line_as_those_of_schedules_have(tmp_path: Path) -> None:
    file = tmp_path / "again.yaml"
    file.write_text(f"{REPORT}---\n{request('again', 'schedule: report, suspnd: true')}")
    result = run("-f", str(file))
    assert result.exit_code == 1
    assert result.stdout == (
        f"{file}:9:26: default/again: spec.suspnd: is not a field of a RunRequest; did you mean "
        "suspend?\n"
    )
    assert result.stderr == "1 mistake; 1 schedule without a mistake\n"


def test_parameters_are_judged_by_the_schedule_of_the_same_namespace() -> None:
    wrong = "schedule: report, parameters: [{name: REGION, value: mars}]"
    sentence = "spec.parameters[0].value: REGION may be one of eu, us"
    assert lines(REPORT, request("again", wrong)) == [f"mistake default/again: {sentence}"]
    assert lines(request("again", wrong), REPORT) == [f"mistake default/again: {sentence}"]
    assert lines(REPORT, request("again", wrong, ns="shop")) == []


def test_a_schedule_that_is_elsewhere_is_no_mistake() -> None:
    assert lines(request("again", "schedule: report")) == []
    assert lines(cron_job("report", "schedule: '@daily'"), request("a", "schedule: report")) == []


def test_a_near_name_is_noted() -> None:
    (line,) = lines(REPORT, request("again", "schedule: reports"))
    assert line == (
        "note default/again: spec.schedule: these files hold no ScheduledJob reports; did you mean "
        "report?"
    )


@pytest.mark.parametrize(
    ("end", "mistakes"), [("2026-02-28T00:00:00Z", 0), ("2026-03-02T00:00:00Z", 1)]
)
def test_a_range_that_ends_after_from_is_a_mistake(end: str, mistakes: int) -> None:
    assert MIDNIGHT < "2026-03-02"
    spec = f"schedule: report, range: {{from: '2026-02-01T00:00:00Z', to: '{end}'}}"
    found = lines(REPORT, request("again", spec))
    assert len(found) == mistakes
    assert all("spec.range.to: " in line for line in found)


def test_a_range_with_too_many_due_times_is_a_mistake_where_the_schedule_is_known() -> None:
    spec = "schedule: report, range: {from: '2020-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z'}"
    (line,) = lines(REPORT, request("again", spec))
    assert "spec.range: has 52608 due times of report" in line
    assert lines(request("again", spec)) == []
    placed = scheduled_job("report", "interval: {every: 10m}")
    assert lines(placed, request("again", spec)) == []


def test_two_requests_of_one_name_are_a_mistake_and_two_generated_names_are_none() -> None:
    (line,) = lines(*[request("again", "schedule: report")] * 2)
    assert "metadata.name: is defined twice: first in stdin, document 1" in line
    generated = request("again", "schedule: report").replace("{name: again", "{generateName: a-")
    assert lines(generated, generated) == []


def test_a_request_may_have_the_name_of_its_schedule() -> None:
    assert lines(REPORT, request("report", "schedule: report")) == []


@pytest.mark.parametrize("command", ["plan", "load"])
def test_other_commands_take_no_notice_of_requests(command: str) -> None:
    from evenkeel.cli.load import load
    from evenkeel.cli.plan import plan

    text = f"{REPORT}---\n{request('again', 'schedul: report')}"
    arguments = ["-f", "-", "--from", MIDNIGHT, "-o", "json"]
    runner = click.testing.CliRunner()
    result = runner.invoke({"plan": plan, "load": load}[command], arguments, input=text)
    assert (result.exit_code, result.stderr) == (0, "")
