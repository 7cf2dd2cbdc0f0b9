"""What a write makes of the row that is stored. All stores ask here. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from evenkeel.ledger.rows import Deferred, Holder, RunRow
from evenkeel.model import ENDED, Attempt, RunState, reaches
from evenkeel.reasons import Reason

SCHEDULE_DELETED = Reason.SCHEDULE_DELETED.value
"""Why a run is cancelled whose schedule was deleted."""

WAITING = (RunState.SCHEDULED, RunState.RETRYING)
"""States of rows in the hot table that nobody has promoted yet."""

_SAID_ONCE = ("taken_up", "created")
"""They tell of the first attempt: what later attempts say does not change them."""
_LATEST = (
    "job",
    "started",
    "finished",
    "exit_code",
    "exit_reason",
    "container",
    "message",
    "generation",
    "template_hash",
    "request",
    "requested_by",
)


def merge(stored: RunRow | None, new: RunRow) -> RunRow | None:
    """The row that is to be stored; None: the write is illegal.

    No row counts as one that is scheduled. `due_at` and `priority` are the hot row's (`defer`)."""
    if stored is None:
        attempts = merge_attempts((), new.attempts)
        if new.attempt and attempts == new.attempts:
            return new
        return replace(new, attempt=new.attempt or 1, attempts=attempts)
    new = replace(new, attempt=new.attempt or stored.attempt)
    if new.attempt < stored.attempt or not reaches(stored.state, new.state):
        return None
    attempts = merge_attempts(stored.attempts, new.attempts)
    if stored.state in ENDED:
        filled = _filled(stored, new, ("reason", *_SAID_ONCE, *_LATEST))
        return replace(stored, attempts=attempts, **filled)
    told = _filled(stored, new, _SAID_ONCE) | {
        name: value for name in _LATEST if not _is_empty(name, value := getattr(new, name))
    }
    reason = new.reason if new.reason or new.state is not stored.state else stored.reason
    return replace(
        stored, state=new.state, reason=reason, attempt=new.attempt, attempts=attempts, **told
    )


def _filled(stored: object, new: object, names: Iterable[str]) -> dict[str, Any]:
    """What is empty in the stored row, from the new one."""
    return {name: getattr(new, name) for name in names if _is_empty(name, getattr(stored, name))}


def _is_empty(name: str, value: object) -> bool:
    return value is None or value == "" or (name == "generation" and value == 0)


def merge_attempts(stored: Iterable[Attempt], new: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """By number, ascending. What is known stays; what is not is filled."""
    attempts = {one.number: one for one in stored}
    for one in new:
        known = attempts.get(one.number)
        names = ("job", "created", "started", "finished", "exit_code", "reason")
        attempts[one.number] = replace(known, **_filled(known, one, names)) if known else one
    return tuple(attempts[number] for number in sorted(attempts))


@dataclass(frozen=True, slots=True)
class Hot:
    """A row of the hot table, with who has promoted it."""

    row: Deferred
    holder: Holder | None = None


def defer(hot: Hot | None, new: RunRow, *, term: int) -> Hot | None:
    """The hot row after a legal write. A run that begins or ends has none.

    A row that was promoted stays so when the write is repeated that put it there: two callers would
    get it otherwise."""
    if new.state in WAITING:
        if new.due_at is None:
            return hot
        attempt = new.attempt or (hot.row.attempt if hot else 1)
        if (
            hot is not None
            and hot.row.state is RunState.PENDING
            and (hot.row.attempt, hot.row.due_at) == (attempt, new.due_at)
        ):
            return hot
        request = new.request or (hot.row.request if hot else "")
        return Hot(
            Deferred(new.run, new.key, new.due_at, new.priority, new.state, attempt, request)
        )
    if new.state is RunState.PENDING and hot is not None:
        row = replace(hot.row, state=RunState.PENDING, attempt=max(hot.row.attempt, new.attempt))
        # Without a holder nobody would put it back after this process has died.
        return Hot(row, hot.holder or Holder(term, ""))
    return None


def put_back(row: Deferred) -> Deferred:
    """A promoted row whose holder is dead."""
    state = RunState.RETRYING if row.attempt > 1 else RunState.SCHEDULED
    return replace(row, state=state)


def cancelled(stored: RunRow, *, at: int) -> RunRow:
    """An unfinished run whose schedule was deleted."""
    finished = at if stored.finished is None else stored.finished
    return replace(stored, state=RunState.CANCELLED, reason=SCHEDULE_DELETED, finished=finished)
