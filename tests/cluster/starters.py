"""A process that starts a cluster and is killed: what it leaves, the harness cleans up.

Called by the tests of the harness. From the kill on, any call of the harness on this machine may
clean up, that of another test too: what is to be seen of the cluster is looked at before.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.harness import state, sweep
from tests.cluster.world import eventually

REPOSITORY = Path(__file__).parents[2]
WAIT = "(print('ready', flush=True), sys.stdin.read())"


@contextmanager
def killed_at_the_end(*lines: str) -> Iterator[None]:
    """A Python that has run the lines, or is where one of them waits (`WAIT`). At the end of the
    block it dies without a chance to clean up."""
    program = "\n".join(["import sys", *lines, WAIT])
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        try:
            assert starter.stdout
            assert starter.stdout.readline() == "ready\n"
            yield
        finally:
            starter.kill()
    assert starter.returncode == -signal.SIGKILL


def swept(name: str) -> None:
    """Clean up; or another call of the harness is doing so, and is waited for."""
    sweep()
    eventually(lambda: name not in state.names(), f"{name} is cleaned up")
