"""`evenkeel plan`: prints the due times of manifests, without a cluster.

The operator's own code computes the due times and places the intervals. Due times are printed while
they are computed, so a year of 10,000 schedules needs no more memory than an hour. Whether a run
would be skipped, queued or missed at its due time is not computed.
"""

import functools
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import numpy as np
import numpy.typing as npt

from evenkeel.cli import show
from evenkeel.cli.given import (
    GivenSet,
    PlacedSet,
    Planned,
    files_option,
    from_option,
    placed,
    read_set,
    recursive_option,
    say_refused,
    weigh_option,
)
from evenkeel.model import DAY_S, Instant, Weigh
from evenkeel.when import DueTimes, columns, expand
from evenkeel.when.zone import MAX_INSTANT, Zone, load_zone

FIRST_STEP_S = 60
LONGEST_STEP_S = 7 * DAY_S
"""The longest window of `expand`."""

STEP_RUNS = 50_000
"""About so many runs are computed and printed at a time, which takes 10 MB."""

NARROWEST_RULE = 9
"""The width of `* * * * *`. If less is left, the column WHEN is left out."""

_WEEKDAYS = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # the epoch was a Thursday


@dataclass(frozen=True, slots=True)
class Step:
    """Consecutive runs, ordered by (due, schedule)."""

    due: npt.NDArray[np.int64]
    ordinal: npt.NDArray[np.int32]


@click.command()
@files_option
@recursive_option
@from_option
@weigh_option
@click.option(
    "--to",
    "end",
    type=show.InstantParameter(),
    help="End of the time span, exclusive.  [default: 24 h after --from]",
)
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="Print the first N runs only."
)
@click.option(
    "--explain",
    is_flag=True,
    help="Also say on standard error how each schedule is read, what differs from a CronJob, and "
    "where croniter, which many tools use, reads a cron text otherwise.",
)
@show.form_option
def plan(
    *,
    files: tuple[str, ...],
    recursive: bool,
    start: Instant,
    weigh: Weigh,
    end: Instant | None,
    limit: int | None,
    explain: bool,
    form: str,
) -> None:
    """Print when the schedules of manifests are due. No cluster is needed.

    Reads ScheduledJobs and CronJobs, and places intervals without an offset as the operator places
    what arrives together on an empty cluster. An interval that has a phase in status.placement
    keeps it. With -o json each line is one run: {"schedule": "namespace/name", "due":
    "2030-01-31T06:00:00Z"}.
    """
    end = min(start + DAY_S, MAX_INSTANT) if end is None else end
    if end <= start:
        raise click.BadParameter(
            f"{show.stamp(end)} is not after --from ({show.stamp(start)})", param_hint="--to"
        )
    with show.quiet_ending():
        given = read_set(files, start, recursive=recursive, weigh=weigh, keep_objects=explain)
        on_cluster = placed(given, start)
        say_refused(files, on_cluster)
        ordered = sorted(on_cluster.planned, key=lambda planned: planned.schedule.key)
        if explain:
            say_explained(given, on_cluster, start)
        steps = limited(runs([planned.dues for planned in ordered], start, end), limit)
        lines = json_lines(ordered, steps) if form == "json" else table_lines(ordered, steps)
        any_lines = write(lines, start, end, large=len(ordered) >= show.LARGE_SET)
        if ordered and not any_lines and limit != 0:
            whose = "accepted schedule" if given.bad or on_cluster.refused else "schedule"
            show.say(f"no {whose} is due from {show.stamp(start)} until {show.stamp(end)}")
    if given.bad or on_cluster.refused:
        raise SystemExit(1)


def say_explained(given: GivenSet, on_cluster: PlacedSet, start: Instant) -> None:
    """Print how each schedule is read to standard error."""
    # Here, because croniter's import is not needed without --explain.
    from evenkeel.cli.explain import explained

    for line in explained(given, on_cluster, start):
        show.say(line)


