"""What the workflow for GitHub runs: targets of our Makefile whose tests `make test` runs as well.

A step that is written out in the workflow, or tests that only GitHub runs, would fail there first.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*"))
JOBS = {
    (path.name, name): job
    for path in WORKFLOWS
    for name, job in yaml.safe_load(path.read_text())["jobs"].items()
}
STEPS = [step for job in JOBS.values() for step in job["steps"]]
TARGETS = sorted({step["run"] for step in STEPS if "run" in step})

of_each_job = pytest.mark.parametrize("job", JOBS.values(), ids=["/".join(key) for key in JOBS])


def commands(target: str) -> list[list[str]]:
    """What make would run for it."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.count("'") % 2 == 0]


def paths_of(target: str) -> list[str]:
    """The paths that its pytest collects; without a path in the command, all."""
    (pytest_command,) = [words for words in commands(target) if "pytest" in words]
    return [word for word in pytest_command if word.startswith("tests")] or everything()


def everything() -> list[str]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    paths: list[str] = settings["tool"]["pytest"]["ini_options"]["testpaths"]
    return paths


def test_there_is_one_that_lints_and_tests() -> None:
    suites = {"make test-unit", "make test-sim", "make test-chart", "make e2e"}
    assert {"make lint", *suites} <= set(TARGETS)


@pytest.mark.parametrize("step", TARGETS)
def test_every_step_is_a_target_that_ci_here_runs_too(step: str) -> None:
    assert re.fullmatch(r"make [a-z0-9-]+", step), "more than a target of the Makefile"
    target, here = step.removeprefix("make "), commands("test")
    if all(words in here for words in commands(target)):
        return  # `make test` runs these very commands
    for path in paths_of(target):
        assert (REPOSITORY / path).is_dir()
        assert any(Path(path).is_relative_to(collected) for collected in paths_of("test"))


@of_each_job
def test_every_action_has_a_full_version(job: dict[str, Any]) -> None:
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w./-]+@v\d+\.\d+\.\d+", action)


@of_each_job
def test_every_job_ends_in_time_on_a_runner_of_a_fixed_kind(job: dict[str, Any]) -> None:
    assert 0 < job["timeout-minutes"] <= 60
    assert re.fullmatch(r"ubuntu-\d+\.\d+", job["runs-on"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_it_may_only_read(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    assert document["permissions"] == {"contents": "read"}
    assert not [name for name, job in document["jobs"].items() if "permissions" in job]
    for step in STEPS:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
