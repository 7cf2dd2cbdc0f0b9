"""`make run`: a cluster, the operator and example schedules, until Ctrl-C.

The cluster is kind's where Docker is, else one of ours, with a real node where that is possible.
What is there already is used and stays: a cluster that was running, an operator of another
`make run`. Ctrl-C ends what this call has started and nothing else. A cluster of other people is
only touched if it is named, by --kubeconfig or EVENKEEL_TEST_KUBECONFIG; there the examples go away
at the end and the CRD stays, since with it every ScheduledJob would go. Not guaranteed: that the
operator is up to date when it is another call's.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import os
import shlex
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import choose, existing, images, processes, state
from .cluster import Cluster
from .processes import Process
from .report import HarnessError, failed, say

REPOSITORY = Path(__file__).parents[3]
EXAMPLES = REPOSITORY / "operator" / "evenkeel" / "examples"
PROGRAM = Path(sys.executable).with_name("evenkeel")
NAMESPACE = "examples"
OPERATOR = "operator"
READY_SECONDS = 180
SHUTDOWN_SECONDS = 30  # what a Pod gets
TOLD_SECONDS = 60
USUAL_PORT = 8081


@dataclass(frozen=True, slots=True)
class Running:
    process: Process
    log: Path
    address: str
    store: str
    """The URL of its ledger."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.harness.run")
    parser.add_argument("--name", default="run")
    parser.add_argument("--kubeconfig", type=Path, default=None, help="use this cluster instead")
    parser.add_argument("--port", type=int, default=USUAL_PORT, help="if it is free; 0: any")
    asked = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        with ExitStack() as until_the_end:
            cluster = until_the_end.enter_context(_cluster(asked.name, asked.kubeconfig))
            known = None if cluster.kind == "named" else state.load(asked.name)
            running = until_the_end.enter_context(_operator(cluster, known, asked.port))
            until_the_end.enter_context(_examples(cluster))
            _tell(cluster, running)
            _follow(cluster, running)
    except HarnessError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        pass
    return 0


@contextmanager
def _cluster(name: str, kubeconfig: Path | None) -> Iterator[Cluster]:
    before = state.load(name)
    found_running = before is not None and choose.running(before)
    say("looking for a cluster" if found_running else "starting a cluster")
    cluster = choose.start(name, "node", kubeconfig=kubeconfig)
    try:
        if cluster.kind == "kind" and not found_running:
            images.give_busybox(cluster)
        yield cluster
    finally:
        _uninterrupted()
        if cluster.kind != "named" and not found_running:
            say("stopping the cluster")
            cluster.stop()


@contextmanager
def _operator(cluster: Cluster, known: state.State | None, port: int) -> Iterator[Running]:
    """That of another call, or one of our own."""
    cluster.install_crd()
    if known and (other := _running(known)):
        say("the operator of another `make run` is at work here: this one only watches")
        yield other
        return
    with ExitStack() as until_the_end:
        if known:
            directory = known.directory
        else:
            scratch = until_the_end.enter_context(tempfile.TemporaryDirectory())
            directory = Path(scratch)
        found = _start(cluster, directory, port)
        try:
            if known:
                with state.newest(known) as newest:
                    if newest:
                        newest.guests[OPERATOR] = found.process
                        newest.save()
            _wait_ready(found)
            yield found
        finally:
            _uninterrupted()
            say("stopping the operator")
            processes.end(found.process, within_s=SHUTDOWN_SECONDS)


def _start(cluster: Cluster, directory: Path, port: int) -> Running:
    log = directory / "logs" / "operator.log"
    address = f"127.0.0.1:{_port(port)}"
    ours = ("EVENKEEL_", "KUBE")  # could point it elsewhere
    process = processes.spawn(
        [
            *(PROGRAM, "run", "--kubeconfig", cluster.kubeconfig, "--health-listen", address),
            *("--data", directory / "data", "--log-format", "text", "--verbose"),
        ],
        log=log,
        environment={key: text for key, text in os.environ.items() if not key.startswith(ours)},
    )
    (log.parent / "operator.address").write_text(address)
    return Running(process, log, address, _store(directory))


