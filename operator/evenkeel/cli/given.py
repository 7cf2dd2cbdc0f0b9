"""Reads the manifests of `-f` and places their intervals as on an empty cluster.

`plan`, `load` and `advise` call these functions. No cluster is asked: the intervals are placed as
if a cluster got these manifests, and nothing else, at the instant --from. As in an operator that
starts, all schedules with fixed times are in the load before the first interval is placed. An
interval whose status names a phase that still fits keeps that phase, so the objects of a live
cluster make the load that they make there.

The intervals without a phase arrive together: they are placed one by one, shortest interval first,
and then improved as a set. The order of the files does not matter, but to `Way.ONE_BY_ONE`.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import click

from evenkeel import balance
from evenkeel.balance import LoadMap, Member, place
from evenkeel.cli import show
from evenkeel.clock import SystemClock
from evenkeel.core.schedule import expect
from evenkeel.core.schedule.phase import still_fits
from evenkeel.errors import BadField
from evenkeel.manifests import manifest
from evenkeel.manifests.manifest import Live
from evenkeel.model import Instant, Interval, Schedule, Weigh
from evenkeel.resource.weight import weight_of
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

recursive_option = click.option(
    "-R",
    "--recursive",
    is_flag=True,
    help="Also read the subdirectories of a DIR. Without it they are left out, as kubectl does.",
)

from_option = click.option(
    "--from",
    "start",
    type=show.InstantParameter(),
    default=lambda: int(SystemClock().now()),
    help="Start of the time span, inclusive, such as 2030-01-31T06:00:00Z.  [default: now]",
)


weigh_option = click.option(
    "--weigh",
    type=click.Choice(get_args(Weigh)),
    default="Runs",
    show_default=True,
    help="What a run without placement.weight weighs: 1, or its CPU requests in tenths of a core. "
    "Give what the operator's setting placement.weigh says.",
)


class Way(enum.Enum):
    """How the intervals without a phase get one."""

    AS_A_SET = "as a set"
    ONE_BY_ONE = "one by one"
    """In the order of the files, and not improved."""
    BY_HASH = "by hash"
    """All intervals without an offset, those with a phase included."""


@dataclass(frozen=True, slots=True)
class GivenSet:
    """The schedules that are neither suspended nor paused, in the order of the files, and the
    number of mistakes."""

    schedules: tuple[Schedule, ...]
    bad: int
    live: Mapping[str, Live] = field(default_factory=dict)
    objects: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    lasts_s: int | None = None
    """How long each run lasts; None: as long as the statuses expect."""
    weigh: Weigh = "Runs"

    def kept_phase(self, schedule: Schedule, now: Instant) -> Live | None:
        """The status of a schedule whose phase is kept."""
        live = self.live.get(schedule.key)
        if live is None or not needs_a_phase(schedule):
            return None  # an edit may have made it a cron, with the phase still in its status
        placed = live.placed
        if placed is None or placed.anchor > now + 2 * placed.every_s:
            return None  # the operator believes no such anchor either
        return live if still_fits(schedule, placed) else None


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule with its due times: an interval without an offset has got a phase."""

    schedule: Schedule
    dues: DueTimes


@dataclass(frozen=True, slots=True)
class PlacedSet:
    """The load of a set, its due times, and the anchors of the intervals without an offset."""

    load: LoadMap
    planned: tuple[Planned, ...]
    anchors: dict[str, Instant]
    chosen: tuple[str, ...]
    """The keys of the intervals whose phase was chosen here. The others had one."""
    refused: tuple[str, ...]
    """A sentence for each interval for which no phase is possible."""


