"""Two thousand ScheduledJobs that somebody edits all the time, and their Jobs relabelled.

Three storms, a hundred changes a second each, as a loop of somebody's makes them: a hundred edits
of the timing of each of twenty schedules; one of each of all; and a label on each of 2,000 Jobs of
ours, which the second storm had made due. Of each: how many indexes were built a second, how often
the status of one schedule was patched (the API server's audit log), and how late a 20 ms timer of
the operator's loop fired, as in start.py. Nothing here asks for more than the machine can do: what
stands beside shows how busy it was.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._audit import StatusPatches
from tests.bench._cluster import ACCOUNT, BATCH, SCHEDULES, Place, Request, place
from tests.bench._machine import wait_calm
from tests.bench.start import pulse_rows, settle
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import eventually, moment

COUNT = 2_000
FEW = 20
EDITS = 100
A_SECOND = 100
IN_FLIGHT = 8
BUILDS = "evenkeel_index_build_seconds_count"


def spec(number: int) -> dict[str, Any]:
    """Daily, at some minute of the night that is farthest away."""
    hour = (time.gmtime().tm_hour + 12) % 24
    return {"schedule": f"{number % 60} {hour} * * *"}


def rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        here = stack.enter_context(place())
        ns = here.namespace("edits")
        here.schedules(ns, COUNT, spec)
        running = stack.enter_context(operator(here.kubeconfig, directory=here.directory))
        settle(running)
        storms = Storms(here, ns, running)
        yield from storms.rows("20 are edited 100 times each", storms.edit_few)
        yield from storms.rows("each of 2,000 is edited once", storms.edit_all)
        eventually(
            lambda: running.metrics()['evenkeel_creates_total{verdict="created"}'] >= COUNT,
            "all have Jobs",
            within_s=600,
            every_s=1.0,
        )
        settle(running)
        wait_calm([*here.pids(), running.pid])
        yield from storms.rows("2,000 Jobs are labelled", storms.label_jobs)


class Storms:
    def __init__(self, here: Place, ns: str, running: OperatorProcess) -> None:
        self._here = here
        self._running = running
        self._took_s = 0.0
        self._jobs = f"{BATCH}/namespaces/{ns}/jobs"
        self._schedules = f"{SCHEDULES}/namespaces/{ns}/scheduledjobs"

    def edit_few(self) -> None:
        """In turn: each is edited five times a second."""
        self._send(
            ("PATCH", self._schedule(number), {"spec": spec(edit + 1)})
            for edit in range(EDITS)
            for number in range(FEW)
        )

    def edit_all(self) -> None:
        """They will be due together, well after as many edits took a moment ago."""
        at = {"schedule": None, "at": moment(time.time() + 3 * self._took_s)}
        self._send(("PATCH", self._schedule(number), {"spec": at}) for number in range(COUNT))

    def label_jobs(self) -> None:
        """By a label that is not ours."""
        label = {"metadata": {"labels": {"team.example.com/seen": "yes"}}}
        names = [job["metadata"]["name"] for job in self._here.get(self._jobs)["items"]]
        assert len(names) == COUNT
        self._send(("PATCH", f"{self._jobs}/{name}", label) for name in names)

    def rows(self, what: str, deed: Callable[[], None]) -> Iterator[dict[str, Any]]:
        log = self._here.cluster.audit_log
        assert log is not None
        patches = StatusPatches(log, ACCOUNT)
        built: dict[str, float] = {}

        def measured() -> None:
            before, began = self._running.metrics()[BUILDS], time.monotonic()
            deed()
            built["took_s"] = self._took_s = time.monotonic() - began
            built["count"] = self._running.metrics()[BUILDS] - before

        yield from pulse_rows(what, self._running, measured)
        yield {
            "name": f"index builds while {what}",
            "value": built["count"] / built["took_s"],
            "unit": "a second",
            "beside": built,
        }
        time.sleep(1)  # the log is written behind
        found = patches.received_s()
        yield {
            "name": f"status patches of one schedule while {what}",
            "value": max(map(a_minute, found.values()), default=0.0),
            "unit": "a minute",
            "beside": {
                "most_of_one": max(map(len, found.values()), default=0),
                "schedules": len(found),
                "patches": sum(map(len, found.values())),
            },
        }

    def _schedule(self, number: int) -> str:
        return f"{self._schedules}/job-{number:05}"

    def _send(self, requests: Iterator[Request]) -> None:
        self._here.send(requests, in_flight=IN_FLIGHT, a_second=A_SECOND)


def a_minute(instants: list[float]) -> float:
    """The rate by the time between them; a storm may be shorter than a minute."""
    if len(instants) < 3:
        return float(len(instants))
    return (len(instants) - 1) * 60 / (instants[-1] - instants[0])