def runs(dues: Sequence[DueTimes], start: Instant, end: Instant) -> Iterator[Step]:
    """Every run in [start, end), in steps of about STEP_RUNS runs.

    After an empty week the search continues at the next due time. 29 February can be eight years
    away, and to search all weeks until then would take longer than a person waits.
    """
    table = columns(dues)
    at, step_s = start, FIRST_STEP_S
    while dues and at < end:
        until = min(end, at + step_s)
        found = expand(table, at, until)
        count = len(found.second)
        if count:
            # `expand` groups by schedule and the sort is stable: equal seconds stay in schedule
            # order.
            order = found.second.argsort(kind="stable")
            yield Step(found.second[order].astype(np.int64) + at, found.ordinal[order])
        elif step_s == LONGEST_STEP_S:
            following = [due.next_after(until - 1) for due in dues]
            until = min((due for due in following if due is not None), default=end)
        at = until
        if count < STEP_RUNS // 4:
            step_s = min(step_s * 4, LONGEST_STEP_S)
        elif count > STEP_RUNS:
            step_s = max(step_s // 4, FIRST_STEP_S)


def limited(steps: Iterator[Step], limit: int | None) -> Iterator[Step]:
    """The first `limit` runs."""
    if limit is None:
        yield from steps
        return
    left = limit
    while left > 0 and (step := next(steps, None)) is not None:
        yield Step(step.due[:left], step.ordinal[:left])
        left -= len(step.due)


# --- lines ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lines:
    """The printed lines of one step, and its last due time."""

    text: str
    until: Instant


def json_lines(ordered: Sequence[Planned], steps: Iterator[Step]) -> Iterator[Lines]:
    """`{"schedule": "ns/name", "due": "...Z"}` for each run."""
    heads = [json.dumps({"schedule": p.schedule.key, "due": ""})[:-2] for p in ordered]
    for step in steps:
        pairs = zip(stamps(step.due), step.ordinal.tolist(), strict=True)
        text = "".join([f'{heads[ordinal]}{stamp}"}}\n' for stamp, ordinal in pairs])
        yield Lines(text, int(step.due[-1]))


def table_lines(ordered: Sequence[Planned], steps: Iterator[Step]) -> Iterator[Lines]:
    """Due time, local time if any schedule has a time zone, schedule, and its timing in words."""
    zones = [load_zone(planned.schedule.timing.zone) for planned in ordered]
    local = any(zone.name != "UTC" for zone in zones)
    tails, title = described(ordered, room=show.columns() - (39 if local else 22))
    title = f"{'DUE':<20}  {'LOCAL':<16}  {title}" if local else f"{'DUE':<20}  {title}"
    for number, step in enumerate(steps):
        pairs = zip(step.due.tolist(), stamps(step.due), step.ordinal.tolist(), strict=True)
        lines = [
            f"{stamp}  {local_time(due, zones[ordinal])}  {tails[ordinal]}"
            if local
            else f"{stamp}  {tails[ordinal]}"
            for due, stamp, ordinal in pairs
        ]
        first = [show.title(title)] if number == 0 else []
        yield Lines("\n".join([*first, *lines, ""]), int(step.due[-1]))


def described(ordered: Sequence[Planned], *, room: int) -> tuple[list[str], str]:
    """Schedule and timing side by side. A timing is cut at the end of the line, a name never."""
    keys = [planned.schedule.key for planned in ordered]
    width = max(map(len, [*keys, "SCHEDULE"]))
    left = room - width - 2
    if left < NARROWEST_RULE:
        return keys, "SCHEDULE"
    rules = [planned.dues.text for planned in ordered]
    cut = [rule if len(rule) <= left else rule[: left - 1] + "…" for rule in rules]
    tails = [f"{key:<{width}}  {rule}" for key, rule in zip(keys, cut, strict=True)]
    return tails, f"{'SCHEDULE':<{width}}  WHEN"


def stamps(due: npt.NDArray[np.int64]) -> list[str]:
    """RFC 3339 in UTC, for all due times of a step at once."""
    made: list[str] = np.datetime_as_string(due.astype("datetime64[s]"), timezone="UTC").tolist()
    return made


@functools.lru_cache(maxsize=1024)
def local_time(due: Instant, zone: Zone) -> str:
    """`Sun 02:30 +01:00`. The offset shows which side of a clock change the run is on."""
    offset_s = zone.offset_at(due)
    wall = due + offset_s
    sign, ahead = ("-", -offset_s) if offset_s < 0 else ("+", offset_s)
    weekday = _WEEKDAYS[wall // DAY_S % 7]
    clock = f"{wall // 3600 % 24:02}:{wall // 60 % 60:02}"
    return f"{weekday} {clock} {sign}{ahead // 3600:02}:{ahead // 60 % 60:02}"


def write(lines: Iterator[Lines], start: Instant, end: Instant, *, large: bool) -> bool:
    """Print lines as they are computed, and return whether there were any. A progress bar appears
    only if the lines do not go to the terminal too."""
    shown = large and not sys.stdout.isatty()
    at, any_lines = start, False
    with show.progress("due times", end - start, shown=shown) as advance:
        for line in lines:
            show.write(line.text)
            any_lines = True
            advance(line.until - at)
            at = line.until
    return any_lines
