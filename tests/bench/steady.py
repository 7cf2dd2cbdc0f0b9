"""Ten thousand schedules at 17 runs a second on a fake node: lateness, processor, memory.

One minute; ten with --long. Lateness is when the API server received the create (its audit log)
minus the due instant. Pods run for 0.2 s on a node by kwok, so every run goes its whole way, status
writes and history included. The figures mean nothing where the machine itself was the limit: the
idle share is printed, and below 20 % the rows say `invalid`.
"""

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._audit import Creates
from tests.bench._cluster import ACCOUNT, place
from tests.bench._machine import Idle, processor_s, resident_mb
from tests.bench._measure import long_form, percentile, say
from tests.cluster.operator_process import operator
from tests.cluster.world import eventually, moment

COUNT = 10_000
EVERY_S = 600
LEAST_IDLE = 0.2


def rows() -> Iterator[dict[str, Any]]:
    span_s = 600 if long_form() else 60
    with ExitStack() as stack:
        here = stack.enter_context(place(pods="kwok"))
        ns = here.namespace("steady")
        anchor = moment((int(time.time()) // EVERY_S - 2) * EVERY_S)
        here.schedules(
            ns,
            COUNT,
            lambda number: {
                "interval": {
                    "every": f"{EVERY_S}s",
                    "offset": f"{number % EVERY_S}s",
                    "anchor": anchor,
                }
            },
        )
        running = stack.enter_context(operator(here.kubeconfig, directory=here.directory))
        eventually(
            # Some are always on their way: 17 runs a second write 34 statuses.
            lambda: running.metrics()["evenkeel_status_waiting"] < 50,
            "the statuses of the start are written",
            within_s=600,
            every_s=1.0,
        )
        log = here.cluster.audit_log
        assert log is not None
        pids = here.pids()
        creates, idle = Creates(log, ACCOUNT), Idle()
        used_s, others_s = processor_s(running.pid), processor_s(*pids)
        resident, began = resident_mb(running.pid), math.ceil(time.time()) + 1
        before = running.metrics()
        time.sleep(began + span_s - time.time())
        took_s = time.time() - began + 1
        idle_share = idle.share()
        used_s, others_s = processor_s(running.pid) - used_s, processor_s(*pids) - others_s
        grown = resident_mb(running.pid) - resident
        after = running.metrics()
        time.sleep(3)
        late_s = creates.lateness_s(due_from=began, due_before=began + span_s)
    ends = 'evenkeel_runs_total{state="succeeded"}'
    valid = idle_share >= LEAST_IDLE
    if not valid:
        say(f"       steady: INVALID, the machine was idle for {idle_share:.0%} only")
    expected = COUNT // EVERY_S * span_s  # 16 in some seconds, 17 in the others
    assert len(late_s) > 0.99 * expected, f"{len(late_s)} creates, {expected} or more were due"
    beside = {
        "valid": valid,
        "machine_idle": idle_share,
        "runs_a_second": len(late_s) / span_s,
        "succeeded_a_second": (after.get(ends, 0) - before.get(ends, 0)) / took_s,
        "control_plane_cores": others_s / took_s,
        "seconds": span_s,
    }
    yield {
        "name": "17 runs/s, p99 lateness",
        "value": percentile(late_s, 99) * 1e3,
        "unit": "ms",
        "beside": {
            "p50_ms": percentile(late_s, 50) * 1e3,
            "max_ms": late_s[-1] * 1e3,
            **beside,
        },
    }
    yield {
        "name": "17 runs/s, the operator's processor",
        "value": used_s / took_s,
        "unit": "cores",
        "beside": {"ms_a_run": used_s / len(late_s) * 1e3, **beside},
    }
    yield {
        "name": "17 runs/s, growth of the resident set",
        "value": grown,
        "unit": "MB",
        "beside": {"resident_mb": resident + grown, **beside},
    }
