"""`evenkeel load`: how even the load of a set of manifests would be, without a cluster.

The load is computed four times: with the intervals placed as a set, as an operator places what
arrives together; placed one by one, in the order of the files; after a rebalance without any
protection; and with phases that are a hash of the name, as most schedulers choose them. Suspended
and paused schedules have no load.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenkeel import balance
from evenkeel.balance import Busiest, Concurrency, Distribution, Limits, Plan, plan_rebalance
from evenkeel.balance.nouns import DAY_SLOTS
from evenkeel.cli import show
from evenkeel.cli.given import (
    PlacedSet,
    Way,
    anchor_of,
    files_option,
    from_option,
    placed,
    plural,
    read_set,
    recursive_option,
    say_refused,
    some,
    weigh_option,
)
from evenkeel.model import SLOT_S, Instant, Weigh
from evenkeel.settings import Settings
from evenkeel.when import DueTimes, compile_timing

HOUR_SLOTS = 4
MINUTES = 1440
BAR_COLUMNS = 30
TABLE_COLUMNS = 20
"""The width of the hour, of the four slots and of the gaps between six columns."""


@dataclass(frozen=True, slots=True)
class Distributions:
    """The load of the next 24 hours, computed four times."""

    as_a_set: Distribution
    one_by_one: Distribution
    rebalanced: Distribution
    by_hash: Distribution


@click.command()
@files_option
@recursive_option
@from_option
@weigh_option
@click.option(
    "--duration",
    "lasts_s",
    type=show.DurationParameter(),
    help="How long each run lasts, such as 90s or 10m.  [default: what "
    "status.placement.expectedSeconds says]",
)
@show.form_option
def load(
    *,
    files: tuple[str, ...],
    recursive: bool,
    start: Instant,
    weigh: Weigh,
    lasts_s: int | None,
    form: str,
) -> None:
    """Show the load that manifests would make in 24 hours. No cluster is needed.

    Reads ScheduledJobs and CronJobs, and places intervals without an offset as the operator places
    what arrives together on an empty cluster. An interval that has a phase in status.placement
    keeps it, so this shows the load of a live cluster:

    \b
      kubectl get sj,cj -A -o yaml | evenkeel load -f -

    Load is the sum of the weights of the runs (placement.weight, 1 by default). The first table
    shows the load of each hour and of its four slots of 15 minutes. The 24 hours begin with the
    slot of --from. The second table shows how even the load is, for intervals placed as a set, one
    by one, after a rebalance, and by a hash of their names: a SCORE of 1 is as even as possible,
    PEAK is the load of the busiest slot, and LOWER BOUND is the least PEAK/MEAN that these runs
    could have if all of them could be moved, the fixed ones too. MINUTE and SECOND are the most
    runs that start in one minute and in one second. These figures count starts. AT ONCE counts how
    long runs last: it is the most runs that are expected to go on at the same time, and is there if
    durations are known.
    """
    with show.quiet_ending():
        given = read_set(files, start, recursive=recursive, lasts_s=lasts_s, weigh=weigh)
        as_a_set = placed(given, start)
        say_refused(files, as_a_set)
        one_by_one = placed(given, start, Way.ONE_BY_ONE)
        by_hash = placed(given, start, Way.BY_HASH)
        with show.waiting("rebalancing"):
            plan = plan_rebalance(as_a_set.load, start, Limits(Settings().pre_schedule_s))
        distributions = Distributions(
            plan.current,
            one_by_one.load.distribution(start),
            plan.projected,
            by_hash.load.distribution(start),
        )
        if form == "json":
            show.say_json(as_json(distributions, as_a_set, one_by_one, plan, start))
        elif as_a_set.planned or not (given.bad or as_a_set.refused):
            target = show.console()
            with target.capture() as captured:  # rich would raise when the reader is gone
                print_tables(target, distributions, as_a_set, plan)
            show.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    if given.bad or as_a_set.refused:
        raise SystemExit(1)


# --- for programs -----------------------------------------------------------------------------


def as_json(
    distributions: Distributions,
    as_a_set: PlacedSet,
    one_by_one: PlacedSet,
    plan: Plan,
    now: Instant,
) -> dict[str, Any]:
    """One object: the set, and beside it the other three placements."""
    return {
        **measures(distributions.as_a_set),
        "placements": placements(as_a_set, now),
        "one_by_one": {
            **measures(distributions.one_by_one),
            "placements": placements(one_by_one, now),
        },
        "rebalanced": {
            **measures(distributions.rebalanced),
            "placements": placements(as_a_set, now, plan),
        },
        "hash": measures(distributions.by_hash),
    }


def measures(distribution: Distribution) -> dict[str, Any]:
    """The figures of one placement."""
    found: dict[str, Any] = {
        "slots": list(distribution.slots),
        "distribution_score": distribution.distribution_score,
        "peak_to_mean": distribution.peak_to_mean,
        "lower_bound": distribution.lower_bound,
        "busiest_minute": busiest_as_json(distribution.busiest_minute),
        "busiest_second": busiest_as_json(distribution.busiest_second),
    }
    if distribution.concurrency is not None:
        found["concurrency"] = {
            "peak": distribution.concurrency.peak,
            "mean": distribution.concurrency.mean,
        }
    return found


def busiest_as_json(busiest: Busiest) -> dict[str, Any]:
    return {
        "at": show.stamp(busiest.at),
        "starts": busiest.starts,
        "bound": busiest.bound,
        "fixed_alone": busiest.fixed_alone,
        "names": list(busiest.keys),
    }


def placements(
    on_cluster: PlacedSet, now: Instant, plan: Plan | None = None
) -> list[dict[str, str | None]]:
    """The anchor and the first run of each interval without an offset, after the moves of a plan.
    `first` is null where startTime and endTime leave no run."""
    members = on_cluster.load.members
    moves = {move.key: move for move in plan.moves} if plan is not None else {}
    found: list[dict[str, str | None]] = []
    for planned in on_cluster.planned:
        key = planned.schedule.key
        if key not in on_cluster.anchors:
            continue
        anchor, dues = on_cluster.anchors[key], planned.dues
        if key in moves:
            member = balance.moved(members[key], moves[key], now)
            anchor, dues = anchor_of(member), compile_timing(member.timing, seed=key)
        found.append({"schedule": key, "anchor": show.stamp(anchor), "first": first_run(dues, now)})
    return found


def first_run(dues: DueTimes, now: Instant) -> str | None:
    first = dues.next_after(now)
    return None if first is None else show.stamp(first)


# --- for people -------------------------------------------------------------------------------


def print_tables(
    target: Console, distributions: Distributions, on_cluster: PlacedSet, plan: Plan
) -> None:
    """The load of each hour as bars, the measures side by side, who is behind the busiest moments,
    and what a rebalance would gain."""
    distribution = distributions.as_a_set
    runs = sum(hour.run_count for hour in distribution.hourly)
    target.print(
        f"[bold]{distribution.total_jobs:,} {plural('schedule', distribution.total_jobs)}, "
        f"{runs:,} {plural('run', runs)}[/bold] "
        f"in the 24 h from {show.stamp(distribution.start)}"
    )
    if not runs:
        return
    target.print()
    target.print(hours_table(distribution, columns=target.width, blocks=show.has_blocks(target)))
    target.print()
    target.print(measures_table(distributions, on_cluster))
    target.print()
    for line in moments(distribution):
        target.print(line)
    target.print()
    target.print(advice(distributions, plan, placed_intervals=len(on_cluster.anchors)))


def hours_table(distribution: Distribution, *, columns: int, blocks: bool) -> Table:
    """One row for each hour: a bar for its load, and small bars for its four slots. The hour of the
    busiest slot is marked."""
    hours = by_hour(distribution)
    fullest = max(sum(slots) for slots in hours.values())
    runs = {hour.hour: hour.run_count for hour in distribution.hourly}
    peak = f"peak {distribution.peak:,}"
    busiest = next(hour for hour, slots in hours.items() if distribution.peak in slots)
    # The numbers must not be cut: the bars get the width that is left.
    left = (
        columns - len(f"{fullest:,}") - len(f"{max(runs.values()):,}") - len(peak) - TABLE_COLUMNS
    )
    bar_columns = max(1, min(BAR_COLUMNS, left))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("UTC", no_wrap=True)
    table.add_column("LOAD", no_wrap=True, min_width=bar_columns)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("RUNS", justify="right", no_wrap=True)
    table.add_column("SLOTS" if blocks else "", no_wrap=True)
    table.add_column("", no_wrap=True)
    for hour, slots in hours.items():
        is_busiest = hour == busiest
        drawn = show.bar(sum(slots), full=fullest, columns=bar_columns, blocks=blocks)
        table.add_row(
            f"{hour:02}:00",
            Text(drawn, style="yellow" if is_busiest else "cyan"),
            f"{sum(slots):,}",
            f"{runs[hour]:,}",
            Text(show.spark(slots, full=distribution.peak, blocks=blocks), style="cyan"),
            peak if is_busiest else "",
        )
    return table


def by_hour(distribution: Distribution) -> dict[int, tuple[int, ...]]:
    """The slots of each UTC hour, from 00 to 23, whatever hour the distribution begins with."""
    first = distribution.start // SLOT_S % DAY_SLOTS
    of_day = distribution.slots[DAY_SLOTS - first :] + distribution.slots[: DAY_SLOTS - first]
    return {hour: of_day[hour * HOUR_SLOTS :][:HOUR_SLOTS] for hour in range(24)}


def measures_table(distributions: Distributions, on_cluster: PlacedSet) -> Table:
    """The measures of the placements, one row each. Where nothing was placed there is one row."""
    rows: list[tuple[str, Distribution]] = []
    if not on_cluster.anchors:
        rows = [("as it is", distributions.as_a_set)]
    else:
        if on_cluster.chosen:
            rows.append(("as a set", distributions.as_a_set))
            rows.append(("one by one", distributions.one_by_one))
        else:
            rows.append(("as it is", distributions.as_a_set))
        rows.append(("rebalanced", distributions.rebalanced))
        rows.append(("by hash", distributions.by_hash))
    concurrent = [each.concurrency for _, each in rows if each.concurrency is not None]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("PLACED", no_wrap=True)
    titles = ["SCORE", "PEAK", "PEAK/MEAN", "LOWER BOUND", "MINUTE", "SECOND"]
    for title in [*titles, "AT ONCE"] if concurrent else titles:
        table.add_column(title, justify="right", no_wrap=True)
    for name, each in rows:
        figures = [
            f"{each.distribution_score:.3f}",
            f"{each.peak:,}",
            f"{each.peak_to_mean:.2f}",
            f"{each.lower_bound:.2f}",
            f"{each.busiest_minute.starts:,}",
            f"{each.busiest_second.starts:,}",
        ]
        if each.concurrency is not None:
            figures.append(f"{each.concurrency.peak:,}")
        table.add_row(name, *figures)
    return table


def moments(distribution: Distribution) -> Sequence[str]:
    """Sentences about the busiest minute and second, and about the runs at once."""
    minute, second = distribution.busiest_minute, distribution.busiest_second
    lines = list(moment("minute", minute, show.stamp(minute.at)[11:16]))
    if second.starts > 1:
        lines += moment("second", second, show.stamp(second.at)[11:19])
    else:
        lines.append("Busiest second: no two runs start in the same second.")
    if distribution.concurrency is not None:
        lines.append(at_once(distribution.concurrency))
    return lines


def moment(name: str, busiest: Busiest, clock: str) -> Sequence[str]:
    yours = f"Busiest {name}: {busiest.starts:,} {plural('start', busiest.starts)} at {clock} UTC"
    bounds = f"at least {busiest.bound:,} in any placement"
    if busiest.fixed_alone:
        bounds = f"fixed schedules alone: {busiest.fixed_alone:,}; {bounds}"
    return [f"{yours} ({bounds}).", f"  {some(busiest.keys, of=busiest.schedules)}"]


def at_once(concurrency: Concurrency) -> str:
    clock = show.stamp(concurrency.at)[11:16]
    line = (
        f"At once: {concurrency.peak:,} {plural('run', concurrency.peak)} at {clock} UTC, "
        f"{concurrency.mean:,.1f} on average"
    )
    if concurrency.unknown:
        line += (
            f"; {concurrency.unknown:,} {plural('schedule', concurrency.unknown)} without a known "
            "duration not counted"
        )
    return f"{line}."


def advice(distributions: Distributions, plan: Plan, *, placed_intervals: int) -> str:
    """What a rebalance would gain, and whether the fixed schedules are what makes it uneven."""
    minute = distributions.as_a_set.busiest_minute
    runs = sum(hour.run_count for hour in distributions.as_a_set.hourly)
    hint = ""
    if minute.fixed_alone > -(-runs // MINUTES):
        hint = (
            " `evenkeel advise` says which fixed schedules could leave their time to the operator."
        )
    if not placed_intervals:
        return (
            "No interval is without an offset: the operator places none, and a rebalance can move "
            "none." + hint
        )
    noun = plural("interval", placed_intervals)
    if not plan.moves:
        return (
            f"A rebalance would gain nothing: of {placed_intervals:,} placed {noun} none would "
            "move." + hint
        )
    before, after = distributions.as_a_set, distributions.rebalanced
    return (
        f"A rebalance would move {len(plan.moves):,} of {placed_intervals:,} placed {noun}: "
        f"score {before.distribution_score:.3f} -> {after.distribution_score:.3f}, "
        f"peak {before.peak:,} -> {after.peak:,}, "
        f"peak/mean {before.peak_to_mean:.2f} -> {after.peak_to_mean:.2f}, busiest minute "
        f"{before.busiest_minute.starts:,} -> {after.busiest_minute.starts:,}." + hint
    )
