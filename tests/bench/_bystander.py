"""How late a 20 ms timer is in a process that does nothing else: what the machine does to anybody.

`with Bystander() as beside: ...; beside.lateness_ms()`. Its figures stand beside those of the
operator's loop: where they are as large, it is the machine that was late.
"""

import json
import subprocess
import sys
import threading
import time
from typing import Self

from tests.bench._measure import percentile

EVERY_S = 0.02


def look() -> None:
    """Until standard input ends; then say how late each look was, in milliseconds."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    late: list[float] = []
    while not over.is_set():
        due = time.monotonic() + EVERY_S
        time.sleep(EVERY_S)
        late.append(max(0.0, time.monotonic() - due) * 1e3)
    print(json.dumps(sorted(late)))


class Bystander:
    """The process, and what it saw."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench._bystander"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def lateness_ms(self) -> dict[str, float]:
        """p99 and the latest; asked once, at the end."""
        said, _ = self._process.communicate(timeout=30)
        late = json.loads(said)
        return {
            "bystander_p99_ms": round(percentile(late, 99), 1),
            "bystander_max_ms": round(late[-1], 1),
        }

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=10)


if __name__ == "__main__":
    look()
