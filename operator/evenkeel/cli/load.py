"""`evenkeel load`: how even the load of a set of manifests would be, without a cluster.

The load is computed three times: with the intervals placed one by one, as an operator on an empty
cluster places them; after a rebalance without any protection; and with phases that are a hash of
the name, as most schedulers choose them. Suspended schedules have no load.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenkeel.balance import Distribution, Limits, Plan, plan_rebalance
from evenkeel.balance.nouns import DAY_SLOTS
from evenkeel.cli import show
from evenkeel.cli.manifests import (
    PlacedSet,
    files_option,
    from_option,
    placed,
    read_set,
    say_refused,
)
from evenkeel.model import SLOT_S, Instant
from evenkeel.settings import Settings

HOUR_SLOTS = 4
BAR_COLUMNS = 30
TABLE_COLUMNS = 20
"""The width of the hour, of the four slots and of the gaps between six columns."""


@dataclass(frozen=True, slots=True)
class Distributions:
    """The load of the next 24 hours, computed three times."""

    placed: Distribution
    rebalanced: Distribution
    by_hash: Distribution


@click.command()
@files_option
@from_option
@show.form_option
def load(*, files: tuple[str, ...], start: Instant, form: str) -> None:
    """Show the load that manifests would make in 24 hours. No cluster is needed.

    Reads ScheduledJobs and CronJobs, and places intervals without an offset as the operator does on
    an empty cluster. Load is the sum of the weights of the runs (placement.weight, 1 by default).
    The first table shows the load of each hour and of its four slots of 15 minutes. The second
    shows how even the slots are, for intervals placed one by one, after a rebalance, and placed by
    a hash of their names: a SCORE of 1 is as even as possible, PEAK is the load of the busiest
    slot, and LOWER BOUND is the least PEAK/MEAN that any placement could reach.
    """
    with show.quiet_ending():
        given = read_set(files, start)
        one_by_one = placed(given.schedules, start)
        say_refused(files, one_by_one)
        by_hash = placed(given.schedules, start, observe=True)
        with show.waiting("rebalancing"):
            limits = Limits(Settings().pre_schedule_s)
            plan = plan_rebalance(one_by_one.load, start, limits)
        distributions = Distributions(
            plan.current, plan.projected, by_hash.load.distribution(start)
        )
        if form == "json":
            show.say_json(as_json(distributions, one_by_one.anchors, plan))
        elif one_by_one.planned or not (given.bad or one_by_one.refused):
            target = show.console()
            with target.capture() as captured:  # rich would raise when the reader is gone
                print_tables(target, distributions, one_by_one, plan)
            show.write(captured.get())
    if given.bad or one_by_one.refused:
        raise SystemExit(1)


def as_json(
    distributions: Distributions, anchors: Mapping[str, Instant], plan: Plan
) -> dict[str, Any]:
    """One object: the set placed one by one, after a rebalance, and placed by hash."""
    moved = {move.key: move.new_anchor for move in plan.moves}
    return {
        **measures(distributions.placed),
        "placements": placements(anchors),
        "rebalanced": {
            **measures(distributions.rebalanced),
            "placements": placements({**anchors, **moved}),
        },
        "hash": measures(distributions.by_hash),
    }


def measures(distribution: Distribution) -> dict[str, Any]:
    return {
        "slots": list(distribution.slots),
        "distribution_score": distribution.distribution_score,
        "peak_to_mean": distribution.peak_to_mean,
        "lower_bound": distribution.lower_bound,
    }


def placements(anchors: Mapping[str, Instant]) -> list[dict[str, str]]:
    return [{"schedule": key, "anchor": show.stamp(at)} for key, at in anchors.items()]


# --- for people -------------------------------------------------------------------------------


def print_tables(
    target: Console, distributions: Distributions, one_by_one: PlacedSet, plan: Plan
) -> None:
    """The load of each hour as bars, the measures side by side, and what a rebalance would gain."""
    distribution = distributions.placed
    runs = sum(hour.run_count for hour in distribution.hourly)
    target.print(
        f"[bold]{distribution.total_jobs:,} schedules, {runs:,} runs[/bold] "
        f"in the 24 h from {show.stamp(distribution.start)}"
    )
    if not runs:
        return
    target.print()
    target.print(hours_table(distribution, columns=target.width, blocks=show.has_blocks(target)))
    target.print()
    target.print(measures_table(distributions))
    target.print()
    target.print(advice(distributions, plan, placed_intervals=len(one_by_one.anchors)))


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


def measures_table(distributions: Distributions) -> Table:
    """The measures of the three placements."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("PLACED")
    for title in ("SCORE", "PEAK", "PEAK/MEAN", "LOWER BOUND"):
        table.add_column(title, justify="right")
    rows: Sequence[tuple[str, Distribution]] = (
        ("one by one", distributions.placed),
        ("rebalanced", distributions.rebalanced),
        ("by hash", distributions.by_hash),
    )
    for name, distribution in rows:
        table.add_row(
            name,
            f"{distribution.distribution_score:.3f}",
            f"{distribution.peak:,}",
            f"{distribution.peak_to_mean:.2f}",
            f"{distribution.lower_bound:.2f}",
        )
    return table


def advice(distributions: Distributions, plan: Plan, *, placed_intervals: int) -> str:
    """What a rebalance would gain."""
    if not placed_intervals:
        return (
            "No interval is without an offset: the operator places none, and a rebalance can move "
            "none."
        )
    noun = "interval" if placed_intervals == 1 else "intervals"
    if not plan.moves:
        return (
            f"A rebalance would gain nothing: of {placed_intervals:,} placed {noun} none would "
            "move."
        )
    before, after = distributions.placed, distributions.rebalanced
    return (
        f"A rebalance would move {len(plan.moves):,} of {placed_intervals:,} placed {noun}: "
        f"peak {before.peak:,} -> {after.peak:,}, "
        f"peak/mean {before.peak_to_mean:.2f} -> {after.peak_to_mean:.2f}."
    )