def _store(directory: Path) -> str:
    """Where the operator keeps its ledger, with --data."""
    return f"sqlite://{directory}/data/evenkeel.db"


def _running(known: state.State) -> Running | None:
    process = known.guests.get(OPERATOR)
    if process is None or not process.alive:
        return None
    log = known.directory / "logs" / "operator.log"
    address = (log.parent / "operator.address").read_text()
    return Running(process, log, address, _store(known.directory))


def _wait_ready(running: Running) -> None:
    def ready() -> bool:
        connection = http.client.HTTPConnection(running.address, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    processes.wait_until(
        ready,
        what="the operator",
        process=running.process,
        log=running.log,
        seconds=READY_SECONDS,
    )


@contextmanager
def _examples(cluster: Cluster) -> Iterator[None]:
    found = cluster.kubectl("get", "namespace", NAMESPACE, check=False).returncode == 0
    if not found:
        cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("-n", NAMESPACE, "apply", "-f", str(EXAMPLES))
    try:
        yield
    finally:
        _uninterrupted()
        if cluster.kind == "named" and not found:
            say(f"removing the namespace {NAMESPACE!r}; the CRD stays")
            cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _tell(cluster: Cluster, running: Running) -> None:
    lines = [f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}"]
    if not existing.kubectl_on_path():
        lines.append(f'export PATH="{Path(cluster.kubectl_program).parent}:$PATH"')
    lines += [
        f"kubectl -n {NAMESPACE} get sj -w",
        f"kubectl -n {NAMESPACE} get jobs,pods",
        f"kubectl -n {NAMESPACE} describe sj placed",
        f"kubectl -n {NAMESPACE} logs -l app=every-20-seconds",
        f"{_shown(PROGRAM)} runs --store {running.store}",
    ]
    metrics = f"http://{running.address}/metrics"
    print("\nEvenkeel runs. To watch, in another terminal:\n", flush=True)
    print("".join(f"    {line}\n" for line in lines))
    pods = "" if cluster.pods == "node" else " Pods are fake here: they end, but do nothing."
    print(f"Metrics: {metrics}   Examples: {EXAMPLES.relative_to(REPOSITORY)}.{pods}")
    print("Ctrl-C ends what this call has started. The operator's log:\n", flush=True)


def _shown(program: Path) -> Path:
    """As somebody types it who is in the repository."""
    return program.relative_to(REPOSITORY) if program.is_relative_to(REPOSITORY) else program


def _follow(cluster: Cluster, running: Running) -> None:
    """Copies the log until Ctrl-C; shows the schedules once the first run has succeeded."""
    shown = False
    with running.log.open() as log:
        while running.process.alive:
            text = log.read()
            sys.stdout.write(text)
            sys.stdout.flush()
            if not shown and "run succeeded" in text:
                shown = True
                print(f"\n$ kubectl -n {NAMESPACE} get sj\n{_table(cluster)}", flush=True)
            time.sleep(0.2)
        sys.stdout.write(log.read())
    raise failed("the operator has ended (`make cluster-down` ends it too).", running.log)


def _table(cluster: Cluster) -> str:
    """Once it tells of the run: the status is written within a second, on a busy machine later."""
    deadline = time.monotonic() + TOLD_SECONDS
    while True:
        time.sleep(1.5)
        table = cluster.kubectl("-n", NAMESPACE, "get", "sj", check=False).stdout
        if "succeeded" in table or time.monotonic() > deadline:
            return table


def _port(wish: int) -> int:
    for port in (wish, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    raise HarnessError("no free port")


def _interrupted(number: int, _: object) -> None:
    raise KeyboardInterrupt


def _uninterrupted() -> None:
    """A second Ctrl-C must not leave half of it running."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    sys.exit(main())
