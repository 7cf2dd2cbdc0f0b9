"""`evenkeel advise`: which fixed schedules could leave their time to the operator, and what each
step would win, without a cluster.

Which schedules could, `balance.convert` says; in which order, `balance.steps`. What a step promises
is found by placing the changed set as `load` places it, so `load` shows the same figures for the
changed files, at the same --from. A pattern that alone wins nothing becomes one step with the next
ones, if together they win.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import click

from evenkeel.balance import Distribution, Member
from evenkeel.balance.convert import Conversion, Reason, convert
from evenkeel.balance.steps import Group, Ranked, ordered
from evenkeel.cli import advice_text, show
from evenkeel.cli.given import (
    GivenSet,
    PlacedSet,
    Planned,
    every_s_of,
    files_option,
    from_option,
    member_of,
    needs_a_phase,
    placed,
    read_set,
    recursive_option,
    say_refused,
    weigh_option,
)
from evenkeel.cli.load import measures
from evenkeel.manifests.changed import Rhythm, changed, window_text
from evenkeel.manifests.cronjob import is_cronjob
from evenkeel.model import SLOT_S, Hourly, Instant, Interval, Schedule, Weigh
from evenkeel.resource.read import read
from evenkeel.when import format_duration

STEPS_SHOWN = 10

PLACED_AT_MOST = 16
"""So often a changed set is placed at most: 900 schedules take 0.2 s each time."""

NOT_HANDED_OVER = "with @every, counted as intervals that the operator places"
NOTHING_TO_WIN = "with nothing to win now"
LATER = "for later steps, which are not shown"


@dataclass(frozen=True, slots=True)
class Change:
    """The schedules of one pattern, and the interval that they would become."""

    pattern: str
    rhythm: Rhythm
    schedules: tuple[Schedule, ...]
    """As they are after the change."""

    @property
    def keys(self) -> list[str]:
        return [each.key for each in self.schedules]


@dataclass(frozen=True, slots=True)
class Step:
    """Changes that belong together, and the day when they and all steps before are made."""

    changes: tuple[Change, ...]
    then: Distribution


@dataclass(frozen=True, slots=True)
class Left:
    """Fixed schedules that stay as they are for the same reason."""

    reason: str
    keys: tuple[str, ...]
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """What there is now, the steps, and what is left alone."""

    now: Distribution
    fixed: int
    """How many schedules have fixed times."""
    steps: tuple[Step, ...]
    left: tuple[Left, ...]


@dataclass(slots=True)
class _Candidates:
    """Fixed schedules by what could become of them."""

    groups: dict[tuple[str, Conversion], list[Schedule]] = field(default_factory=dict)
    left: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By reason: (key, pattern)."""
    others: list[Member] = field(default_factory=list)
    members: dict[str, Member] = field(default_factory=dict)


@click.command()
@files_option
@recursive_option
@from_option
@weigh_option
@click.option(
    "--daily",
    is_flag=True,
    help="Also advise on schedules that run once a day: each gets a window of two hours either "
    "side of its time.",
)
@click.option(
    "--steps",
    "most",
    type=click.IntRange(1, STEPS_SHOWN),
    default=STEPS_SHOWN,
    show_default=True,
    metavar="N",
    help="Show the first N steps only.",
)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "json", "manifests", "patch"]),
    default="table",
    show_default=True,
    help="A text for people, JSON for programs, the changed ScheduledJobs, or a kustomize patch.",
)
def advise(
    *,
    files: tuple[str, ...],
    recursive: bool,
    start: Instant,
    weigh: Weigh,
    daily: bool,
    most: int,
    form: str,
) -> None:
    """Say which fixed schedules could leave their time to the operator, and what that wins.

    Reads ScheduledJobs and CronJobs; no cluster is needed. A schedule that runs at equal distances
    all day, such as 0 */6 * * *, could become interval: {every: 6h}. Each step changes the
    schedules of one pattern and says what it does to the busiest minute (runs that start in it) and
    to the peak (the load of the busiest slot of 15 minutes). The most useful step comes first, and
    each step is counted with those before it. For example:

    \b
      kubectl get cj,sj -A -o yaml | evenkeel advise -f -
      evenkeel advise -f jobs/ --daily
      evenkeel advise -f jobs/ --steps 3 -o manifests > changed.yaml

    With -o manifests the changed ScheduledJobs of all shown steps are printed, complete: a CronJob
    becomes a ScheduledJob. With -o patch the changes of ScheduledJobs are printed as a component
    for kustomize.
    """
    with show.quiet_ending():
        given = read_set(files, start, recursive=recursive, weigh=weigh, keep_objects=True)
        before = placed(given, start)
        say_refused(files, before)
        found = advice(given, before, start, daily=daily, most=most)
        if form == "json":
            show.say_json(as_json(found))
        elif form == "manifests":
            advice_text.print_manifests(given, changes_of(found))
        elif form == "patch":
            advice_text.print_patch(given, changes_of(found))
        elif before.planned or not (given.bad or before.refused):
            asked = advice_text.Asked(
                files, recursive, start, weigh, daily, most if most < STEPS_SHOWN else None
            )
            advice_text.print_advice(given, found, asked)
    if given.bad or before.refused:
        raise SystemExit(1)


