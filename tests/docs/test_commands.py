"""The blocks that need no cluster: manifests, `evenkeel plan` and `load`, settings, Python."""

from __future__ import annotations

import functools
import io
import logging
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml
from tests.docs.blocks import Block, block, every, shell
from tests.unit.resource.cases import TEMPLATE
from tests.unit.test_local import VirtualDay

from evenkeel import local
from evenkeel.settings import load

HEAD = {"apiVersion": "evenkeel.dev/v1alpha1", "kind": "ScheduledJob"}


def named(rule: str) -> list[object]:
    return [pytest.param(block, id=block.name) for block in every() if block.name.startswith(rule)]


@pytest.mark.parametrize("block", named("output "))
def test_a_command_says_what_the_page_prints(block: Block) -> None:
    for command in block.commands:
        # A terminal would have colours, and blanks at the ends of lines show on no page.
        said = shell(command.line, environment={"LC_ALL": "C.UTF-8"}).stdout
        assert re.sub(r" +$", "", said, flags=re.MULTILINE) == command.output, command.line


@pytest.mark.parametrize("block", named("file "))
def test_a_manifest_is_accepted_and_has_due_times(block: Block, tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(block.text)
    said = shell("evenkeel plan -f file.yaml --limit 1 -o json", directory=tmp_path)
    assert (said.returncode, said.stdout.count("\n")) == (0, 1), said.stdout


def test_every_request_of_the_pages_fits_its_schedule(tmp_path: Path) -> None:
    """By the clock of a year in which the ranges of the pages are over."""
    (tmp_path / "report.yaml").write_text(block("file report.yaml").text)
    requests = [block for block in every() if block.name.startswith("request ")]
    assert len(requests) >= 3
    for each in requests:
        (tmp_path / each.name.partition(" ")[2]).write_text(each.text)
    said = shell("evenkeel lint -f . --from 2027-01-01T00:00:00Z", directory=tmp_path)
    right = f"1 schedule and {len(requests)} requests without a mistake"
    assert (said.returncode, said.stdout) == (0, f"no mistakes; {right}\n")


def test_every_timing_is_accepted_and_has_due_times(tmp_path: Path) -> None:
    timings = list(yaml.load_all(block("timings").text, yaml.BaseLoader))
    assert len(timings) > 5
    for number, timing in enumerate(timings):
        spec = {**timing["spec"], "jobTemplate": TEMPLATE}
        manifest = {**HEAD, "metadata": {"name": f"timing-{number}"}, "spec": spec}
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(manifest))
    said = shell(
        "evenkeel plan -f . -o json --from 2026-11-18T00:00:00Z --to 2031-01-01T00:00:00Z"
        " | cut -d , -f 1 | sort | uniq -c",
        directory=tmp_path,
    ).stdout
    assert [int(line.split()[0]) for line in said.splitlines()] == [
        50,  # the last days of November 2026 to December 2030
        1505,  # nights
        24080,  # in steps of 90 minutes
        107,  # of every second week after the anchor
        1505,
        1,
    ]


def test_lint_says_what_the_page_prints(tmp_path: Path) -> None:
    (tmp_path / "nightly.yaml").write_text(block("lint-file").text)
    (command,) = block("lint").commands
    said = shell(command.line, directory=tmp_path)
    assert (said.returncode, said.stdout) == (1, command.output)


def test_the_workflow_lints_what_lies_below_its_directory(tmp_path: Path) -> None:
    below = tmp_path / "deploy" / "prod"
    below.mkdir(parents=True)
    (below / "nightly.yaml").write_text(block("lint-file").text)
    workflow = yaml.safe_load(block("lint-workflow").text)
    line = workflow["jobs"]["lint"]["steps"][-1]["run"]
    docker, _, arguments = line.partition("/evenkeel-operator:0.1.0 ")
    assert docker.startswith("docker run ")
    said = shell(f"evenkeel {arguments}", directory=tmp_path)
    assert said.returncode == 1
    assert "::error file=deploy/prod/nightly.yaml,line=6,col=3,title=default/nightly::spec.sch" in (
        said.stdout
    )


def test_the_settings_are_read(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(block("settings").text)
    found = load(file=tmp_path / "settings.yaml", environment={})
    assert found.namespaces == ("shop", "web")
    assert (found.min_interval_s, found.placement_mode) == (60, "Observe")


def test_the_scheduler_runs_without_a_cluster(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a virtual clock: two hours from midnight."""
    day = VirtualDay(hours=1.99)
    monkeypatch.setattr(local, "Schedule", lambda: day.schedule)
    caplog.set_level(logging.INFO)
    printed = io.StringIO()

    with redirect_stdout(printed):
        exec(compile(block("local").text, "local.md", "exec"), {})

    times = functools.partial(re.findall, r"[ T](\d\d:\d\d):00")
    assert times(printed.getvalue()) == ["00:17", "01:17"]
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert times("\n".join(re.findall("^.*sweep.*$", logged, re.MULTILINE))) == [
        *("00:27", "00:52", "01:17", "01:42"),
    ]