def read_set(
    files: Sequence[str],
    start: Instant,
    *,
    lasts_s: int | None = None,
    recursive: bool = False,
    weigh: Weigh = "Runs",
    keep_objects: bool = False,
) -> GivenSet:
    """Read all files. A mistake goes to standard error, and the rest is read all the same."""
    with show.waiting("reading manifests"):
        found = manifest.load(
            files,
            recursive=recursive,
            stdin=show.standard_input,
            created=start - 1,
            keep_objects=keep_objects,
        )
    for problem in found.problems:
        show.say(str(problem))
    say_some("ignored, neither ScheduledJob nor CronJob", [str(note) for note in found.notes])
    say_some("skipped, no Kubernetes object", [str(note) for note in found.skipped])
    say_some("suspended, so never due", [each.key for each in found.schedules if each.suspend])
    runs = [each for each in found.schedules if not each.suspend]
    paused = {key for key, live in found.live.items() if live.paused}
    say_some("paused, so never due", [each.key for each in runs if each.key in paused])
    if not found.schedules and not found.problems:
        show.say("found no ScheduledJob and no CronJob")
    return GivenSet(
        tuple(each for each in runs if each.key not in paused),
        len(found.problems),
        live=found.live,
        objects={key: each.object for key, each in found.found.items()},
        lasts_s=lasts_s,
        weigh=weigh,
    )


def say_refused(files: Sequence[str], on_cluster: PlacedSet) -> None:
    """Print what placement refused to standard error. All files are named: which of them holds the
    schedule is not known here."""
    for sentence in on_cluster.refused:
        show.say(f"{', '.join(files)}: {sentence}")


def say_some(what: str, names: Sequence[str]) -> None:
    """Print one line about all of these names to standard error."""
    if names:
        show.say(f"{what}: {some(names)}")


def some(names: Sequence[str], *, at_most: int = NAMED_AT_MOST, of: int | None = None) -> str:
    """The first names, and how many more there are. `of` is the number of all, if `names` is not
    all."""
    more = (len(names) if of is None else of) - min(at_most, len(names))
    return ", ".join(names[:at_most]) + (f" and {more:,} more" if more else "")


def plural(noun: str, count: int) -> str:
    """The noun as it stands after the number."""
    return noun if count == 1 else f"{noun}s"


def placed(given: GivenSet, now: Instant, way: Way = Way.AS_A_SET) -> PlacedSet:
    """Give each interval without an offset its phase."""
    load = LoadMap(now)
    kept: dict[str, Live] = {}
    if way is not Way.BY_HASH:
        for each in given.schedules:
            if (live := given.kept_phase(each, now)) is not None:
                kept[each.key] = live
    waiting = [each for each in given.schedules if needs_a_phase(each) and each.key not in kept]
    if way is Way.AS_A_SET:
        waiting.sort(key=lambda each: (every_s_of(each), each.key))
    waiting_keys = {each.key for each in waiting}
    members = {
        each.key: _member_there(given, each, kept.get(each.key))
        for each in given.schedules
        if each.key not in waiting_keys
    }
    load.put_all(members.values())
    refused = _place_all(given, load, waiting, members, now, observe=way is Way.BY_HASH)
    chosen = tuple(each.key for each in waiting if each.key in members)
    if way is Way.AS_A_SET:
        with show.waiting("improving the set"):
            _improve(given, load, members, chosen, now)
    there = [each for each in given.schedules if each.key in members]
    return PlacedSet(
        load,
        tuple(Planned(each, dues_of(members[each.key])) for each in there),
        {each.key: anchor_of(members[each.key]) for each in there if needs_a_phase(each)},
        chosen,
        tuple(refused),
    )


def _member_there(given: GivenSet, schedule: Schedule, kept: Live | None) -> Member:
    """The member of a schedule with fixed times, or with a phase that is kept."""
    if kept is None or kept.placed is None:
        return member_of(given, schedule)
    phase = kept.placed
    return member_of(given, with_anchor(schedule, phase.anchor), placed_at=phase.placed_at)


