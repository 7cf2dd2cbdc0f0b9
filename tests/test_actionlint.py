"""The workflow for GitHub by the rules of actionlint, which knows what a runner would refuse."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cluster.harness import build

REPOSITORY = Path(__file__).parents[1]


@pytest.mark.timeout(900)  # it may have to be built
def test_actionlint_finds_nothing() -> None:
    workflows = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
    assert workflows

    done = actionlint(*workflows)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.timeout(900)
def test_actionlint_finds_what_is_wrong(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps: [{rum: make}]\n")

    done = actionlint(wrong)

    assert done.returncode == 1
    assert 'step must run script with "run"' in done.stdout


def actionlint(*files: Path) -> subprocess.CompletedProcess[str]:
    program = build.built("actionlint") / "actionlint"
    # Without the linters for scripts, which not every machine has: the scripts are make targets.
    command = [program, "-no-color", "-shellcheck=", "-pyflakes=", *files]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
