"""The numbers that /metrics shows, in a registry of their own. No label holds a user's text.

`app` feeds the counters and histograms, and says where the gauges are read from.
"""

from collections.abc import Callable, Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from evenkeel.balance import Distribution
from evenkeel.model import ENDED, Verdict

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SHORT = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
_PULSE = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1)


# A series `evenkeel_runs_created` reads like a number of runs, and is the time the counter began.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counters and histograms that the shell feeds; gauges are read when somebody scrapes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.lateness = self._histogram(
            "evenkeel_run_lateness_seconds", "Create sent after the due time, runs taken in time"
        )
        self.create_s = self._histogram("evenkeel_create_seconds", "Duration of a create call")
        self.step_s = self._histogram("evenkeel_loop_step_seconds", "Duration of a step", _SHORT)
        self.lag_s = self._histogram(
            "evenkeel_loop_lag_seconds", "Step begun after the time it was due", _SHORT
        )
        self.pulse_s = self._histogram(
            "evenkeel_loop_pulse_seconds",
            "How late a timer of the loop fires, measured 50 times a second",
            _PULSE,
        )
        self.status_s = self._histogram(
            "evenkeel_status_write_seconds", "Duration of a status patch"
        )
        self.runs = self._counter("evenkeel_runs", "Runs by their final state", "state")
        self.skipped = self._counter("evenkeel_runs_skipped", "Runs a policy refused", "reason")
        self.missed = self._counter(
            "evenkeel_runs_missed", "Runs nobody launched in time", "reason"
        )
        self.creates = self._counter("evenkeel_creates", "What creates proved", "verdict")
        self.internal_errors = Counter(
            "evenkeel_internal_errors",
            "Handlers of one schedule that raised: defects of the operator",
            registry=self.registry,
        )
        self.status_writes = self._counter(
            "evenkeel_status_writes", "Status patches by outcome", "outcome"
        )
        self.watch_restarts = self._counter(
            "evenkeel_watch_restarts", "Watches of Jobs begun anew", "reason"
        )
        self.placements = self._counter("scheduler_placements", "Phases chosen", "type")
        self.placement_s = self._histogram(
            "scheduler_placement_duration_seconds", "Choosing one phase", _SHORT
        )
        self.rebalances = Counter(
            "scheduler_rebalance", "Rebalances carried out", registry=self.registry
        )
        self.rebalance_moved = Gauge(
            "scheduler_rebalance_jobs_moved", "By the last rebalance", registry=self.registry
        )
        self.rebalance_skipped = Gauge(
            "scheduler_rebalance_jobs_skipped", "By the last rebalance", registry=self.registry
        )
        self.index_s = self._histogram(
            "evenkeel_index_build_seconds", "From wanting an index to having it", _SHORT
        )
        # There from the start: Prometheus sees no increase in a series that begins at 1.
        for state in sorted(ENDED):
            self.runs.labels(state.value)
        for verdict in Verdict:
            self.creates.labels(verdict.value)
        self._observers: dict[str, Callable[[float], object]] = {
            "lateness": self.lateness.observe,
            "index_build": self.index_s.observe,
            "placement": self.placement_s.observe,
            "placed_new": self.placements.labels("new").inc,
            "placed_again": self.placements.labels("reschedule").inc,
            "placed_rebalance": self.placements.labels("rebalance").inc,
            "rebalanced": self.rebalances.inc,
            "rebalance_moved": self.rebalance_moved.set,
            "rebalance_skipped": self.rebalance_skipped.set,
            "internal_error": self.internal_errors.inc,
        }
        self.events_dropped = Counter(
            "evenkeel_events_dropped", "Kubernetes Events not sent", registry=self.registry
        )

    def observed(self, metric: str, value: float) -> None:
        """What the scheduler saw."""
        self._observers[metric](value)

    def distribution(self, read: Callable[[], Distribution]) -> None:
        """The load of the next 24 hours."""
        self.registry.register(_Load(read))

    def create_answered(self, verdict: str, took_s: float | None) -> None:
        """A create has its verdict; without a duration it was not an answer that gave it."""
        self.creates.labels(verdict).inc()
        if took_s is not None:
            self.create_s.observe(took_s)

    def status_answered(self, outcome: str, took_s: float) -> None:
        """A status patch was answered."""
        self.status_writes.labels(outcome).inc()
        self.status_s.observe(took_s)

    def stepped(self, took_s: float, lag_s: float) -> None:
        """The loop made a step."""
        self.step_s.observe(took_s)
        self.lag_s.observe(lag_s)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A number that is read at each scrape."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

    def _counter(self, name: str, text: str, label: str) -> Counter:
        return Counter(name, text, [label], registry=self.registry)


class _Load(Collector):
    def __init__(self, read: Callable[[], Distribution]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        picture = self._read()
        yield GaugeMetricFamily(
            "scheduler_distribution_score",
            "Evenness of the next 24 hours, 0 to 1",
            value=picture.distribution_score,
        )
        hours = GaugeMetricFamily(
            "scheduler_slot_job_count", "Schedules with a run in this UTC hour", labels=["hour"]
        )
        for hour in picture.hourly:
            hours.add_metric([str(hour.hour)], hour.job_count)
        yield hours
        yield GaugeMetricFamily(
            "scheduler_peak_hour_job_count",
            "Runs in the hour of the highest load",
            value=picture.peak_count,
        )
        yield GaugeMetricFamily(
            "evenkeel_busiest_minute_starts",
            "Runs that start in the busiest minute of the next 24 hours",
            value=picture.busiest_minute.starts,
        )
        yield GaugeMetricFamily(
            "evenkeel_busiest_second_starts",
            "Runs that start in the busiest second of the next 24 hours",
            value=picture.busiest_second.starts,
        )
        concurrency = GaugeMetricFamily(
            "evenkeel_expected_concurrency_peak",
            "Most runs that are expected to go on at once; no value while no duration is known",
        )
        if picture.concurrency is not None:
            concurrency.add_metric([], picture.concurrency.peak)
        yield concurrency
