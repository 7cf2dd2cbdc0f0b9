"""What becomes of due times that nobody launched in time. Pure, total, and its cost does not grow
with the length of an outage: 400 days of it arrive as two counted spans and a short list."""

from dataclasses import dataclass

from evenkeel.model import Instant, MissedRuns


@dataclass(frozen=True, slots=True)
class Span:
    """`count` due times from `first` to `last`."""

    first: Instant
    last: Instant
    count: int


@dataclass(frozen=True, slots=True)
class Missed:
    """A span that gets the verdict missed, and why."""

    span: Span
    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Every due time of the input is in exactly one of the two."""

    launch: tuple[Instant, ...]
    missed: tuple[Missed, ...]


def settle(
    *,
    too_late: Span | None,
    in_time: Span | None,
    newest: tuple[Instant, ...],
    policy: MissedRuns,
    catch_up_limit: int,
) -> Settled:
    """Apply startingDeadlineSeconds, by which the caller split the set, then missedRuns.

    `newest` are the last due times of `in_time`, ascending: at least min(catch_up_limit, count)
    of them under All, at least one under Latest.
    """
    missed = [Missed(too_late, "deadline")] if too_late else []
    if in_time is None:
        return Settled((), tuple(missed))
    wanted = {MissedRuns.SKIP: 0, MissedRuns.LATEST: 1, MissedRuns.ALL: catch_up_limit}[policy]
    launch = newest[-wanted:] if wanted else ()
    left = in_time.count - len(launch)
    if left:
        reason = {
            MissedRuns.SKIP: "not_in_time",
            MissedRuns.LATEST: "superseded",
            MissedRuns.ALL: "catch_up_limit",
        }[policy]
        before = _last_before(in_time, newest, launch)
        missed.append(Missed(Span(in_time.first, before, left), reason))
    return Settled(launch, tuple(missed))


def _last_before(
    in_time: Span, newest: tuple[Instant, ...], launch: tuple[Instant, ...]
) -> Instant:
    """The last due time that is not launched, as exactly as the short list tells it."""
    if not launch:
        return in_time.last
    older = [due for due in newest if due < launch[0]]
    return older[-1] if older else min(launch[0] - 1, in_time.last)
