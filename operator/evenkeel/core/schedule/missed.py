"""What becomes of due times that nobody launched in time. Pure, total, and its cost does not grow
with the length of an outage: 400 days of it arrive as two counted spans and a short list."""

from dataclasses import dataclass

from evenkeel import rfc3339
from evenkeel.model import Instant, MissedRuns
from evenkeel.reasons import Reason


@dataclass(frozen=True, slots=True)
class Span:
    """`count` due times from `first` to `last`."""

    first: Instant
    last: Instant
    count: int

    def __str__(self) -> str:
        """To be followed by what was done to them."""
        if self.count == 1:
            return f"The run due {self.times} was"
        return f"{self.count} runs due {self.times} were"

    @property
    def times(self) -> str:
        """The due times as people read them."""
        first, last = rfc3339.show(self.first), rfc3339.show(self.last)
        return first if self.count == 1 else f"{first}..{last}"


@dataclass(frozen=True, slots=True)
class Missed:
    """A span that gets the verdict missed, and why."""

    span: Span
    reason: Reason


@dataclass(frozen=True, slots=True)
class Settled:
    """Every due time of the input is in exactly one of the two."""

    launch: tuple[Instant, ...]
    missed: tuple[Missed, ...]


WHY_NOT = {
    MissedRuns.SKIP: Reason.NOT_IN_TIME,
    MissedRuns.LATEST: Reason.SUPERSEDED,
    MissedRuns.ALL: Reason.CATCH_UP_LIMIT,
}
"""The reason of what a policy leaves out."""


def settle(
    *,
    too_late: Span | None,
    in_time: Span | None,
    newest: tuple[Instant, ...],
    held: tuple[Instant, ...] = (),
    launched: tuple[Instant, ...] = (),
    policy: MissedRuns,
    catch_up_limit: int,
) -> Settled:
    """Apply startingDeadlineSeconds, by which the caller split the set, then missedRuns.

    `newest` are the last due times of `in_time`, ascending: at least min(catch_up_limit, count)
    of them under All, at least one under Latest. `held` belong to the set as well, but are runs
    already: what becomes of those that are not launched is the caller's to say. `launched` have
    been launched out of this set by a process that ended before a status told of it. Were they not
    counted, each restart would launch older ones besides.
    """
    missed = [Missed(too_late, Reason.DEADLINE)] if too_late else []
    wanted = {MissedRuns.SKIP: 0, MissedRuns.LATEST: 1, MissedRuns.ALL: catch_up_limit}[policy]
    chosen = sorted({*newest, *held, *launched})[-wanted:] if wanted else []
    launch = tuple(due for due in chosen if due not in launched)
    if in_time is not None:
        left = [due for due in newest if due not in launch]
        count = in_time.count - (len(newest) - len(left))
        if count:
            missed.append(
                Missed(
                    Span(in_time.first, _last_left(in_time, newest, left), count), WHY_NOT[policy]
                )
            )
    return Settled(launch, tuple(missed))


def _last_left(in_time: Span, newest: tuple[Instant, ...], left: list[Instant]) -> Instant:
    """The last due time that is not launched, as exactly as the short list tells it."""
    if left:
        return left[-1]
    return min(newest[0] - 1, in_time.last) if newest else in_time.last
