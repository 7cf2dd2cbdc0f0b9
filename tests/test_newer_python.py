"""Units and the simulator on a newer Python than this one: Debian 13 has 3.13."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests import newer_python
from tests.cluster.harness import HarnessError
from tests.newer_python import NoneHereError, environment, prepared

# What meets the parts of Python that change: tasks and their factories, loops, threads, executors.
SOME = (
    *("tests/unit/core", "tests/unit/kube", "tests/unit/test_local.py", "tests/unit/test_loop.py"),
    *("tests/unit/test_settings.py", "tests/unit/test_signals.py", "tests/sim/test_clocks.py"),
    *("tests/sim/test_network.py", "tests/sim/test_processes.py"),
)
ALL = ("tests/unit", "tests/sim")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "paths", [SOME, pytest.param(ALL, marks=pytest.mark.long)], ids=["some", "all"]
)
def test_units_and_the_simulator_pass_on_a_newer_python(paths: tuple[str, ...]) -> None:
    try:
        python = prepared()
    except NoneHereError as error:
        pytest.skip(str(error))

    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *paths],
        cwd=newer_python.REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, f"on Python {newer_python.WANTED}:\n{done.stdout}{done.stderr}"
    assert " passed in " in done.stdout.splitlines()[-1]


def test_where_there_is_none_a_sentence_says_why_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def impossible() -> Path:
        raise HarnessError("only root can install mmdebstrap.")

    monkeypatch.setattr(newer_python, "WANTED", "3.99")
    monkeypatch.setattr(newer_python, "ENVIRONMENT", tmp_path / "environment")
    monkeypatch.setattr(newer_python, "_found", lambda: "")
    monkeypatch.setattr(newer_python, "_debian", impossible)
    monkeypatch.setattr(newer_python, "_fetched", lambda: "")

    assert newer_python.main(["tests/unit"]) == 0
    assert capsys.readouterr().err == (
        "harness: no Python 3.99 on this machine, uv fetches none, "
        "and only root can install mmdebstrap.\n"
    )
