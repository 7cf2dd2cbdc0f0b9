"""The start with ten thousand ScheduledJobs, and what a thousand more do to the loop.

Two starts of `evenkeel run` on one cluster. At the first nobody has seen the schedules before:
each gets its status written. The second is a restart, as an upgrade makes it. `ready` is the time
from the start of the process until /readyz says so, memory the resident set then. After that,
how late a 20 ms timer of the operator's loop fires (`evenkeel_loop_pulse_seconds`, the upper edge
of a bucket) while a thousand schedules are applied, and while their statuses come by the watch;
beside it, how late the same timer is in a process that does nothing else.
"""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._bystander import Bystander
from tests.bench._cluster import SCHEDULES, Json, Place, place
from tests.bench._machine import Idle, processor_s, resident_mb
from tests.bench._measure import say
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import eventually

COUNT = 10_000
MORE = 1_000
PULSE = "evenkeel_loop_pulse_seconds_bucket"


def spec(number: int) -> Json:
    """What people have: mostly daily and hourly cron, some intervals; few due while we look."""
    rng = random.Random(number)
    minute, hour = rng.randrange(60), rng.randrange(24)
    return rng.choice(
        [
            {"schedule": f"{minute} {hour} * * *", "timeZone": "Europe/Berlin"},
            {"schedule": f"{minute} {hour} * * 1-5"},
            {"schedule": f"{minute} */6 * * *"},
            {"hourly": {"minute": minute}},
            {"interval": {"every": "1d", "offset": f"{hour}h"}},
        ]
    )


def rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        here = stack.enter_context(place())
        ns = here.namespace("start")
        began = time.monotonic()
        here.schedules(ns, COUNT, spec)
        say(f"       start: {COUNT:,} ScheduledJobs created in {time.monotonic() - began:.0f} s")
        running = stack.enter_context(
            operator(here.kubeconfig, directory=here.directory, start=False)
        )
        first = started(running)
        settle(running)
        first["settled_mb"] = resident_mb(running.pid)
        running.terminate()
        again = started(running)
        for name, found in (("nobody had seen", first), ("as they were", again)):
            yield {
                "name": f"ready with 10,000 ScheduledJobs {name}",
                "value": found.pop("ready_s"),
                "unit": "s",
                "beside": found,
            }
        settle(running)
        yield {
            "name": "resident with 10,000 ScheduledJobs",
            "value": max(first["ready_mb"], first["settled_mb"], again["ready_mb"]),
            "unit": "MB",
            "beside": {"after_restart_mb": resident_mb(running.pid)},
        }
        yield from pulse_rows("1,000 are applied", running, lambda: applied(here, ns))
        yield from pulse_rows("their statuses are echoed", running, lambda: echoed(here, ns))


def started(running: OperatorProcess) -> dict[str, float]:
    idle = Idle()
    began = time.monotonic()
    running.start(wait=False)
    running.wait_ready(within_s=180)
    return {
        "ready_s": time.monotonic() - began,
        "processor_s": processor_s(running.pid),
        "ready_mb": resident_mb(running.pid),
        "machine_idle": idle.share(),
    }


def settle(running: OperatorProcess) -> None:
    eventually(
        lambda: running.metrics()["evenkeel_status_waiting"] == 0,
        "all statuses are written",
        within_s=600,
        every_s=1.0,
    )
    time.sleep(2)  # the last of them come back by the watch


def applied(here: Place, ns: str) -> None:
    here.schedules(ns, MORE, spec, word="more")


def echoed(here: Place, ns: str) -> None:
    """Somebody touches all of the thousand: a metadata edit is an event like a status write."""
    path = f"{SCHEDULES}/namespaces/{ns}/scheduledjobs"
    edit = {"metadata": {"annotations": {"touched": str(time.time())}}}
    here.send((("PATCH", f"{path}/more-{number:05}", edit) for number in range(MORE)), in_flight=8)


def pulse_rows(what: str, running: OperatorProcess, deed: Any) -> Iterator[dict[str, Any]]:
    with Bystander() as bystander:
        idle, before, used_s = Idle(), pulses(running), processor_s(running.pid)
        began = time.monotonic()
        deed()
        settle(running)
        took_s = time.monotonic() - began
        machine = bystander.lateness_ms()
    counted = {edge: number - before[edge] for edge, number in pulses(running).items()}
    beside = {
        "looks": counted[float("inf")],
        "took_s": took_s,
        "operator_cores": (processor_s(running.pid) - used_s) / took_s,
        "machine_idle": idle.share(),
        **machine,
    }
    for name, share in (("p99", 0.99), ("max", 1.0)):
        yield {
            "name": f"loop lag while {what}, {name}",
            "value": edge_of(counted, share) * 1e3,
            "unit": "ms at most",
            "beside": beside,
        }


def pulses(running: OperatorProcess) -> dict[float, float]:
    """Looks by the upper edge of their bucket, cumulated, as Prometheus has them."""
    return {
        float(name.split('"')[1]): number
        for name, number in running.metrics().items()
        if name.startswith(PULSE)
    }


def edge_of(counted: dict[float, float], share: float) -> float:
    total = counted[float("inf")]
    assert total > 50, f"only {total} looks"
    return next(edge for edge in sorted(counted) if counted[edge] >= total * share)
