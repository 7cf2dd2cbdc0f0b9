"""One due run on a quiet cluster: how long after its due instant is the create sent?

Forty schedules whose runs come one a second; the API server's audit log says when each create was
received. That is later than it was sent by the way through TLS and the server's first look at it,
well below a millisecond on one machine, so the figure is an upper bound.
"""

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._audit import Creates
from tests.bench._cluster import ACCOUNT, place
from tests.bench._machine import Idle, wait_calm
from tests.bench._measure import long_form, percentile
from tests.cluster.operator_process import operator
from tests.cluster.world import moment

EVERY_S = 40


def rows() -> Iterator[dict[str, Any]]:
    samples = 300 if long_form() else 100
    with ExitStack() as stack:
        here = stack.enter_context(place())
        ns = here.namespace("single")
        anchor = moment((int(time.time()) // EVERY_S - 2) * EVERY_S)
        here.schedules(
            ns,
            EVERY_S,
            lambda number: {
                "interval": {"every": f"{EVERY_S}s", "offset": f"{number}s", "anchor": anchor}
            },
        )
        running = stack.enter_context(operator(here.kubeconfig, directory=here.directory))
        wait_calm([*here.pids("kube-apiserver"), running.pid], cores=0.15, within_s=30)
        idle, assert_log = Idle(), here.cluster.audit_log
        assert assert_log is not None
        creates = Creates(assert_log, ACCOUNT)
        began = math.ceil(time.time()) + 2
        time.sleep(began + samples + 2 - time.time())
        late_ms = [
            late_s * 1e3
            for late_s in creates.lateness_s(due_from=began, due_before=began + samples)
        ]
    assert len(late_ms) == samples, f"{len(late_ms)} creates of {samples}"
    beside = {
        "min_ms": late_ms[0],
        "max_ms": late_ms[-1],
        "samples": samples,
        "machine_idle": idle.share(),
    }
    for name, percent in (("p50", 50), ("p99", 99)):
        yield {
            "name": f"create received after due, {name}",
            "value": percentile(late_ms, percent),
            "unit": "ms",
            "beside": beside,
        }
