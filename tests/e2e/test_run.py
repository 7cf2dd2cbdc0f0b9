"""`make run`, as a person meets it: start, watch, call again, Ctrl-C."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster, choose, existing, run, state, stop
from tests.cluster.harness.cluster import OUR_CRDS
from tests.cluster.world import World, eventually, names
from tests.docs.blocks import block
from tests.docs.words import said

pytestmark = pytest.mark.timeout(900)  # it starts a cluster of its own

REPOSITORY = Path(__file__).parents[2]


class Call:
    """A `make run` in a terminal of its own."""

    def __init__(self, output: Path, *command: str, folder: Path = REPOSITORY) -> None:
        self._output = output
        kept = {k: v for k, v in os.environ.items() if not k.startswith("EVENKEEL_")}
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env={**kept, "PYTHONUNBUFFERED": "1"},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self._output.read_text()

    def says(self, words: str, *, within_s: float = 240) -> None:
        deadline = time.monotonic() + within_s
        while words not in self.said:
            assert self._process.poll() is None, f"it ended and said:\n{self.said}"
            assert time.monotonic() < deadline, f"no {words!r} in {within_s:.0f} s:\n{self.said}"
            time.sleep(0.1)

    def ctrl_c(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(timeout=180)

    def ctrl_c_in_terminal(self) -> None:
        """A terminal tells all that it runs: bash, make and what make calls."""
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(timeout=180)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[Callable[..., Call]]:
    calls: list[Call] = []

    def start(*arguments: str) -> Call:
        # The usual port may be taken, between a look and its use, by whoever else runs this test.
        command = (sys.executable, "-m", "tests.cluster.harness.run", "--port", "0", *arguments)
        calls.append(Call(tmp_path / f"{secrets.token_hex(3)}.txt", *command))
        return calls[-1]

    yield start
    for call in calls:
        call.kill()


@pytest.fixture
def name(make_run: Callable[..., Call]) -> Iterator[str]:
    name = f"test-{secrets.token_hex(3)}"
    yield name
    stop(name)


def test_from_nothing_to_a_run_that_succeeded_and_back(
    name: str, make_run: Callable[..., Call]
) -> None:
    first = make_run("--name", name)
    first.says("Evenkeel runs.")
    assert f"export KUBECONFIG={state.directory(name)}/kubeconfig" in first.said
    first.says("$ kubectl -n examples get sj", within_s=240)
    table = first.said.rpartition("$ kubectl -n examples get sj")[2]
    assert "succeeded" in table
    assert "every 20s + 5s" in table

    shown = re.search(r"^    (\S*evenkeel runs --store \S+)$", first.said, re.MULTILINE)
    assert shown
    eventually(lambda: "every-20-seconds  succeeded" in history(shown[1]), "its history is kept")

    second = make_run("--name", name)
    second.says("the operator of another `make run` is at work here")
    second.says("run succeeded")  # it shows the same log
    assert second.ctrl_c() == 0
    assert "stopping" not in second.said
    found = state.load(name)
    assert found
    assert choose.running(found)
    assert found.guests[run.OPERATOR].alive

    assert first.ctrl_c() == 0
    assert "stopping the operator" in first.said
    assert name not in state.names()
    assert not [name for name, process in everything(found) if process.alive]


@pytest.mark.long
def test_what_a_killed_call_leaves_goes_with_the_cluster(
    name: str, make_run: Callable[..., Call]
) -> None:
    call = make_run("--name", name)
    call.says("Evenkeel runs.")
    found = state.load(name)
    assert found
    assert found.guests[run.OPERATOR].alive
    call.kill()  # from here on any call of the harness on this machine may sweep it away

    stop(name)

    assert not [name for name, process in everything(found) if process.alive]


def test_a_named_cluster_is_given_back_as_it_was_but_for_the_crd(
    node_cluster: Cluster, make_run: Callable[..., Call]
) -> None:
    call = make_run("--kubeconfig", str(node_cluster.kubeconfig))
    call.says("$ kubectl -n examples get sj", within_s=240)

    assert call.ctrl_c() == 0

    assert "stopping the cluster" not in call.said
    assert "the CRD stays" in call.said
    world = World(node_cluster)

    def namespaces() -> list[str]:
        return names(world.items("/api/v1/namespaces"))

    eventually(lambda: run.NAMESPACE not in namespaces(), "the examples are gone", within_s=150)
    world.close()
    crds = node_cluster.kubectl("get", "crd").stdout
    assert all(name in crds for name in OUR_CRDS)


def test_the_first_page_from_an_empty_directory(tmp_path: Path) -> None:
    """By the words of README.md and docs/trying.md alone, in a clone of the last commit."""
    first, second = (command.line for command in block("e2e front-door-make-run").commands)
    shown = block("e2e make-run")
    assert [command.line for command in shown.commands[:2]] == [first, second]
    script = f"{first.replace('<this repository>', shlex.quote(str(REPOSITORY)))}\nexec {second}"
    here = state.load("run")
    call = Call(tmp_path / "said.txt", "bash", "-ec", script, folder=tmp_path)
    try:
        call.says("$ kubectl -n examples get sj", within_s=600)
        for line in shown.text.splitlines():
            if line.startswith("    kubectl"):
                assert line in call.said
        kubeconfig = re.search(r"^    export KUBECONFIG=(.*)$", call.said, re.MULTILINE)
        assert kubeconfig
        cluster = Cluster(
            kind="named",
            pods="node",
            kubeconfig=Path(kubeconfig[1]),
            server="",
            kubectl=existing.kubectl(),
        )
        logs = r"(due at 20..-..-..T..:..:.[05]Z, it is ..:..:..\n)+"
        # Not while a container of the next run is being made: kubectl ends with an error then.
        eventually(lambda: re.fullmatch(logs, said("make-run-logs", cluster)), "logs of the runs")
    finally:
        call.ctrl_c_in_terminal()
    assert here is not None or "run" not in state.names()


def history(command: str) -> str:
    """What the command that `make run` prints says."""
    return subprocess.run(
        shlex.split(command), cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout


def everything(found: state.State) -> list[tuple[str, state.Process]]:
    return [*found.processes.items(), *found.guests.items()]