def _place_all(
    given: GivenSet,
    load: LoadMap,
    waiting: Sequence[Schedule],
    members: dict[str, Member],
    now: Instant,
    *,
    observe: bool,
) -> list[str]:
    """Place one after the other, and return what was refused."""
    refused: list[str] = []
    lead_s = Settings().pre_schedule_s
    large = len(waiting) >= show.LARGE_SET
    with show.progress("placing intervals", len(waiting), shown=large) as advance:
        for schedule in waiting:
            advance(1)
            unplaced = member_of(given, schedule)
            try:
                check_years(schedule, now)
                anchor = place(load, unplaced, now, pre_schedule_s=lead_s, observe=observe).anchor
                member = member_of(given, with_anchor(schedule, anchor), placed_at=now)
            except BadField as mistake:
                # Its window holds no minute, or a run or anchor would not lie in 1970 to 9999.
                refused.append(f"{schedule.key}: spec.{mistake}")
                continue
            members[schedule.key] = member
            load.put(member)
    return refused


def _improve(
    given: GivenSet, load: LoadMap, members: dict[str, Member], keys: Sequence[str], now: Instant
) -> None:
    """Improve a set of which all have got their first phase, as the operator does."""
    latest = {key: now + members[key].interval.every_s for key in keys}
    moves = balance.improve_set(load, latest, now, pre_schedule_s=Settings().pre_schedule_s)
    schedules = {each.key: each for each in given.schedules}
    for move in moves:
        schedule = with_anchor(schedules[move.key], move.new_anchor)
        members[move.key] = member_of(given, schedule, placed_at=now)
    load.put_all(members[move.key] for move in moves)


def needs_a_phase(schedule: Schedule) -> bool:
    """Whether the schedule is an interval without an offset."""
    rule = schedule.timing.rule
    return isinstance(rule, Interval) and rule.offset_s is None


def every_s_of(schedule: Schedule) -> int:
    """The length of an interval."""
    rule = schedule.timing.rule
    assert isinstance(rule, Interval)
    return rule.every_s


def check_years(schedule: Schedule, now: Instant) -> None:
    """BadField where the first runs could lie after the year 9999, which no date can show."""
    if now + PLACE_INTERVALS * every_s_of(schedule) >= MAX_INSTANT:
        raise BadField(
            "interval.every",
            "is too long: counted from --from, the first runs would lie after the year 9999",
        )


def with_anchor(schedule: Schedule, anchor: Instant) -> Schedule:
    """The schedule with this anchor, as the operator reads it once its status holds the anchor."""
    rule = Interval(every_s=every_s_of(schedule), offset_s=0, anchor=anchor)
    return replace(schedule, timing=replace(schedule.timing, rule=rule))


def anchor_of(member: Member) -> Instant:
    """The anchor of a placed member."""
    anchor = member.interval.anchor
    assert anchor is not None
    return anchor


def member_of(given: GivenSet, schedule: Schedule, *, placed_at: Instant | None = None) -> Member:
    """The member that this schedule is in the load; `place` gives one without a phase its phase."""
    return Member(
        key=schedule.key,
        timing=schedule.timing,
        dues=None
        if needs_a_phase(schedule)
        else compile_timing(schedule.timing, seed=schedule.key),
        weight=weight_of(schedule, given.weigh),
        lasts_s=lasts_s_of(given, schedule),
        placed_at=placed_at,
        window=schedule.placement.window,
        pinned=schedule.placement.pinned,
    )


def lasts_s_of(given: GivenSet, schedule: Schedule) -> int:
    """How long a run of this schedule counts as load, as the operator reckons."""
    live = given.live.get(schedule.key)
    if given.lasts_s is not None:
        lasts_s = given.lasts_s
    elif live is None or Settings().placement_duration == "Ignore":
        return 0
    else:
        lasts_s = expect.expected_s(live.expected_s, live.durations)
    return expect.counted_s(schedule, lasts_s)


def dues_of(member: Member) -> DueTimes:
    """The due times of a member with fixed times or a phase."""
    assert member.dues is not None
    return member.dues
