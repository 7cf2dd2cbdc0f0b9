"""The gauges of /metrics: numbers of the operator's parts that are read when somebody scrapes.

`app` registers them once it has built the parts.
"""

from collections.abc import Callable, Sequence

from evenkeel.clock import Clock
from evenkeel.core.scheduler import Scheduler
from evenkeel.kube.events import Events
from evenkeel.kube.launcher import Launcher
from evenkeel.kube.pruner import Pruner
from evenkeel.kube.reflector import Reflector
from evenkeel.kube.status_sync import StatusSync
from evenkeel.ledger.sync import LedgerState, LedgerSync
from evenkeel.web.metrics import Metrics
from evenkeel.web.schedule_metrics import ScheduleMetrics


def register_scheduler(metrics: Metrics, scheduler: Scheduler, named: ScheduleMetrics) -> None:
    """What the scheduler keeps."""
    gauge, state = metrics.gauge, scheduler.state
    metrics.gauges("evenkeel_schedules", "Schedules by state", "state", state.schedules_by_state)
    metrics.gauges(
        "evenkeel_requests", "RunRequests by state", "state", scheduler.requests_by_state
    )
    gauge(
        "evenkeel_schedule_metrics_left_out",
        "1 where there are too many schedules for metrics that name them",
        lambda: named.left_out,
    )
    gauge("evenkeel_index_runs", "Runs in the index", lambda: state.statistics.index_runs)
    gauge(
        "evenkeel_runs_running",
        "Runs whose Job exists and has not ended",
        lambda: state.census.running,
    )
    gauge(
        "evenkeel_runs_waiting",
        "Runs queued, held or between attempts",
        lambda: state.census.waiting,
    )
    gauge("evenkeel_inbox_messages", "Messages not yet read", lambda: len(scheduler.inbox))


def register_writers(
    metrics: Metrics,
    *,
    launcher: Launcher,
    status_syncs: Sequence[StatusSync],
    events: Events,
    ledger: LedgerSync,
) -> None:
    """What waits to be written."""
    gauge = metrics.gauge
    gauge("evenkeel_creates_in_flight", "Creates under way", lambda: launcher.creating)
    gauge(
        "evenkeel_status_waiting",
        "Statuses not yet written",
        lambda: sum(sync.waiting for sync in status_syncs),
    )
    gauge(
        "evenkeel_status_failing",
        "Statuses whose last write failed",
        lambda: sum(sync.failing for sync in status_syncs),
    )
    gauge(
        "evenkeel_status_oldest_seconds",
        "Since the oldest change that no stored status tells of",
        lambda: max(sync.oldest_s for sync in status_syncs),
    )
    gauge("evenkeel_events_waiting", "Events not yet sent", lambda: events.waiting)
    gauge("evenkeel_ledger_waiting_rows", "Rows not yet written", lambda: ledger.waiting)
    gauge(
        "evenkeel_ledger_oldest_seconds",
        "Since the oldest row that is not written",
        lambda: ledger.oldest_s,
    )
    gauge(
        "evenkeel_ledger_degraded",
        "1 while the ledger's store is away",
        lambda: float(ledger.state is LedgerState.AWAY),
    )


def register_watches(
    metrics: Metrics,
    clock: Clock,
    *,
    jobs: Sequence[Reflector],
    pruner: Pruner,
) -> None:
    """When the API server was last heard."""
    gauge: Callable[[str, str, Callable[[], float]], None] = metrics.gauge
    gauge(
        "evenkeel_watch_silence_seconds",
        "Since the Jobs watch was last heard",
        lambda: max(reflector.silence_s for reflector in jobs),
    )
    gauge(
        "evenkeel_schedules_silence_seconds",
        "Since all ScheduledJobs were last listed",
        lambda: clock.now() - pruner.heard_at,
    )
    gauge(
        "evenkeel_clock_skew_seconds",
        "The API server's clock minus ours, as far as its whole seconds tell",
        lambda: pruner.clock_skew_s,
    )
