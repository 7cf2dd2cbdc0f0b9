"""The text of /metrics/schedules: a few lines for each schedule, in Prometheus' format.

Pure; `schedule_metrics` calls it in another thread, a page of schedules at a time. It remembers the
next due times of each schedule from one scrape to the next, because to search for them is what
costs. Not guaranteed: that the due times of a pause count as passed over after a restart.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from evenkeel.core.schedule.figures import Figures
from evenkeel.model import ENDED, Instant, Interval
from evenkeel.when import DueTimes

AHEAD = 8
"""Due times that are looked at for the expected period: a working day's schedule runs at 17:00 on
Friday and at 9:00 on Monday."""

FAMILIES: dict[str, tuple[str, str]] = {
    "evenkeel_schedule_state": ("gauge", "How the schedule stands: 1 for the state that it has"),
    "evenkeel_schedule_next_run_timestamp_seconds": ("gauge", "The next due time"),
    "evenkeel_schedule_last_success_timestamp_seconds": ("gauge", "The end of the last success"),
    "evenkeel_schedule_last_result": ("gauge", "The end of the last run: 1 for the one it had"),
    "evenkeel_schedule_consecutive_failures": ("gauge", "Runs that failed or were lost in a row"),
    "evenkeel_schedule_due_times_without_success": (
        "gauge",
        "Due times since the last success, or since the schedule began; 0 while nothing may start",
    ),
    "evenkeel_schedule_active": ("gauge", "Runs whose Job exists and has not ended"),
    "evenkeel_schedule_paused": ("gauge", "1 while status.pause stops new runs"),
    "evenkeel_schedule_stalled": ("gauge", "1 while only an edit helps: spec or template refused"),
    "evenkeel_schedule_expected_period_seconds": (
        "gauge",
        "The longest time between two of the next due times",
    ),
    "evenkeel_namespace_runs_total": ("counter", "Runs by namespace and final state"),
}
"""Type and help of each family, in the order of the text."""

Page = dict[str, bytes]
"""Lines by family. Bytes of a whole page: to join fifty thousand lines in one piece would keep the
interpreter lock from the loop."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a schedule."""

    labels: str
    dues: DueTimes | None = None
    since: Instant = 0
    passed: int = 0
    looked_at: Instant = 0
    off_at: Instant = 0
    """When nothing could start, last."""
    ahead: deque[Instant] = field(default_factory=deque)
    """The last due time that has passed, if there is one, and the next ones."""


class ScheduleText:
    """Renders pages; one rendering at a time."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def page(self, figures: Iterable[Figures], now: Instant) -> Page:
        """The lines of some schedules."""
        lines: dict[str, list[str]] = {name: [] for name in FAMILIES}
        for each in figures:
            known = self._known.get(each.uid)
            if known is None:
                known = self._known[each.uid] = _Known(
                    labels(namespace=each.ns, schedule=each.name)
                )
            _look(known, each, now)
            for name, more, value in _samples(known, each, now):
                lines[name].append(f"{name}{{{known.labels}{more}}} {value}\n")
        return {name: "".join(found).encode() for name, found in lines.items()}

    def forget(self, kept: set[str]) -> None:
        """Only these uids are still there."""
        for uid in self._known.keys() - kept:
            del self._known[uid]


def namespaces(runs: Mapping[tuple[str, str], float], names: Iterable[str]) -> Page:
    """The lines of namespaces: every final state of each."""
    name = "evenkeel_namespace_runs_total"
    states = sorted(map(str, ENDED))
    lines = [
        f"{name}{{{labels(namespace=ns, state=state)}}} {runs.get((ns, state), 0):.0f}\n"
        for ns in sorted(names)
        for state in states
    ]
    return {name: "".join(lines).encode()}


def join(pages: Iterable[Page]) -> bytes:
    """The whole text: the samples of a family stand together, whatever page they are of."""
    found = list(pages)
    parts = []
    for name, (kind, text) in FAMILIES.items():
        parts.append(f"# HELP {name} {text}\n# TYPE {name} {kind}\n".encode())
        parts += [page.get(name, b"") for page in found]
    return b"".join(parts)


def labels(**values: str) -> str:
    """`name="value"`, escaped: a name of Kubernetes needs none, but nobody has checked it here."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- one schedule ---------------------------------------------------------------------------------


def _look(known: _Known, each: Figures, now: Instant) -> None:
    """Bring what is remembered up to now."""
    dues = each.dues
    if dues is None:
        known.dues, known.off_at, known.passed = None, now, 0
        known.ahead.clear()
        return
    since = max(each.since, known.off_at)
    if dues is not known.dues or since != known.since or now < known.looked_at:
        if dues is not known.dues or now < known.looked_at:
            known.ahead = deque(dues.newest(0, now + 1, limit=1))
        known.dues, known.since = dues, since
        known.passed = dues.count(since + 1, now + 1)
        _fill(known, dues, now)
    elif (following := _next(known, known.looked_at)) is not None and following <= now:
        known.passed += dues.count(known.looked_at + 1, now + 1)
        _fill(known, dues, now)
    known.looked_at = now


def _fill(known: _Known, dues: DueTimes, now: Instant) -> None:
    ahead = known.ahead
    while len(ahead) > 1 and ahead[1] <= now:
        ahead.popleft()
    # Of an interval every gap is the same.
    wanted = 2 if isinstance(dues.timing.rule, Interval) else AHEAD
    last = max(ahead[-1], now) if ahead else now
    while len(ahead) < wanted and (following := dues.next_after(last)) is not None:
        ahead.append(following)
        last = following


def _next(known: _Known, after: Instant) -> Instant | None:
    return next((due for due in known.ahead if due > after), None)


def _samples(known: _Known, each: Figures, now: Instant) -> Iterator[tuple[str, str, float]]:
    start = "evenkeel_schedule_"
    yield f"{start}state", f',state="{each.state}"', 1
    if (following := _next(known, now)) is not None:
        yield f"{start}next_run_timestamp_seconds", "", following
    if each.last_success is not None:
        yield f"{start}last_success_timestamp_seconds", "", each.last_success
    if each.last_result:
        yield f"{start}last_result", f',result="{_escaped(each.last_result)}"', 1
    yield f"{start}consecutive_failures", "", each.failures
    yield f"{start}due_times_without_success", "", known.passed
    yield f"{start}active", "", each.active
    yield f"{start}paused", "", int(each.paused)
    yield f"{start}stalled", "", int(each.stalled)
    if (period_s := _period_s(known)) is not None:
        yield f"{start}expected_period_seconds", "", period_s


def _period_s(known: _Known) -> int | None:
    rule = known.dues.timing.rule if known.dues else None
    if isinstance(rule, Interval):
        return rule.every_s
    return max((b - a for a, b in itertools.pairwise(known.ahead)), default=None)
