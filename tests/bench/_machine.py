"""Processor time and memory of processes, and how idle the machine was, from /proc.

Processor time is what a process used, whoever else kept the machine busy meanwhile; a figure in
wall time from a busy machine says nothing, so the idle share is printed beside it.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def processor_s(*pids: int) -> float:
    """Seconds of processor that these processes have used; one that has ended counts nothing."""
    return sum(_used_s(pid) for pid in pids)


def resident_mb(pid: int) -> float:
    """The resident set, in millions of bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6


def _used_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Idle:
    """The share of the machine that was idle since this was made."""

    def __init__(self) -> None:
        self._began = _whole_machine()

    def share(self) -> float:
        idle, total = (now - then for now, then in zip(_whole_machine(), self._began, strict=True))
        return idle / total if total else 1.0


def _whole_machine() -> tuple[int, int]:
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    numbers = [int(word) for word in words[:8]]
    return numbers[3] + numbers[4], sum(numbers)


def wait_calm(pids: Iterable[int], *, cores: float = 0.25, within_s: float = 120.0) -> bool:
    """Return once these processes together use less than `cores`, in two looks of half a second.

    What one round leaves to be done must not be charged to the next. False: they never rested.
    An API server with some thousand Jobs in its memory uses 0.13 cores with nothing to do.
    """
    known, calm = list(pids), 0
    deadline = time.monotonic() + within_s
    before = processor_s(*known)
    while calm < 2 and time.monotonic() < deadline:
        time.sleep(0.5)
        now = processor_s(*known)
        calm = calm + 1 if now - before < cores * 0.5 else 0
        before = now
    return calm >= 2