def changes_of(found: Advice) -> list[advice_text.Written]:
    """All changes of all steps, one for each schedule."""
    return [
        advice_text.Written(key, change.rhythm)
        for step in found.steps
        for change in step.changes
        for key in change.keys
    ]


# --- what could be changed --------------------------------------------------------------------


def advice(
    given: GivenSet, before: PlacedSet, now: Instant, *, daily: bool, most: int = STEPS_SHOWN
) -> Advice:
    """The steps that win something, most useful first, and what is left alone."""
    candidates = _candidates(given, before, now, daily=daily)
    groups = [
        Group(pattern, conversion, tuple(candidates.members[each.key] for each in schedules))
        for (pattern, conversion), schedules in candidates.groups.items()
    ]
    ranked = ordered(groups, candidates.others, now // SLOT_S * SLOT_S)
    current = before.load.distribution(now)
    steps, untried = _steps(given, before, current, ranked, candidates, now)
    shown = tuple(steps[:most])
    used = {key for step in shown for change in step.changes for key in change.keys}
    later = {key for step in steps[most:] for change in step.changes for key in change.keys}
    later |= {member.key for each in untried for member in each.group.members}
    for (pattern, _), schedules in candidates.groups.items():
        for schedule in schedules:
            if schedule.key not in used:
                reason = LATER if schedule.key in later else NOTHING_TO_WIN
                candidates.left.setdefault(reason, []).append((schedule.key, pattern))
    fixed = len(candidates.members) + len(candidates.others)
    return Advice(current, fixed, shown, tuple(_left(candidates.left)))


def _candidates(given: GivenSet, before: PlacedSet, now: Instant, *, daily: bool) -> _Candidates:
    found = _Candidates()
    for planned in before.planned:
        schedule, dues = planned.schedule, planned.dues
        if needs_a_phase(schedule):
            given_as = given.objects[schedule.key]
            if is_cronjob(given_as):  # its own times are not known: they count from its creation
                every = f"@every {format_duration(every_s_of(schedule))}"
                found.left.setdefault(NOT_HANDED_OVER, []).append((schedule.key, every))
            continue
        member, pattern = member_of(given, schedule), pattern_of(planned)
        conversion = convert(dues, seed=schedule.key, now=now, daily=daily)
        after = None
        if isinstance(conversion, Conversion):
            after = _after(given, schedule, rhythm_of(conversion))
        if isinstance(conversion, Conversion) and after is not None:
            found.groups.setdefault((pattern, conversion), []).append(after)
            found.members[schedule.key] = member
            continue
        # The reader knows of the changed manifest what would be wrong with it.
        reason = (
            conversion.value
            if isinstance(conversion, Reason)
            else "with a manifest that would be refused"
        )
        found.left.setdefault(reason, []).append((schedule.key, pattern))
        found.others.append(member)
    return found


def pattern_of(planned: Planned) -> str:
    """The timing as its owner wrote it, but for blanks."""
    match planned.schedule.timing.rule:
        case Hourly(minute=minute):
            return f"hourly: {{minute: {minute}}}"
        case Interval(every_s=every_s, offset_s=int(offset_s)):
            every, offset = format_duration(every_s), format_duration(offset_s)
            return f"interval: {{every: {every}, offset: {offset}}}"
        case _:
            return planned.dues.text


def rhythm_of(conversion: Conversion) -> Rhythm:
    return Rhythm(conversion.every, conversion.window)


def _after(given: GivenSet, schedule: Schedule, rhythm: Rhythm) -> Schedule | None:
    """The schedule as it is read from the changed manifest; None if that would be refused."""
    found = read(changed(given.objects[schedule.key], rhythm))
    if not isinstance(found, Schedule):
        return None
    return replace(found, created=schedule.created, uid=schedule.uid)


def _left(by_reason: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[Left]:
    for reason, rows in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        count: dict[str, int] = {}
        for _, pattern in rows:
            count[pattern] = count.get(pattern, 0) + 1
        patterns = sorted(count, key=lambda pattern: (-count[pattern], pattern))
        yield Left(reason, tuple(sorted(key for key, _ in rows)), tuple(patterns))


# --- what it wins -----------------------------------------------------------------------------


def _steps(
    given: GivenSet,
    before: PlacedSet,
    current: Distribution,
    ranked: Sequence[Ranked],
    candidates: _Candidates,
    now: Instant,
) -> tuple[list[Step], list[Ranked]]:
    """The steps, cumulative, and what was not tried because there are steps enough. A set is placed
    only if it could win: `Ranked` says the least that it can reach."""
    steps: list[Step] = []
    changed_to: dict[str, Schedule] = {}
    waiting: list[Change] = []
    reached = _rank(current)
    tries = 0
    helping = [each for each in ranked if each.helps]
    for number, each in enumerate(helping):
        if len(steps) == STEPS_SHOWN or tries == PLACED_AT_MOST:
            return steps, helping[number:]
        group = each.group
        schedules = candidates.groups[group.pattern, group.conversion]
        change = Change(group.pattern, rhythm_of(group.conversion), tuple(schedules))
        waiting.append(change)
        changed_to.update({schedule.key: schedule for schedule in schedules})
        if (each.minute, each.slot) >= reached:
            continue
        tries += 1
        after = placed(_with(given, changed_to), now)
        if len(after.refused) > len(before.refused):  # a window that a clock change takes away
            waiting.remove(change)
            for schedule in schedules:
                del changed_to[schedule.key]
            continue
        then = after.load.distribution(now)
        # A crowd of patterns must be worth it: a lower peak alone is not.
        if _rank(then) < (reached if len(waiting) == 1 else (reached[0], 0)):
            steps.append(Step(tuple(waiting), then))
            reached, waiting = _rank(then), []
    return steps, []


def _rank(distribution: Distribution) -> tuple[int, int]:
    return distribution.busiest_minute.starts, distribution.peak


def _with(given: GivenSet, changed_to: Mapping[str, Schedule]) -> GivenSet:
    """The set after the changes, in the same order."""
    return replace(
        given, schedules=tuple(changed_to.get(each.key, each) for each in given.schedules)
    )


# --- for programs -----------------------------------------------------------------------------


def as_json(found: Advice) -> dict[str, Any]:
    """The figures now and after each step have the names that `load` gives them."""
    return {
        "now": measures(found.now),
        "steps": [
            {
                "changes": [_change_as_json(change) for change in step.changes],
                "then": measures(step.then),
            }
            for step in found.steps
        ],
        "left_alone": [
            {
                "reason": left.reason,
                "patterns": list(left.patterns),
                "schedules": list(left.keys),
            }
            for left in found.left
        ],
    }


def _change_as_json(change: Change) -> dict[str, Any]:
    window = change.rhythm.window
    return {
        "pattern": change.pattern,
        "interval": {"every": change.rhythm.every},
        **({"window": window_text(window)} if window is not None else {}),
        "schedules": change.keys,
    }
