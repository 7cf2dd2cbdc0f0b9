"""What the harness says: progress on standard error, and errors that show the end of the right log.

Called by every module of the harness. Standard output is never written here: `up` prints one line
there for a shell to evaluate. It does not guarantee that anybody sees the progress: pytest
captures standard error, so tests/conftest.py lifts the capture while something is built.
"""

from __future__ import annotations

import sys
from pathlib import Path

LOG_LINES = 25  # enough for a Go component's last words, short enough for one screen


class HarnessError(Exception):
    """No cluster, or not this of it: one sentence, and the end of a log if one says why."""


def say(message: str) -> None:
    print(f"harness: {message}", file=sys.stderr, flush=True)


def failed(sentence: str, log: Path) -> HarnessError:
    """An error with the end of `log` below its sentence."""
    return HarnessError(f"{sentence}\n--- the end of {log}:\n{tail(log)}")


def tail(log: Path, lines: int = LOG_LINES) -> str:
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 64 * 1024))  # a log of a week must not be read whole
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"(cannot be read: {error.strerror})"
    return "\n".join(text.splitlines()[-lines:]) or "(empty)"
