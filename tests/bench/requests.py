"""How late scheduled runs are beside a backfill, against the same schedules without it.

One operator on a fake node serves 200 schedules with five runs a second between them, and one
request for 2,000 runs, at most 100 of them at once. Each requested Pod runs for ten seconds, so the
backfill begins about nine a second and goes on through all rounds. Rounds alternate: in half of
them the request is suspended, and what it has begun has ended. A round with it begins when it is
resumed, so that the hundred creates at once are in it. Lateness is when the API server received the
create (its audit log) minus the due instant. Where the machine was idle for less than 20 %, the
control plane was late with everything, and the rows are not `valid`.
"""

import math
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._audit import Creates
from tests.bench._cluster import ACCOUNT, SCHEDULES, TEMPLATE, Json, Place, place
from tests.bench._machine import Idle, processor_s, wait_calm
from tests.bench._measure import percentile, say
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.requests import run_request
from tests.cluster.world import eventually, moment, seconds

COUNT, EVERY_S = 200, 40
ROUNDS, ROUND_S = 5, 30
WANTED, MAX_ACTIVE = 2_000, 100
LASTS = "10s"
LEAST_IDLE = 0.2
END = "2026-02-01T00:00:00Z"
"""Of the schedule that is filled: it is not due by itself any more."""


def rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        here = stack.enter_context(place(pods="kwok"))
        ns = here.namespace("requests")
        anchor = moment((int(time.time()) // EVERY_S - 2) * EVERY_S)
        rule = {"every": f"{EVERY_S}s", "anchor": anchor}
        here.schedules(
            ns, COUNT, lambda number: {"interval": rule | {"offset": f"{number % EVERY_S}s"}}
        )
        running = stack.enter_context(operator(here.kubeconfig, directory=here.directory))
        rounds = Rounds(here, running, ns)
        rounds.lay()
        idle = Idle()
        order = ["with", "without"] * ROUNDS
        random.shuffle(order)
        for kind in order:
            rounds.measure(kind)
        assert rounds.state() == "Running", "the backfill was over before the last round"
        begun = len([name for name in rounds.creates.received_s() if name.startswith("filled-")])
        beside, alone = rounds.late_s["with"], rounds.late_s["without"]
        idle_share = idle.share()
        valid = idle_share >= LEAST_IDLE
        if not valid:
            say(f"       requests: INVALID, the machine was idle for {idle_share:.0%} only")
        common = {
            "valid": valid,
            "machine_idle": idle_share,
            "requested_runs": begun,
            "samples": len(beside),
            "operator_cores_with": statistics.median(rounds.cores["with"]),
            "operator_cores_without": statistics.median(rounds.cores["without"]),
        }
        for name, percent in (("median", 50), ("p99", 99)):
            one, other = at(beside, percent), at(alone, percent)
            yield {
                "name": f"scheduled runs beside a backfill, {name} lateness to that without",
                "value": one / other,
                "unit": "x",
                "beside": {"with_ms": one * 1e3, "without_ms": other * 1e3, **common},
            }


class Rounds:
    """The backfill, and what the API server saw of the runs by schedule."""

    def __init__(self, here: Place, running: OperatorProcess, ns: str) -> None:
        log = here.cluster.audit_log
        assert log is not None
        self.creates = Creates(log, ACCOUNT)
        self.late_s: dict[str, list[float]] = {"with": [], "without": []}
        self.cores: dict[str, list[float]] = {"with": [], "without": []}
        self._here, self._running = here, running
        self._base = f"{SCHEDULES}/namespaces/{ns}"

    def lay(self) -> None:
        """The schedule that is filled, and the request for it, which waits."""
        pod = TEMPLATE["spec"]["template"]
        lasts = {"metadata": {"annotations": {"test.evenkeel.dev/runs-for": LASTS}}}
        template = {"spec": TEMPLATE["spec"] | {"template": pod | lasts}}
        rule = {"interval": {"every": "1m", "offset": "0s"}, "endTime": END}
        schedule = {
            "apiVersion": "evenkeel.dev/v1alpha1",
            "kind": "ScheduledJob",
            "metadata": {"name": "filled"},
            "spec": rule | {"jobTemplate": template},
        }
        first = moment(seconds(END) - WANTED * 60)
        request = run_request(
            "fill",
            "filled",
            range={"from": first, "to": END},
            include="All",
            maxActive=MAX_ACTIVE,
            suspend=True,
        )
        self._here.send([("POST", f"{self._base}/scheduledjobs", schedule)])
        self._here.send([("POST", f"{self._base}/runrequests", request)])
        eventually(lambda: self._status().get("plan"), "the backfill is planned")

    def measure(self, kind: str) -> None:
        """One round, which begins at rest."""
        calm = wait_calm([*self._here.pids("kube-apiserver"), self._running.pid], within_s=20)
        if kind == "with":
            self._suspend(suspend=False)
        began, used_s = math.ceil(time.time()), processor_s(self._running.pid)
        time.sleep(began + ROUND_S - time.time())
        cores = (processor_s(self._running.pid) - used_s) / ROUND_S
        if kind == "with":
            self._suspend(suspend=True)
            eventually(lambda: not self._status().get("active"), "what it began has ended")
        found = self.creates.lateness_s(due_from=began, due_before=began + ROUND_S, of="job-")
        expected = COUNT * ROUND_S // EVERY_S
        assert len(found) == expected, f"{len(found)} of {expected} runs by schedule"
        self.late_s[kind] += found
        self.cores[kind].append(cores)
        say(
            f"       requests: {kind:7} p50 {at(found, 50):.4f} p99 {at(found, 99):.4f} s,"
            f" {cores:.2f} cores" + ("" if calm else ", it did not begin at rest")
        )

    def state(self) -> str:
        return str(self._status()["state"])

    def _suspend(self, *, suspend: bool) -> None:
        path = f"{self._base}/runrequests/fill"
        self._here.send([("PATCH", path, {"spec": {"suspend": suspend}})])

    def _status(self) -> Json:
        found: Json = self._here.get(f"{self._base}/runrequests/fill").get("status") or {}
        return found


def at(late_s: list[float], percent: float) -> float:
    return percentile(sorted(late_s), percent)
