"""The numbers that /metrics shows, in a registry of their own. No label holds a user's text.

`app` feeds the counters and histograms, and says where the gauges are read from. Every value that a
label can have is there from the start with 0, because Prometheus sees no increase in a series that
begins at 1. The values come from the enums.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from evenkeel.balance import Distribution
from evenkeel.model import ENDED, RunState, Verdict, WatchRestart, WriteOutcome
from evenkeel.reasons import WHY_MISSED, WHY_SKIPPED, DelayCause
from evenkeel.web import ledger_metrics
from evenkeel.web.counts import Counts
from evenkeel.web.request_metrics import RequestMetrics

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SHORT = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
_PULSE = (0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1)
DELAYS = (0.1, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)
"""Up to a day: the delay of a run that a restart found may be as long as the operator was down."""

PLACEMENTS = ("new", "reschedule", "rebalance")

MOST_NAMESPACES = 10_000
"""Whose runs are counted; those of others are counted in the sum alone."""

# A series `evenkeel_runs_created` reads like a number of runs, and is the time the counter began.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counters and histograms that the shell feeds; gauges are read when somebody scrapes."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self.registry = CollectorRegistry()
        self.counts = Counts(monotonic=monotonic)
        self.registry.register(_Runs(self.counts))
        self.requests = RequestMetrics(self.counts)
        self.registry.register(self.requests)
        self._namespaces: set[str] = set()
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
        self.creates = self._counter("evenkeel_creates", "What creates proved", "verdict", Verdict)
        self.internal_errors = Counter(
            "evenkeel_internal_errors",
            "Handlers of one schedule that raised: defects of the operator",
            registry=self.registry,
        )
        self.status_writes = self._counter(
            "evenkeel_status_writes", "Status patches by outcome", "outcome", WriteOutcome
        )
        self.watch_restarts = self._counter(
            "evenkeel_watch_restarts", "Watches of Jobs begun anew", "reason", WatchRestart
        )
        self.placements = self._counter("scheduler_placements", "Phases chosen", "type", PLACEMENTS)
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
        self.crd_schema_match = Gauge(
            "evenkeel_crd_schema_match",
            "Whether the CRDs in the cluster are those of this operator; NaN: it cannot be told",
            registry=self.registry,
        )
        self.schedules_watch_silence_s = Gauge(
            "evenkeel_schedules_watch_silence_seconds",
            "Since the watch of ScheduledJobs or RunRequests was last heard",
            registry=self.registry,
        )
        self.index_s = self._histogram(
            "evenkeel_index_build_seconds", "From wanting an index to having it", _SHORT
        )
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
            **ledger_metrics.observers(self.registry),
        }
        self.events_dropped = Counter(
            "evenkeel_events_dropped", "Kubernetes Events not sent", registry=self.registry
        )

    def observed(self, metric: str, value: float) -> None:
        """What the scheduler saw."""
        self._observers[metric](value)

    def ended(self, ns: str, state: RunState, reason: str | None, number: int) -> None:
        """So many runs have come to this end."""
        self.counts.add(("state", state), number)
        if state is RunState.SKIPPED:
            self.counts.add(("skipped", str(reason)), number)
        elif state is RunState.MISSED:
            self.counts.add(("missed", str(reason)), number)
        if ns in self._namespaces or len(self._namespaces) < MOST_NAMESPACES:
            self._namespaces.add(ns)
            self.counts.add(("namespace", ns, state), number)

    def forget_namespaces(self, kept: set[str]) -> None:
        """Only these still have a schedule."""
        gone = self._namespaces - kept
        if gone:
            self._namespaces -= gone
            keys = self.counts.keys("namespace")
            self.counts.forget(key for key in keys if key[1] in gone)

    def delayed(self, delay_s: float, cause: DelayCause) -> None:
        """A run was created so long after its due time."""
        bucket = next((bound for bound in DELAYS if delay_s <= bound), float("inf"))
        self.counts.add(("delay", cause, _shown(bucket)))
        self.counts.add(("delay sum", cause), delay_s)

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

    def gauges(
        self, name: str, text: str, label: str, read: Callable[[], Mapping[Any, float]]
    ) -> None:
        """Numbers that are read at each scrape, by the value of a label."""
        self.registry.register(_Gauges(name, text, label, read))

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

    def _counter(self, name: str, text: str, label: str, values: Iterable[str]) -> Counter:
        counter = Counter(name, text, [label], registry=self.registry)
        for value in values:
            counter.labels(str(value))
        return counter


def _shown(bound: float) -> str:
    """The bound of a bucket, as the client library writes it."""
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


class _Runs(Collector):
    """What became of due times: numbers that are withheld at first."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        for name, text, label, key, values in (
            ("evenkeel_runs", "Runs by their final state", "state", "state", ENDED),
            ("evenkeel_runs_skipped", "Runs a policy refused", "reason", "skipped", WHY_SKIPPED),
            ("evenkeel_runs_missed", "Runs nobody launched", "reason", "missed", WHY_MISSED),
        ):
            family = CounterMetricFamily(name, text, labels=[label])
            for value in sorted(map(str, values)):
                family.add_metric([value], self._counts.shown((key, value)))
            yield family
        yield GaugeMetricFamily(
            "evenkeel_runs_missed_not_yet_counted",
            "Missed runs that the counters will show soon after the first scrape",
            value=self._counts.withheld("missed"),
        )
        delays = HistogramMetricFamily(
            "evenkeel_run_delay_seconds",
            "From the due time to the create of a run's first Job, by what first delayed it",
            labels=["cause"],
        )
        for cause in DelayCause:
            total, buckets = 0.0, []
            for bound in map(_shown, (*DELAYS, float("inf"))):
                total += self._counts.shown(("delay", cause, bound))
                buckets.append((bound, total))
            sum_s = self._counts.shown(("delay sum", cause))
            delays.add_metric([cause.value], buckets=buckets, sum_value=sum_s)
        yield delays


class _Gauges(Collector):
    def __init__(
        self, name: str, text: str, label: str, read: Callable[[], Mapping[Any, float]]
    ) -> None:
        self._name, self._text, self._label, self._read = name, text, label, read

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(self._name, self._text, labels=[self._label])
        for value, number in self._read().items():
            family.add_metric([str(value)], number)
        yield family


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
