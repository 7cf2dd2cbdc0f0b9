"""What the announcement costs: a thousand schedules whose template has a ttl, beside a thousand
without one, minded by one operator on a real API server.

Where the template has a ttl, no create is sent before a stored status announces it. A run that is
known ahead is announced in the seconds before its due time, so its create should not wait for that.
Those without a ttl are due at the full minute, those with one half a minute later. Rounds alternate
by themselves; a round counts only if what the one before it left was done when it began.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._arrivals import Arrivals
from tests.bench._cluster import TEMPLATE, Json, Place, place
from tests.bench._machine import Idle
from tests.bench.herd import HERD, Herd, Kind, note
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import moment

ROUNDS = 5
MINUTES_LIMIT = 20
DUE_S = {"without": 0, "with": 30}
"""The second of the minute at which each kind is due."""

LASTING: Json = {"spec": {**TEMPLATE["spec"], "ttlSecondsAfterFinished": 3_600}}


def rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        here = stack.enter_context(place())
        arrivals = stack.enter_context(Arrivals(here.cluster.kubeconfig))
        running = stack.enter_context(operator(here.kubeconfig, directory=here.directory))
        herds = {
            name: herd_of(here, arrivals, running, name, template)
            for name, template in (("without", TEMPLATE), ("with", LASTING))
        }
        idle = Idle()
        kinds = alternating_rounds(herds)
        beside = kinds["with"].beside("with", HERD) | kinds["without"].beside("without", HERD)
        yield {
            "name": "1,000 with a ttl, p99 to 1,000 without",
            "value": kinds["with"].median(99) / kinds["without"].median(99),
            "unit": "x",
            "beside": beside | {"machine_idle": idle.share()},
        }


def herd_of(
    here: Place, arrivals: Arrivals, running: OperatorProcess, name: str, template: Json
) -> Herd:
    """A thousand schedules of one kind, in a namespace of their own."""
    anchor = moment(time.time() // 60 * 60 - 60)
    interval = {"every": "1m", "offset": f"{DUE_S[name]}s", "anchor": anchor}
    herd = Herd(here, arrivals, HERD, kind=name)
    herd.operated_by(running, lambda _: {"interval": interval, "jobTemplate": template})
    return herd


def alternating_rounds(herds: dict[str, Herd]) -> dict[str, Kind]:
    """Until each kind has had its rounds."""
    kinds = {name: Kind() for name in herds}
    end = time.time() + MINUTES_LIMIT * 60
    while min(len(kind.rounds) for kind in kinds.values()) < ROUNDS:
        assert time.time() < end, "the machine is too busy: rounds never begin at rest"
        due, name = min((next_due(second), name) for name, second in DUE_S.items())
        fair = herds[name].calm(until=due - 1) and time.time() < due
        if time.time() < due:
            note(kinds, name, herds[name].ours(due, until=due + 25), fair=fair)
    return kinds


def next_due(second: int) -> int:
    """The next time of the clock at that second, with room to come to rest before it."""
    now = int(time.time()) + 2
    return now + (second - now) % 60
