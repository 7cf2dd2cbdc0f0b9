"""The numbers of requests that /metrics shows: how each request and each requested run ended.

Requested runs are counted here and not among the runs by schedule: alerts on those mean that a due
time was not served, which no requested run can tell. `metrics` registers this.
"""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from evenkeel.model import ENDED, RunState
from evenkeel.reasons import HOW_REQUESTS_END, RequestReason
from evenkeel.web.counts import Counts


class RequestMetrics(Collector):
    """Counters that the shell feeds. They are withheld at first, as those of scheduled runs are."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def ended(self, reason: RequestReason) -> None:
        """A request has come to its end."""
        self._counts.add(("request", reason))

    def run_ended(self, state: RunState) -> None:
        """A requested run has come to this end."""
        self._counts.add(("requested run", state))

    def collect(self) -> Iterator[Metric]:
        for name, text, label, key, values in (
            (
                "evenkeel_requests_ended",
                "RunRequests by end",
                "reason",
                "request",
                HOW_REQUESTS_END,
            ),
            ("evenkeel_requested_runs", "Requested runs by end", "state", "requested run", ENDED),
        ):
            family = CounterMetricFamily(name, text, labels=[label])
            for value in sorted(map(str, values)):
                family.add_metric([value], self._counts.shown((key, value)))
            yield family
