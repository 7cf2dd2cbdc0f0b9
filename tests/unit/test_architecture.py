"""The drawing holds, and `make lint` would say so if it did not.

Each test that plants something plants it in a copy of the tree, and runs there what `make lint`
runs. That the copy without it passes is tested too: a copy that always fails would prove nothing.
"""

from __future__ import annotations

import operator
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SOURCES = REPOSITORY / "operator"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The sources and the rules, somewhere else."""
    hidden = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(SOURCES, tmp_path / "operator", ignore=hidden)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def run(program: str, *arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    # The copy's package, not the one that is installed for editing.
    environment = {**os.environ, "PYTHONPATH": str(at / "operator")}
    return subprocess.run(
        [BIN / program, *arguments],
        cwd=at,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def imports_of(copy: Path) -> subprocess.CompletedProcess[str]:
    return run("lint-imports", "--no-logo", "--no-cache", at=copy)


def rules_of(copy: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    return run("ruff", "check", "--no-cache", "--output-format=concise", *paths, at=copy)


def plant(copy: Path, path: str, text: str) -> None:
    file = copy / "operator" / "evenkeel" / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'"""Planted."""\n\n{text}\n')


def test_make_lint_runs_what_these_tests_run() -> None:
    lint = (REPOSITORY / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]

    for program in ("ruff check", "lint-imports", "mypy", "ruff format --check"):
        assert f"$(BIN)/{program}" in lint


def test_the_tree_as_it_is_passes(copy: Path) -> None:
    done = imports_of(copy)
    assert done.returncode == 0, done.stdout

    done = rules_of(copy, "operator")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("core/planted.py", "import kopf", "evenkeel.core is not allowed to import kopf"),
        (
            "balance/planted.py",
            "import asyncio",
            "evenkeel.balance is not allowed to import asyncio",
        ),
        (
            "core/planted.py",
            "def late() -> None:\n    import socket\n",
            "evenkeel.core is not allowed to import socket",
        ),
        (
            "core/planted.py",
            "from evenkeel import clock",
            "evenkeel.core is not allowed to import time",
        ),
        (
            "core/planted.py",
            "from evenkeel.kube import launcher",
            "evenkeel.core is not allowed to import evenkeel.kube",
        ),
        (
            "web/planted.py",
            "from evenkeel.kube import launcher",
            "evenkeel.web is not allowed to import evenkeel.kube",
        ),
        (
            "core/schedule/planted.py",
            "from evenkeel.core.state import State",
            "evenkeel.core.schedule is not allowed to import evenkeel.core.state",
        ),
        (
            "core/effects.py",
            "from evenkeel.core import state",
            "evenkeel.core.effects is not allowed to import evenkeel.core.state",
        ),
    ],
    ids=[
        "kopf in core",
        "asyncio in balance",
        "a socket inside a function of core",
        "the clock in core, by way of our own module",
        "kube from core, a floor up",
        "kube from web, on the same floor",
        "all schedules from one schedule",
        "a circle inside the core",
    ],
)
def test_an_import_against_the_drawing_is_an_error(
    copy: Path, path: str, text: str, sentence: str
) -> None:
    plant(copy, path, text)

    done = imports_of(copy)

    assert done.returncode != 0
    assert sentence in " ".join(done.stdout.split())


def test_a_room_without_a_floor_is_an_error(copy: Path) -> None:
    plant(copy, "attic/__init__.py", "")

    done = imports_of(copy)

    assert done.returncode != 0
    assert "evenkeel.attic" in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "import time\n\nNOW = time.time()",
        "from time import monotonic_ns as now\n\nNOW = now()",
        "import datetime as dt\n\nNOW = dt.datetime.now(dt.UTC)",
        "import datetime as dt\n\nTODAY = dt.date.today()",
        "import random\n\nLOT = random.random()",
        "import uuid\n\nLOT = uuid.uuid4()",
        "import numpy as np\n\nLOT = np.random.default_rng()",
    ],
    ids=[
        "time",
        "time under another name",
        "datetime.now",
        "date.today",
        "random",
        "uuid4",
        "numpy.random",
    ],
)
def test_time_and_chance_are_only_for_the_clock(copy: Path, text: str) -> None:
    for path in ("core/planted.py", "kube/planted.py"):
        plant(copy, path, text)
    found = copy / "operator" / "evenkeel"

    done = rules_of(copy, str(found / "core" / "planted.py"), str(found / "kube" / "planted.py"))

    assert done.returncode != 0
    assert done.stdout.count("TID251") >= 2
    assert "only evenkeel.clock reads" in done.stdout


def test_the_source_root_does_not_hide_the_standard_library() -> None:
    """Any module beside the package would: the folder has the name of one of Python's own."""
    beside = [path.name for path in SOURCES.iterdir() if path.name != "__pycache__"]

    assert beside == ["evenkeel"]
    assert operator.__file__
    assert operator.__file__.endswith("operator.py")


def append(copy: Path, path: str, text: str) -> None:
    with (copy / "operator" / "evenkeel" / path).open("a") as file:
        file.write(f"\n{text}\n")


def test_a_handler_of_one_schedule_registered_without_a_route_is_an_error(copy: Path) -> None:
    append(
        copy,
        "core/scheduler.py",
        "from evenkeel.core.schedule import creates\n"
        "_OF_ALL[messages.CreateResult] = creates.answered",
    )

    done = imports_of(copy)

    assert done.returncode != 0
    assert "evenkeel.core.scheduler is not allowed to import evenkeel.core.schedule" in done.stdout


def test_a_reason_that_no_list_has_is_an_error(copy: Path) -> None:
    append(
        copy,
        "core/schedule/life.py",
        "def planted(turn: Turn, entry: Entry, run: Run) -> None:\n"
        '    end(turn, entry, run, RunState.SKIPPED, "because")',
    )

    done = run("mypy", "--no-incremental", at=copy)

    assert done.returncode != 0
    assert '"end" has incompatible type "str"; expected "Reason | JobReason | None"' in done.stdout
