"""The statistics of the minutes: how runs ended, how late they began, and the load at the time.

`sync` tells it what happens and asks for the minutes that are over. Not guaranteed: the minutes of
an outage that is longer than LONGEST_OUTAGE, and the whole of a minute in which the operator was
started again.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from evenkeel.core.effects import Effect, RunBegan, RunEnded, SpanEnded
from evenkeel.ledger.rows import LATENESS_BOUNDS_S, Minute
from evenkeel.model import BY_SCHEDULE, Instant

MINUTE_S = 60
LONGEST_OUTAGE = 1440
"""Minutes that wait for a store at most: a day of them."""


class Picture(NamedTuple):
    """How things stand at the end of a minute."""

    load: int = 0
    score: float | None = None
    active: int = 0
    index_runs: int = 0


class Minutes:
    """The present minute, and those that are not written yet."""

    def __init__(self, picture: Callable[[], Picture]) -> None:
        self._picture = picture
        self._at: Instant | None = None
        self._ended: Counter[str] = Counter()
        self._lateness = [0] * (len(LATENESS_BOUNDS_S) + 1)
        self._waiting: deque[Minute] = deque(maxlen=LONGEST_OUTAGE)
        self._taken = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def see(self, effect: Effect) -> None:
        """Count what happens in the present minute."""
        match effect:
            case RunBegan(run=run, attempt=1, sent_at=float(sent_at)) if run.kind == BY_SCHEDULE:
                self._lateness[bisect_left(LATENESS_BOUNDS_S, sent_at - run.due)] += 1
            case RunEnded(state=state):
                self._ended[state.value] += 1
            case SpanEnded(state=state, count=count):
                self._ended[state.value] += count

    def look(self, now: float, *, last: bool = False) -> None:
        """End the present minute if it is over, or if the operator ends."""
        at = int(now) // MINUTE_S * MINUTE_S
        if self._at is not None and (at != self._at or last):
            self._end(self._at)
        self._at = at

    def take(self) -> tuple[Minute, ...]:
        """The minutes to write. `written` forgets them."""
        self._taken = len(self._waiting)
        return tuple(self._waiting)

    def written(self) -> None:
        """What was taken is stored."""
        for _ in range(self._taken):
            self._waiting.popleft()
        self._taken = 0

    def _end(self, at: Instant) -> None:
        picture = self._picture()
        if len(self._waiting) == LONGEST_OUTAGE and self._taken:
            self._taken -= 1  # the oldest is pushed out while it is being written
        self._waiting.append(
            Minute(
                at=at,
                ended=dict(self._ended),
                lateness=tuple(self._lateness),
                load=picture.load,
                score=picture.score,
                active=picture.active,
                index_runs=picture.index_runs,
            )
        )
        self._ended.clear()
        self._lateness = [0] * (len(LATENESS_BOUNDS_S) + 1)
