"""A thousand schedules due in one second, on a real API server, side by side with its peers.

Lateness is the instant at which a watch in a process of its own has a Job's ADDED event, minus the
due instant; it is the same measure for all. `ours` is `evenkeel run` with its defaults on a
thousand ScheduledJobs that are due at half of every minute. `bare` is a client that does nothing
but create as many Jobs of the same size, as many in flight. `cron` is the CronJob controller of the
same control plane, its rate limits lifted, on a thousand CronJobs that are new in each round. The
rounds of the others come in random order between ours, the bare client's at random moments. Every
round counts only if what the one before it left (Pods, statuses, Events) was done when it began.
Jobs stay (no nodes: their Pods wait), but for those of CronJobs, whose controller reads all Jobs of
a namespace for each CronJob.

With --long: ten thousand at once, and a thousand of the CronJob controller's with default flags.
"""

import datetime as dt
import json
import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.bench._arrivals import Arrivals
from tests.bench._cluster import BATCH, TEMPLATE, Json, Place, place
from tests.bench._machine import Idle, processor_s, wait_calm
from tests.bench._measure import long_form, percentile, say
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import moment

from evenkeel.model import RunId, Schedule
from evenkeel.resource.job import render
from evenkeel.resource.read import read
from evenkeel.settings import Settings

HERD = 1_000
LONG_HERD = 10_000
ROUNDS = 9
CRON_ROUNDS = 3
HALF_S = 30
"""The second of the minute at which ours are due."""
ROOM_S = 16
"""A round that begins less than this before ours would not be done when they are due."""
MINUTES_LIMIT = 40
LAYING_S = 120
"""To create ten thousand CronJobs, and for their controller to have seen them."""
CRON_LIMIT_S = 900
"""Its controller looks at all Jobs of the namespace for each of ten thousand CronJobs."""
FAR = "2099-01-01T00:00:00Z"
IN_FLIGHT = Settings().creates_in_flight
COMPONENTS = ("kube-apiserver", "kube-controller-manager")


@dataclass(frozen=True, slots=True)
class Round:
    """What one herd was like."""

    lateness_s: list[float]
    """Ascending."""
    hot_s: float = 0.0
    """Processor time of whoever created, from the due instant to the last arrival."""
    whole_s: float = 0.0
    """The same until all was quiet again: statuses, Events, the watch."""

    def at(self, percent: float) -> float:
        return percentile(self.lateness_s, percent)


@dataclass(slots=True)
class Kind:
    """All rounds of one way to create."""

    rounds: list[Round] = field(default_factory=list)

    def median(self, percent: float) -> float:
        return statistics.median(each.at(percent) for each in self.rounds)

    def beside(self, name: str, count: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            f"{name}_p50_ms": self.median(50) * 1e3,
            f"{name}_p99_ms": self.median(99) * 1e3,
            f"{name}_max_ms": self.median(100) * 1e3,
            f"{name}_rounds_p99_ms": [round(each.at(99) * 1e3) for each in self.rounds],
        }
        if any(each.hot_s for each in self.rounds):
            found[f"{name}_processor_us_a_run"] = median_us(self, count, hot=True)
        return found


def median_us(kind: Kind, count: int, *, hot: bool) -> float:
    return statistics.median(
        (each.hot_s if hot else each.whole_s) / count * 1e6 for each in kind.rounds
    )


