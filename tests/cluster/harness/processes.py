"""Starts, watches and ends the processes of a cluster, and only those.

Called by control_plane.py and kwok.py. A process is known by its pid and the moment it started,
so a pid that the kernel has given to somebody else since is never signalled. Processes outlive
the Python process that started them (`up` returns, the cluster stays). Not guaranteed: that a
process killed between its start and the next write of the state file is found again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .report import HarnessError, failed


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    started: str  # boot and clock tick: what tells two processes of one pid apart

    @property
    def alive(self) -> bool:
        return _look(self.pid) == (self.started, True)


def this_process() -> Process:
    return known(os.getpid())


def child_of(process: Process) -> Process:
    """The only child of a process that has one."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return known(int(children[0]))


def spawn(command: Sequence[str | Path], *, log: Path, environment: Mapping[str, str]) -> Process:
    """Starts `command` in a session of its own, so that Ctrl-C in a terminal does not reach it."""
    argv = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        # Not subprocess.Popen: its objects complain (ResourceWarning) about children that live on.
        pid = os.posix_spawn(
            argv[0],
            argv,
            dict(environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE],  # Python ignores it, and a child would inherit that
        )
    except OSError as error:
        raise HarnessError(f"cannot start {argv[0]}: {error.strerror}") from error
    return known(pid)


def wait_until(
    ready: Callable[[], bool], *, what: str, process: Process, log: Path, seconds: float
) -> None:
    """Returns once `ready()`; raises with the log's end when the process ends or time is up."""
    deadline = time.monotonic() + seconds
    while not ready():
        if not process.alive:
            raise failed(f"{what} ended while it was starting.", log)
        if time.monotonic() > deadline:
            raise failed(f"{what} was not ready after {seconds:.0f} seconds.", log)
        time.sleep(0.05)


def end(process: Process, *, within_s: float) -> None:
    """Asks a process to end (SIGTERM), and ends it when it has not done so in time."""
    _signal(process, signal.SIGTERM)
    wait_for_end(process, within_s=within_s)
    kill([process])


def wait_for_end(process: Process, *, within_s: float) -> None:
    """Returns when it has ended, or the time is up."""
    deadline = time.monotonic() + within_s
    while process.alive and time.monotonic() < deadline:
        time.sleep(0.02)


def kill(processes: Iterable[Process]) -> None:
    """Ends the processes at once, without their leave: a test cluster's data is thrown away."""
    unwanted = list(processes)
    for process in unwanted:
        _signal(process, signal.SIGKILL)
    deadline = time.monotonic() + 10
    for process in unwanted:
        while process.alive:
            if time.monotonic() > deadline:
                raise HarnessError(f"process {process.pid} does not end, even by SIGKILL")
            time.sleep(0.01)
        _reap(process.pid)


def _signal(process: Process, number: signal.Signals) -> None:
    if not hasattr(os, "pidfd_open"):  # not Linux: a small window for a pid that was reused
        if process.alive:
            os.kill(process.pid, number)
        return
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        # In this order the descriptor means the very process whose start was compared.
        if process.alive:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def known(pid: int) -> Process:
    """That process as it is now."""
    seen = _look(pid)
    return Process(pid=pid, started=seen[0] if seen else "ended at once")


def _look(pid: int) -> tuple[str, bool] | None:
    """When the process started and whether it still runs (a zombie does not); None: no such pid."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _ask_ps(pid)
    fields = line.rpartition(")")[2].split()  # the name in parentheses may hold blanks
    state, started = fields[0], fields[19]
    ended = state in "ZX" and not _has_other_threads(pid)
    if ended:
        _reap(pid)
    return f"{boot}:{started}", not ended


def _has_other_threads(pid: int) -> bool:
    """The first thread of a process that was killed may end before the others, and until they have
    ended too the process still listens: its successor would find the port taken."""
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def _ask_ps(pid: int) -> tuple[str, bool] | None:
    """For systems without /proc."""
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    return (" ".join(answer[1:]), "Z" not in answer[0]) if answer else None


def _reap(pid: int) -> None:
    """Lets go of an ended child; a process that somebody else started is not ours to wait for."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
