"""The operator as a process of its own, as people run it: started, killed, asked, read.

    with operator(kubeconfig, directory=tmp_path, settings={"GRACE": "5"}) as running:
        running.schedules()
        running.kill()          # as kill -9
        running.start()         # the next process, the same settings
        assert running.terminate() == 0

Called by the tests of this directory and by those on a real node. It ends only what it started,
and prints the end of the log when the test in its `with` fails. Not guaranteed: that the operator
saw anything beyond its first lists; ask the cluster.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .harness.report import tail

PROGRAM = Path(sys.executable).with_name("evenkeel")
READY_S = 180  # alone on two cores it takes 2 s; a machine full of tests is far slower
LOG_LINES = 60
_SAMPLE = re.compile(r"^([a-z_]+(?:\{[^}]*\})?) ([^ ]+)$", re.MULTILINE)


def samples(text: str) -> dict[str, float]:
    """Every sample of what /metrics serves, by its name, labels included."""
    return {name: float(number) for name, number in _SAMPLE.findall(text)}


def schedules_in(found: Mapping[str, float]) -> int:
    """Of all states together."""
    return int(sum(n for name, n in found.items() if name.startswith("evenkeel_schedules{")))


class OperatorEndedError(AssertionError):
    """The operator ended without being told to, or would not begin or end."""


class OperatorProcess:
    def __init__(
        self,
        kubeconfig: Path,
        *,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        name: str = "operator",
    ) -> None:
        self.log = directory / f"{name}.log"
        self.address = ""
        self._command = [
            str(PROGRAM), "run", "--kubeconfig", str(kubeconfig), "--health-listen", "127.0.0.1:0",
            "--log-format", "json", *flags,
        ]  # fmt: skip
        data = {"DATA": str(directory / f"{name}-data")}
        self._environment = environment(data | dict(settings or {}))
        self._process: subprocess.Popen[bytes] | None = None
        self._began_at = 0  # in the log, which all processes of this one write to

    # --- life -----------------------------------------------------------------------------------

    def start(self, *, wait: bool = True) -> None:
        """Begin a process; with `wait`, return once it is ready."""
        assert not self.running, "the process before this one still runs"
        self.address = ""
        self._began_at = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in a terminal is for the tests, not for it
            )
        if wait:
            self.wait_ready()

    def wait_ready(self, *, within_s: float = READY_S) -> None:
        """Return once /readyz says so."""
        deadline = time.monotonic() + within_s
        while not self.ready():
            if not self.running:
                raise OperatorEndedError(self._told("the operator ended while it was starting"))
            if time.monotonic() > deadline:
                raise OperatorEndedError(self._told(f"not ready after {within_s:.0f} s"))
            time.sleep(0.05)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """SIGTERM, SIGSTOP, SIGCONT: without waiting for what comes of it."""
        assert self._process is not None
        self._process.send_signal(number)  # Popen never signals a process that it has reaped

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It stands still for the block, as in a machine that is paused, and goes on after it."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)

    def kill(self) -> None:
        """At once, without its leave."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=60)
            self._process = None

    def terminate(self, *, within_s: float = 30) -> int:
        """SIGTERM, as a Pod gets it, and its grace period; the exit code."""
        self.send(signal.SIGTERM)
        return self.wait(within_s=within_s)

    def wait(self, *, within_s: float) -> int:
        """The exit code of a process that is about to end."""
        assert self._process is not None
        try:
            code = self._process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise OperatorEndedError(self._told(f"it still runs after {within_s:.0f} s")) from None
        self._process = None
        return code

    def require_running(self) -> None:
        """A defect ends the process; a test that looks only at the cluster would not see it."""
        if self._process is not None and not self.running:
            raise OperatorEndedError(self._told("the operator ended by itself"))

    # --- what it says ---------------------------------------------------------------------------

    def get(self, path: str, *, token: str = "") -> tuple[int, str]:
        """Status and text of its HTTP server; 0 while it does not listen."""
        if not self.address:
            found = [line["address"] for line in self.events("listening")]
            if not found:
                return 0, ""
            self.address = found[-1]
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def metrics(self) -> dict[str, float]:
        """Every sample by its name, labels included: `evenkeel_creates_total{verdict="created"}`.

        A counter that was never counted is not there: use `.get(name, 0)`."""
        status, text = self.get("/metrics")
        assert status == 200, f"/metrics answers {status}"
        return samples(text)

    def schedules(self) -> int:
        """How many it knows, whatever state they are in."""
        return schedules_in(self.metrics())

    def lines(self) -> list[dict[str, Any]]:
        """The log of the present process: one mapping a line; what is no JSON has only `text`."""
        found = []
        for line in self.text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                found.append({"event": "", "text": line})
        return found

    def events(self, event: str) -> list[dict[str, Any]]:
        """The lines of the present process about one kind of event."""
        return [line for line in self.lines() if line.get("event") == event]

    def knows_of_its_end(self, schedule: str) -> bool:
        """Whether it has been told that this schedule (namespace/name) is deleted."""
        return any(line["schedule"] == schedule for line in self.events("schedule removed"))

    def text(self) -> str:
        """The log of the present process, as it is."""
        with self.log.open("rb") as log:
            log.seek(self._began_at)
            return log.read().decode(errors="replace")

    def _told(self, sentence: str) -> str:
        return f"{sentence}\n--- the end of {self.log}:\n{tail(self.log, LOG_LINES)}"


@contextmanager
def operator(
    kubeconfig: Path,
    *,
    directory: Path,
    settings: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    name: str = "operator",
    start: bool = True,
) -> Iterator[OperatorProcess]:
    """A process that is ready; ended at the end of the `with`, and shown when that fails.

    `settings` are EVENKEEL_ variables without that prefix."""
    found = OperatorProcess(
        kubeconfig, directory=directory, settings=settings, flags=flags, name=name
    )
    try:
        if start:
            found.start()
        yield found
        found.require_running()
    except BaseException:
        print(f"--- the end of {found.log}:\n{tail(found.log, LOG_LINES)}", file=sys.stderr)
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            found.kill()


def evenkeel(
    *arguments: str, settings: Mapping[str, str] | None = None, timeout_s: float = 180
) -> subprocess.CompletedProcess[str]:
    """A command run to its end: exit code, standard output and standard error."""
    return subprocess.run(
        [str(PROGRAM), *arguments],
        env=environment(settings or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Ours without whatever could point the operator at another cluster or other settings, or
    would have it compile all of its modules at every start, which takes a second."""
    ours = ("EVENKEEL_", "KUBE", "EK_", "PYTHONDONTWRITEBYTECODE")
    kept = {key: text for key, text in os.environ.items() if not key.startswith(ours)}
    return kept | {f"EVENKEEL_{key}": text for key, text in settings.items()}
