"""The numbers of the ledger that /metrics shows; `Metrics` holds them. No label names a schedule.

The syncer tells them by name, because `ledger` and `web` do not know each other.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Histogram

_ROWS = (1, 2, 5, 10, 25, 50, 100, 250, 500)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

ERRORS = ("away", "older_term", "bad_store", "defect")
"""Why a call of the store failed."""

REFUSED = ("illegal", "bad")
"""Why the store did not take a row: no legal steps lead to it, or it cannot be stored at all."""


def observers(registry: CollectorRegistry) -> dict[str, Callable[[float], object]]:
    """Register them all; each is told by its name."""

    def counter(name: str, text: str) -> Callable[[float], object]:
        return Counter(name, text, registry=registry).inc

    batch = Histogram(
        "evenkeel_ledger_batch_rows", "Rows of a batch", buckets=_ROWS, registry=registry
    )
    write_s = Histogram(
        "evenkeel_ledger_write_seconds",
        "Duration of writing a batch",
        buckets=_SECONDS,
        registry=registry,
    )
    errors = Counter(
        "evenkeel_ledger_errors", "Calls of the store that failed", ["kind"], registry=registry
    )
    refused = Counter(
        "evenkeel_ledger_refused_rows", "Rows not taken", ["reason"], registry=registry
    )
    return {
        "ledger_batch": batch.observe,
        "ledger_write": write_s.observe,
        "ledger_rows": counter("evenkeel_ledger_rows", "Rows written"),
        "ledger_dropped": counter("evenkeel_ledger_dropped_rows", "Rows for which was no room"),
        "ledger_promoted": counter("evenkeel_ledger_promoted_runs", "Deferred runs promoted"),
        "ledger_reconciled": counter(
            "evenkeel_ledger_reconciled_runs", "Due times filled in that the ledger lacked"
        ),
        "ledger_unrecorded": counter(
            "evenkeel_ledger_unrecorded_runs", "Due times of which nobody knows any more"
        ),
        **{f"ledger_{reason}": refused.labels(reason).inc for reason in REFUSED},
        **{f"ledger_error_{kind}": errors.labels(kind).inc for kind in ERRORS},
    }