class Herd:
    """The schedules, and how a round of each kind goes."""

    def __init__(self, here: Place, arrivals: Arrivals, count: int, *, kind: str = "ours") -> None:
        self._here = here
        self._arrivals = arrivals
        self._count = count
        self._operator: OperatorProcess | None = None
        self._ours = here.namespace(f"{kind}-{count}")
        self._bare = here.namespace(f"bare-{kind}-{count}")
        self._cron = here.namespace(f"cron-{kind}-{count}")
        self._body = here.directory / f"body-{kind}-{count}"
        self._pids = here.pids(*COMPONENTS)
        self._write_body()

    def operated_by(self, running: OperatorProcess, spec: Callable[[int], Json]) -> None:
        """From here on there are ScheduledJobs, and somebody who minds them."""
        self._operator = running
        self._pids.append(running.pid)
        self._here.schedules(self._ours, self._count, spec)

    def calm(self, *, until: float = math.inf) -> bool:
        """Whether nothing is left of the round before."""
        return wait_calm(self._pids, within_s=min(120.0, until - time.time()))

    def ours(self, due: int, *, until: float | None = None) -> Round:
        assert self._operator is not None
        pid = self._operator.pid
        sleep_until(due)
        before, used_s = self._arrivals.count, processor_s(pid)
        arrived = self._wait(before)
        hot_s = processor_s(pid) - used_s
        self.calm(until=until or due + 40)
        return Round(late(arrived, due), hot_s, processor_s(pid) - used_s)

    def bare(self) -> Round:
        words = (self._here.kubeconfig, self._bare, self._count, IN_FLIGHT, self._body)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.bench._bare", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdin is not None and client.stdout is not None
            assert client.stdout.readline() == "ready\n"
            before, due = self._arrivals.count, math.ceil(time.time() + random.uniform(2, 6))
            client.stdin.write(f"{due}\n")
            client.stdin.flush()
            said = json.loads(client.stdout.readline())
        assert said["created"] == self._count, said
        return Round(late(self._wait(before), due), said["processor_s"])

    def lay_cron_jobs(self, due: int) -> None:
        """New ones for each round: one that was suspended would at once make up for its past."""
        at = dt.datetime.fromtimestamp(due, dt.UTC)
        spec = {"schedule": f"{at.minute} {at.hour} * * *", "jobTemplate": TEMPLATE}
        self._here.send(
            ("POST", self._path("cronjobs"), cron_job(f"job-{number:05}", spec))
            for number in range(self._count)
        )

    def cron(self, due: int, *, within_s: float = 60.0) -> Round:
        before = self._arrivals.count
        return Round(late(self._wait(before, within_s=due - time.time() + within_s), due))

    def drop_cron_jobs(self) -> None:
        options = {"propagationPolicy": "Background"}
        self._here.send([("DELETE", self._path(each), options) for each in ("cronjobs", "jobs")])

    def _path(self, what: str) -> str:
        return f"{BATCH}/namespaces/{self._cron}/{what}"

    def _wait(self, before: int, *, within_s: float = 120.0) -> list[float]:
        found = self._arrivals.since(before, count=self._count, within_s=within_s)
        assert len(found) == self._count, f"{len(found)} of {self._count} Jobs came"
        return found

    def _write_body(self) -> None:
        """One of our own bodies; its labels are misspelt, or the operator would take it for one."""
        (owner,) = self._here.schedules(self._bare, 1, lambda _: {"at": FAR, "suspend": True})
        schedule = read(owner, min_interval_s=10)
        assert isinstance(schedule, Schedule)
        due = int(time.time()) // 60 * 60 + HALF_S
        body = render(schedule, RunId(schedule.uid, due))
        name = json.loads(body)["metadata"]["name"].encode()
        assert len(name) == 20
        body = body.replace(name, b"NAME")
        self._body.write_bytes(body.replace(b"evenkeel.dev/schedule", b"evenkeel.dex/schedule"))


def sleep_until(due: float) -> None:
    time.sleep(max(0.0, due - time.time() - 0.05))


def late(arrived: list[float], due: float) -> list[float]:
    found = sorted(instant - due for instant in arrived)
    assert found[0] > -0.001, f"a Job came {-found[0]:.3f} s before its time"
    return found


