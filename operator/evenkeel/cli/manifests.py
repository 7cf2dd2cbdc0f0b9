"""What `-f` names, as schedules: read, complained about, and placed as on an empty cluster.

`plan` and `load` call it. Nothing is asked of a cluster; that cluster is thought to get this set
and nothing else, at the instant --from. Schedules with fixed times are known before the first
interval is placed, as they are to an operator that starts.
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
"""Of many suspended schedules or other kinds so many are named: the rest is a number."""

PLACE_INTERVALS = 2
"""A placement looks at most so many intervals ahead: one to choose in, one that ends there."""

files_option = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    type=click.Path(exists=True, allow_dash=True),
    metavar="FILE|DIR|-",
    help="Manifests: a file, a directory, or - for standard input; may be repeated.",
)

from_option = click.option(
    "--from",
    "start",
    type=show.InstantParameter(),
    default=lambda: int(SystemClock().now()),
    help="From this time, RFC 3339, inclusive.  [default: now]",
)


@dataclass(frozen=True, slots=True)
class GivenSet:
    """The schedules that run, in the order of the files, and how much was wrong beside them."""

    schedules: tuple[Schedule, ...]
    bad: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule whose due times are known: its interval, if it has one, has a phase."""

    schedule: Schedule
    dues: DueTimes


@dataclass(frozen=True, slots=True)
class PlacedSet:
    """A set on its cluster: the load it makes, and the phases that were found for it."""

    load: LoadMap
    planned: tuple[Planned, ...]
    anchors: dict[str, Instant]
    refused: tuple[str, ...]
    """Intervals for which there is no place, each with a sentence."""


def read_set(files: Sequence[str], start: Instant) -> GivenSet:
    """Read everything; what is wrong goes to standard error and does not stop the rest."""
    with show.waiting("reading manifests"):
        found = manifest.load(files, stdin=show.standard_input, created=start - 1)
    for problem in found.problems:
        show.say(str(problem))
    say_some("left out, no schedule", [str(note) for note in found.notes])
    say_some("suspended, never due", [each.key for each in found.schedules if each.suspend])
    if not found.schedules and not found.problems:
        show.say("no ScheduledJob and no CronJob found")
    return GivenSet(
        tuple(each for each in found.schedules if not each.suspend), len(found.problems)
    )


def say_refused(files: Sequence[str], on_cluster: PlacedSet) -> None:
    """What placement refused, on standard error; the set no longer knows which file it was in."""
    for sentence in on_cluster.refused:
        show.say(f"{', '.join(files)}: {sentence}")


def say_some(what: str, names: Sequence[str]) -> None:
    """One line about many, on standard error."""
    if names:
        more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
        show.say(f"{what}: {', '.join(names[:NAMED_AT_MOST])}{more}")


def placed(schedules: Sequence[Schedule], now: Instant, *, observe: bool = False) -> PlacedSet:
    """Place the intervals without an offset, one by one in file order; `observe`: by hash."""
    load = LoadMap(now)
    members = {each.key: member_of(each) for each in schedules if not needs_a_place(each)}
    load.put_all(members.values())
    waiting = [each for each in schedules if needs_a_place(each)]
    anchors: dict[str, Instant] = {}
    refused: list[str] = []
    lead_s = Settings().pre_schedule_s
    large = len(waiting) >= show.LARGE_SET
    with show.progress("placing intervals", len(waiting), shown=large) as advance:
        for schedule in waiting:
            wish = Member(
                key=schedule.key,
                timing=schedule.timing,
                weight=schedule.placement.weight,
                window=schedule.placement.window,
                pinned=schedule.placement.pinned,
            )
            advance(1)
            try:
                check_room(schedule, now)
                anchor = place(load, wish, now, pre_schedule_s=lead_s, observe=observe).anchor
                member = member_of(with_anchor(schedule, anchor), placed_at=now)
            except BadField as mistake:
                # No minute in its window, or no interval before or after it in 1970 to 9999.
                refused.append(f"{schedule.key}: spec.{mistake}")
                continue
            anchors[schedule.key] = anchor
            members[schedule.key] = member
            load.put(member)
    there = [each for each in schedules if each.key in members]
    planned = tuple(Planned(each, dues_of(members[each.key])) for each in there)
    return PlacedSet(load, planned, anchors, tuple(refused))


def needs_a_place(schedule: Schedule) -> bool:
    """Whether it is an interval whose owner left the phase to the operator."""
    rule = schedule.timing.rule
    return isinstance(rule, Interval) and rule.offset_s is None


def check_room(schedule: Schedule, now: Instant) -> None:
    """BadField where the first run could lie beyond the last year that has a date."""
    rule = schedule.timing.rule
    assert isinstance(rule, Interval)
    if now + PLACE_INTERVALS * rule.every_s >= MAX_INSTANT:
        raise BadField("interval.every", "reaches beyond the year 9999 from --from")


def with_anchor(schedule: Schedule, anchor: Instant) -> Schedule:
    """The schedule as its status makes it once it is placed."""
    rule = schedule.timing.rule
    assert isinstance(rule, Interval)
    rule = Interval(every_s=rule.every_s, offset_s=0, anchor=anchor)
    return replace(schedule, timing=replace(schedule.timing, rule=rule))


def member_of(schedule: Schedule, *, placed_at: Instant | None = None) -> Member:
    """The schedule as the load sees it."""
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
    """The due times it was put on the map with."""
    assert member.dues is not None
    return member.dues
