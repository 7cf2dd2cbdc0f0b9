"""Reads the manifests of `-f` and places their intervals as on an empty cluster.

`plan` and `load` call these functions. No cluster is asked: the intervals are placed as if a
cluster got these manifests, and nothing else, at the instant --from. As in an operator that starts,
all schedules with fixed times are in the load before the first interval is placed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import click

from evenkeel.balance import LoadMap, Member, place
from evenkeel.cli import show
from evenkeel.clock import SystemClock
from evenkeel.errors import BadField
from evenkeel.model import Instant, Interval, Schedule
from evenkeel.resource import manifest
from evenkeel.settings import Settings
from evenkeel.when import DueTimes, compile_timing
from evenkeel.when.zone import MAX_INSTANT

NAMED_AT_MOST = 5
"""Of suspended schedules, and of other kinds, at most so many are named. The rest is a number."""

PLACE_INTERVALS = 2
"""The first two runs of a placed interval lie within so many intervals from now."""

files_option = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    type=click.Path(exists=True, allow_dash=True),
    metavar="FILE|DIR|-",
    help="Manifests: a file, a directory, or - for standard input. May be repeated.",
)

from_option = click.option(
    "--from",
    "start",
    type=show.InstantParameter(),
    default=lambda: int(SystemClock().now()),
    help="Start of the time span, inclusive, such as 2030-01-31T06:00:00Z.  [default: now]",
)


@dataclass(frozen=True, slots=True)
class GivenSet:
    """The schedules that are not suspended, in the order of the files, and the number of
    mistakes."""

    schedules: tuple[Schedule, ...]
    bad: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule with its due times: an interval without an offset has got a phase."""

    schedule: Schedule
    dues: DueTimes


@dataclass(frozen=True, slots=True)
class PlacedSet:
    """The load of a set, its due times, and the anchors that were chosen."""

    load: LoadMap
    planned: tuple[Planned, ...]
    anchors: dict[str, Instant]
    refused: tuple[str, ...]
    """A sentence for each interval for which no phase is possible."""


def read_set(files: Sequence[str], start: Instant) -> GivenSet:
    """Read all files. A mistake goes to standard error, and the rest is read all the same."""
    with show.waiting("reading manifests"):
        found = manifest.load(files, stdin=show.standard_input, created=start - 1)
    for problem in found.problems:
        show.say(str(problem))
    say_some("ignored, neither ScheduledJob nor CronJob", [str(note) for note in found.notes])
    say_some("suspended, so never due", [each.key for each in found.schedules if each.suspend])
    if not found.schedules and not found.problems:
        show.say("found no ScheduledJob and no CronJob")
    return GivenSet(
        tuple(each for each in found.schedules if not each.suspend), len(found.problems)
    )


def say_refused(files: Sequence[str], on_cluster: PlacedSet) -> None:
    """Print what placement refused to standard error. All files are named: which of them holds the
    schedule is not known here."""
    for sentence in on_cluster.refused:
        show.say(f"{', '.join(files)}: {sentence}")


def say_some(what: str, names: Sequence[str]) -> None:
    """Print one line about all of these names to standard error."""
    if names:
        more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
        show.say(f"{what}: {', '.join(names[:NAMED_AT_MOST])}{more}")


def placed(schedules: Sequence[Schedule], now: Instant, *, observe: bool = False) -> PlacedSet:
    """Place the intervals without an offset one by one, in the order of the files; with `observe`
    by a hash of their names."""
    load = LoadMap(now)
    members = {each.key: member_of(each) for each in schedules if not needs_a_phase(each)}
    load.put_all(members.values())
    waiting = [each for each in schedules if needs_a_phase(each)]
    anchors: dict[str, Instant] = {}
    refused: list[str] = []
    lead_s = Settings().pre_schedule_s
    large = len(waiting) >= show.LARGE_SET
    with show.progress("placing intervals", len(waiting), shown=large) as advance:
        for schedule in waiting:
            unplaced = Member(
                key=schedule.key,
                timing=schedule.timing,
                weight=schedule.placement.weight,
                window=schedule.placement.window,
                pinned=schedule.placement.pinned,
            )
            advance(1)
            try:
                check_years(schedule, now)
                anchor = place(load, unplaced, now, pre_schedule_s=lead_s, observe=observe).anchor
                member = member_of(with_anchor(schedule, anchor), placed_at=now)
            except BadField as mistake:
                # Its window holds no minute, or a run or anchor would not lie in 1970 to 9999.
                refused.append(f"{schedule.key}: spec.{mistake}")
                continue
            anchors[schedule.key] = anchor
            members[schedule.key] = member
            load.put(member)
    there = [each for each in schedules if each.key in members]
    planned = tuple(Planned(each, dues_of(members[each.key])) for each in there)
    return PlacedSet(load, planned, anchors, tuple(refused))


def needs_a_phase(schedule: Schedule) -> bool:
    """Whether the schedule is an interval without an offset."""
    rule = schedule.timing.rule
    return isinstance(rule, Interval) and rule.offset_s is None


def check_years(schedule: Schedule, now: Instant) -> None:
    """BadField where the first runs could lie after the year 9999, which no date can show."""
    rule = schedule.timing.rule
    assert isinstance(rule, Interval)
    if now + PLACE_INTERVALS * rule.every_s >= MAX_INSTANT:
        raise BadField(
            "interval.every",
            "is too long: counted from --from, the first runs would lie after the year 9999",
        )


def with_anchor(schedule: Schedule, anchor: Instant) -> Schedule:
    """The schedule with this anchor, as the operator reads it once its status holds the anchor."""
    rule = schedule.timing.rule
    assert isinstance(rule, Interval)
    rule = Interval(every_s=rule.every_s, offset_s=0, anchor=anchor)
    return replace(schedule, timing=replace(schedule.timing, rule=rule))


def member_of(schedule: Schedule, *, placed_at: Instant | None = None) -> Member:
    """The member that this schedule is in the load."""
    return Member(
        key=schedule.key,
        timing=schedule.timing,
        dues=compile_timing(schedule.timing, seed=schedule.key),
        weight=schedule.placement.weight,
        placed_at=placed_at,
        window=schedule.placement.window,
        pinned=schedule.placement.pinned,
    )


def dues_of(member: Member) -> DueTimes:
    """The due times of a member that `member_of` made."""
    assert member.dues is not None
    return member.dues