def cron_job(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        here = stack.enter_context(place())
        arrivals = stack.enter_context(Arrivals(here.cluster.kubeconfig))
        running = stack.enter_context(operator(here.kubeconfig, directory=here.directory))
        herd = Herd(here, arrivals, HERD)
        anchor = moment(time.time() // 60 * 60 - 60)
        every = {"interval": {"every": "1m", "offset": f"{HALF_S}s", "anchor": anchor}}
        herd.operated_by(running, lambda _: every)
        ours_p99_s = yield from thousand_rows(herd)
    if long_form():
        yield from ten_thousand_rows()
        yield default_row(ours_p99_s)


def thousand_rows(herd: Herd) -> Iterator[dict[str, Any]]:
    idle = Idle()
    kinds = shuffled_rounds(herd)
    ours, bare, cron = kinds["ours"], kinds["bare"], kinds["cron"]
    beside = ours.beside("ours", HERD) | bare.beside("bare", HERD)
    yield {
        "name": "1,000 in one second, p99 to a bare client's",
        "value": ours.median(99) / bare.median(99),
        "unit": "x",
        "beside": beside
        | {
            "p50_ratio": ours.median(50) / bare.median(50),
            "max_ratio": ours.median(100) / bare.median(100),
            "ratio_5_95": bootstrap(ours, bare),
            "in_flight": IN_FLIGHT,
            "machine_idle": idle.share(),
        },
    }
    yield {
        "name": "1,000 in one second, p99 of the tuned CronJob controller to ours",
        "value": cron.median(99) / ours.median(99),
        "unit": "x",
        "beside": cron.beside("cron", HERD),
    }
    yield {
        "name": "processor time of the operator a run",
        "value": median_us(ours, HERD, hot=True),
        "unit": "us",
        "beside": {
            "bare_client_us": median_us(bare, HERD, hot=True),
            "until_quiet_us": median_us(ours, HERD, hot=False),
        },
    }
    return ours.median(99)


def shuffled_rounds(herd: Herd) -> dict[str, Kind]:
    """Ours come once a minute by themselves; the others between them, when there is room."""
    kinds = {"ours": Kind(), "bare": Kind(), "cron": Kind()}
    others = ["bare"] * ROUNDS + ["cron"] * CRON_ROUNDS
    random.shuffle(others)
    cron_due, minutes = 0, 0
    while others or cron_due or len(kinds["ours"].rounds) < ROUNDS:
        minutes += 1
        assert minutes < MINUTES_LIMIT, "the machine is too busy: rounds never begin at rest"
        due = (int(time.time()) - HALF_S) // 60 * 60 + 60 + HALF_S
        if cron_due:
            fair = herd.calm(until=cron_due - 1) and time.time() < cron_due
            if fair:
                note(kinds, "cron", herd.cron(cron_due), fair=True)
            herd.drop_cron_jobs()
            others += [] if fair else ["cron"]
            cron_due = 0
        elif others and herd.calm(until=due - ROOM_S):
            name = others.pop()
            if name == "bare":
                note(kinds, name, herd.bare(), fair=True)
            else:
                cron_due = due + 60 - HALF_S
                herd.lay_cron_jobs(cron_due)
        fair = herd.calm(until=due - 1) and time.time() < due
        if time.time() < due:
            note(kinds, "ours", herd.ours(due), fair=fair)
    return kinds


def note(kinds: dict[str, Kind], name: str, one: Round, *, fair: bool) -> None:
    if fair:
        kinds[name].rounds.append(one)
    say(
        f"       herd: {name:5} p50 {one.at(50):.3f} p99 {one.at(99):.3f} max {one.at(100):.3f} s,"
        f" processor {one.hot_s:.2f} s, until quiet {one.whole_s:.2f} s"
        + ("" if fair else ", not counted: it did not begin at rest")
    )


def ten_thousand_rows() -> Iterator[dict[str, Any]]:
    """All created with the one instant; it is far enough for every status to be written before."""
    idle = Idle()
    kinds = {"ours": Kind(), "bare": Kind(), "cron": Kind()}
    with ExitStack() as stack:
        here = stack.enter_context(place())
        arrivals = stack.enter_context(Arrivals(here.cluster.kubeconfig))
        running = stack.enter_context(operator(here.kubeconfig, directory=here.directory))
        herd = Herd(here, arrivals, LONG_HERD)
        due = int(time.time()) + 240
        herd.operated_by(running, lambda _: {"at": moment(due)})
        fair = herd.calm(until=due - 1)
        note(kinds, "ours", herd.ours(due), fair=fair)
        assert fair, "ten thousand statuses were not written in time"
        herd.calm()
        note(kinds, "bare", herd.bare(), fair=True)
        herd.calm()
        due = (int(time.time()) + LAYING_S) // 60 * 60 + 60
        herd.lay_cron_jobs(due)
        fair = herd.calm(until=due - 1) and time.time() < due
        note(kinds, "cron", herd.cron(due, within_s=CRON_LIMIT_S), fair=fair)
        assert fair, "ten thousand CronJobs were not laid in time"
    ours, bare, cron = kinds["ours"], kinds["bare"], kinds["cron"]
    yield {
        "name": "10,000 in one second, p99 to a bare client's",
        "value": ours.median(99) / bare.median(99),
        "unit": "x",
        "beside": ours.beside("ours", LONG_HERD)
        | bare.beside("bare", LONG_HERD)
        | {"machine_idle": idle.share()},
    }
    yield {
        "name": "10,000 in one second, p99 of the tuned CronJob controller to ours",
        "value": cron.median(99) / ours.median(99),
        "unit": "x",
        "beside": cron.beside("cron", LONG_HERD),
    }


def default_row(ours_p99_s: float) -> dict[str, Any]:
    """The CronJob controller as people have it, on a control plane with default flags."""
    with ExitStack() as stack:
        here = stack.enter_context(place(profile="default"))
        arrivals = stack.enter_context(Arrivals(here.cluster.kubeconfig))
        herd = Herd(here, arrivals, HERD)
        due = int(time.time() + 75) // 60 * 60
        herd.lay_cron_jobs(due)
        cron = Kind([herd.cron(due, within_s=300)])
    return {
        "name": "1,000 in one second, p99 of the default CronJob controller to ours",
        "value": cron.median(99) / ours_p99_s,
        "unit": "x",
        "beside": cron.beside("cron", HERD),
    }


def bootstrap(ours: Kind, bare: Kind) -> list[float]:
    """Where the ratio of the medians lies in 90 of 100 redraws of the rounds."""
    rng = random.Random(7)

    def redrawn(kind: Kind) -> float:
        rounds = kind.rounds
        return statistics.median(rng.choice(rounds).at(99) for _ in rounds)

    ratios = sorted(redrawn(ours) / redrawn(bare) for _ in range(2_000))
    return [round(percentile(ratios, percent), 2) for percent in (5, 95)]
