"""The start with ten thousand ScheduledJobs, and what a thousand more do to the loop.

Three starts of `evenkeel run` on one cluster. At the first nobody has seen the schedules before:
each gets its status written. The second is a restart, as an upgrade makes it. `ready` is the time
from the start of the process until /readyz says so, memory the resident set then. After that,
how late a 20 ms timer of the operator's loop fires (`evenkeel_loop_pulse_seconds`, the upper edge
of a bucket) while a thousand schedules are applied, and while their statuses come by the watch;
beside it, how late the same timer is in a process that does nothing else. The third start comes
after the operator was away over the due times of two thousand of them, for longer than its grace:
how long until each has its Job, in which order, and whether its probes are answered meanwhile.
"""

import bisect
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Self

from tests.bench._audit import Creates
from tests.bench._bystander import Bystander
from tests.bench._cluster import ACCOUNT, SCHEDULES, Json, Place, place
from tests.bench._machine import Idle, processor_s, resident_mb
from tests.bench._measure import say
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import eventually, moment

from evenkeel.resource.job import due_of

COUNT = 10_000
MORE = 1_000
OVERDUE = 2_000
INSTANTS = 10
GRACE_S = 30
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
        of_applied = list(pulse_rows("1,000 are applied", running, lambda: applied(here, ns)))
        yield from of_applied
        yield from pulse_rows("their statuses are echoed", running, lambda: echoed(here, ns))
        # To be seen and told of before the first is due, by what half as many took here just now.
        lead_s = 6 * of_applied[0]["beside"]["took_s"]
        yield from overdue_rows(here, ns, running, lead_s)


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


def overdue_rows(
    here: Place, ns: str, running: OperatorProcess, lead_s: float
) -> Iterator[dict[str, Any]]:
    """The process ends before the first of them is due."""
    first = int(time.time() + lead_s)
    dues = [first + number % INSTANTS for number in range(OVERDUE)]
    path = f"{SCHEDULES}/namespaces/{ns}/scheduledjobs"
    other = dict.fromkeys(("schedule", "timeZone", "hourly", "interval"))
    here.send(
        (
            ("PATCH", f"{path}/job-{number:05}", {"spec": other | {"at": moment(due)}})
            for number, due in enumerate(dues)
        ),
        in_flight=8,
    )
    settle(running)
    running.terminate()
    assert time.time() < first, "the machine is too busy: their edits were not seen in time"
    time.sleep(max(dues) + GRACE_S + 1 - time.time())
    log = here.cluster.audit_log
    assert log is not None
    creates, began = Creates(log, ACCOUNT), time.time()
    names = {f"job-{number:05}" for number in range(OVERDUE)}

    def overdue() -> dict[str, float]:
        """When each was received; others have their due times meanwhile as well."""
        found = creates.received_s().items()
        return {name: instant for name, instant in found if name.rsplit("-", 1)[0] in names}

    found = started(running)
    with Probes(running) as probes:
        eventually(
            lambda: len(overdue()) == OVERDUE,
            "all that was overdue has Jobs",
            within_s=300,
            every_s=1.0,
        )
        settle(running)
    received = overdue()
    yield {
        "name": "ready with 11,000 ScheduledJobs, 2,000 of them overdue",
        "value": found.pop("ready_s"),
        "unit": "s",
        "beside": found,
    }
    yield {
        "name": "2,000 overdue, until all have Jobs",
        "value": max(received.values()) - began,
        "unit": "s",
        "beside": {
            "first_s": min(received.values()) - began,
            "a_second": OVERDUE / (max(received.values()) - min(received.values())),
        },
    }
    order = [due_of(name) or 0 for name in sorted(received, key=lambda name: received[name])]
    yield {
        "name": "2,000 overdue, pairs not in the order of their due times",
        "value": out_of_order(order),
        "unit": "of 1",
        "beside": {"instants": INSTANTS},
    }
    yield {
        "name": "2,000 overdue, probes not answered by 200",
        "value": len(probes.refused),
        "unit": "probes",
        "beside": {"probes": probes.count, "first": probes.refused[:1]},
    }


class Probes:
    """A kubelet: both probes once a second, in a thread."""

    def __init__(self, running: OperatorProcess) -> None:
        self._running = running
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.count = 0
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=30)

    def _look(self) -> None:
        while not self._over.wait(1.0):
            for path in ("/livez", "/readyz"):
                status, text = self._running.get(path)
                self.count += 1
                if status != 200:
                    self.refused.append(f"{path} {status} {text}")


def out_of_order(order: list[int]) -> float:
    """The share of all pairs whose later one should have been the earlier; half is by lot."""
    seen: list[int] = []
    wrong = 0
    for each in order:
        wrong += len(seen) - bisect.bisect_right(seen, each)
        bisect.insort(seen, each)
    return wrong / (len(order) * (len(order) - 1) / 2)


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
