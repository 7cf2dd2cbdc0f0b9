"""What one schedule may use while it is handled: the time, the settings, the agenda, and the ways
to say something.

`core.route` makes one for each call of a handler and hands its effects on when the handler has
returned. A handler that raises leaves nothing behind: its effects are dropped with its `Turn`.
"""

from dataclasses import dataclass, field
from typing import Any

from evenkeel.core.agenda import Agenda, Start
from evenkeel.core.effects import Effect, KubeEvent, Log, WriteRequest, WriteStatus
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.progress import Storing
from evenkeel.core.schedule.ready import DECIDE_READY, readiness, renew, sentence
from evenkeel.core.schedule.request import RequestEntry
from evenkeel.core.schedule.run import Run
from evenkeel.model import Instant, RunId
from evenkeel.reasons import (
    ConditionReason,
    ConditionType,
    EventReason,
    RequestCondition,
    RequestReason,
)
from evenkeel.resource.names import REQUEST_KIND
from evenkeel.settings import Settings

SENTENCE_LIMIT = 1024
"""Characters of a condition's or an Event's message; the API server takes no longer Event."""


@dataclass(slots=True)
class Turn:
    """One schedule's turn in a step."""

    now: float
    second: Instant
    """The whole second that it is."""
    horizon: Instant
    """What was due before it is later than grace allows."""
    monotonic: float
    settings: Settings
    agenda: Agenda
    stopping: bool = False
    silent: bool = False
    """The watch of this schedule's Jobs has been told nothing for minutes."""
    rebalancing: bool = False
    """A rebalance, or the improvement of a set, is being carried out."""
    effects: list[Effect] = field(default_factory=list)
    server_answered: bool = False
    """A create got an answer: schedules that wait for the API server may go on."""
    server_unreachable: bool = False
    """A create could not be sent: this schedule waits for the API server."""

    def emit(self, effect: Effect) -> None:
        """Have something done after this step."""
        self.effects.append(effect)

    def log(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """One line, an event and its fields."""
        self.emit(Log(level, event, fields))

    def event(
        self,
        entry: Entry,
        reason: EventReason,
        message: str,
        *,
        warning: bool = False,
        run: RunId | None = None,
    ) -> None:
        """A Kubernetes Event for the schedule's owner; of a requested `run` for whoever asked for
        it."""
        request = entry.request_of(run) if run else None
        if request is not None:
            self.request_event(request, reason, message, warning=warning)
            return
        self.emit(
            KubeEvent(entry.uid, entry.ns, entry.name, warning, reason, message[:SENTENCE_LIMIT])
        )

    def request_event(
        self, request: RequestEntry, reason: EventReason, message: str, *, warning: bool = False
    ) -> None:
        """A Kubernetes Event on a request."""
        message = message[:SENTENCE_LIMIT]
        self.emit(
            KubeEvent(request.uid, request.ns, request.name, warning, reason, message, REQUEST_KIND)
        )

    def condition(
        self,
        entry: Entry,
        kind: ConditionType,
        status: str,
        reason: ConditionReason,
        message: str = "",
    ) -> None:
        """Set a condition, and Ready and Stalled, which follow from it. The transition time of a
        condition moves only when its status does."""
        self._put(entry, kind, status, reason, message)
        if kind not in DECIDE_READY:
            return
        status, why, message = readiness(entry.conditions)
        self._put(entry, ConditionType.READY, status, why, message)
        if status == "False":
            self._put(entry, ConditionType.STALLED, "True", why, message)
        elif entry.conditions.pop(ConditionType.STALLED, None) is not None:
            self.dirty(entry)

    def _put(
        self, entry: Entry, kind: ConditionType, status: str, reason: str, message: str
    ) -> None:
        message = message or sentence(kind, reason)
        if self._renewed(entry, kind, status, reason, message):
            self.dirty(entry)

    def _renewed(
        self, of: Entry | RequestEntry, kind: str, status: str, reason: str, message: str
    ) -> bool:
        """Whether the condition is another one now."""
        old, message = of.conditions.get(kind), message[:SENTENCE_LIMIT]
        new = renew(old, status, reason, message, now=self.second, generation=of.generation)
        of.conditions[kind] = new
        return new != old

    def dirty(self, entry: Entry) -> None:
        """The status is to be written: at most one patch per schedule and second."""
        if entry.storing.change(entry.generation) and self.monotonic >= entry.storing.shown_from_m:
            self._ask_write(entry)

    def request_condition(
        self,
        request: RequestEntry,
        kind: RequestCondition,
        status: str,
        reason: RequestReason,
        message: str,
    ) -> None:
        """Set a condition of a request."""
        if self._renewed(request, kind, status, reason, message):
            self.request_dirty(request)

    def request_dirty(self, request: RequestEntry) -> None:
        """The status of a request is to be written."""
        if request.storing.change(request.generation):
            self.emit(WriteRequest(request.uid, request.storing.ask(request.generation)))

    def changed(self, entry: Entry, run: Run) -> Storing:
        """The status that tells of a run has changed: that of its request, or of its schedule."""
        request = entry.request_of(run.id)
        if request is None:
            self.dirty(entry)
            return entry.storing
        self.request_dirty(request)
        return request.storing

    def show(self, entry: Entry) -> None:
        """A status that was held back is to be written now."""
        entry.storing.shown_from_m = self.monotonic
        if entry.storing.revision > entry.storing.written:
            self._ask_write(entry)

    def _ask_write(self, entry: Entry) -> None:
        self.emit(WriteStatus(entry.uid, entry.storing.ask(entry.generation)))

    def retry_later(self, run: Run, *, delay_s: float) -> None:
        """A run's next try, after a delay by the monotonic clock."""
        delay_s = max(0.0, delay_s)
        run.retry_m = self.monotonic + delay_s
        run.retry_at = int(self.now + delay_s)
        self.agenda.put_delay(run.retry_m, Start(run.id, run.attempt))

    def start_when_due(self, run: Run) -> None:
        """Its due time is to come, by a clock that was set back: its grace counts from there."""
        run.taken_m = self.monotonic + max(0.0, run.id.due - self.now)
        run.retry_m = self.monotonic
        self.agenda.put_due(max(run.id.due, 0), Start(run.id, run.attempt))
