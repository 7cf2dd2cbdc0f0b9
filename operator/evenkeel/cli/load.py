"""`evenkeel load`: how even a set of manifests would run, without a cluster.

Three answers to one question: intervals placed one by one as they would be on an empty cluster,
the same after a rebalance that nothing holds back, and placed by hash as most schedulers do.
Suspended schedules are no load.
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
"""What the hour, the four slots and the gaps between six columns take."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """The set's 24 hours, three times."""

    placed: Distribution
    rebalanced: Distribution
    by_hash: Distribution


@click.command()
@files_option
@from_option
@show.form_option
def load(*, files: tuple[str, ...], start: Instant, form: str) -> None:
    """Show the load that manifests make in 24 hours; no cluster is needed.

    Reads ScheduledJobs and CronJobs. Intervals without an offset are placed as on an empty
    cluster; what rebalancing would gain stands beside.
    """
    with show.quiet_ending():
        given = read_set(files, start)
        one_by_one = placed(given.schedules, start)
        say_refused(files, one_by_one)
        by_hash = placed(given.schedules, start, observe=True)
        with show.waiting("rebalancing"):
            limits = Limits(Settings().pre_schedule_s)
            plan = plan_rebalance(one_by_one.load, start, limits)
        pictures = Pictures(plan.current, plan.projected, by_hash.load.distribution(start))
        if form == "json":
            show.say_json(as_json(pictures, one_by_one.anchors, plan))
        else:
            target = show.console()
            with target.capture() as captured:  # rich has its own way with a closed pipe
                print_tables(target, pictures, one_by_one, plan)
            show.write(captured.get())
    if given.bad or one_by_one.refused:
        raise SystemExit(1)


def as_json(pictures: Pictures, anchors: Mapping[str, Instant], plan: Plan) -> dict[str, Any]:
    """One object: the set placed one by one, rebalanced, and by hash."""
    moved = {move.key: move.new_anchor for move in plan.moves}
    return {
        **measures(pictures.placed),
        "placements": placements(anchors),
        "rebalanced": {
            **measures(pictures.rebalanced),
            "placements": placements({**anchors, **moved}),
        },
        "hash": measures(pictures.by_hash),
    }


def measures(picture: Distribution) -> dict[str, Any]:
    return {
        "slots": list(picture.slots),
        "distribution_score": picture.distribution_score,
        "peak_to_mean": picture.peak_to_mean,
        "lower_bound": picture.lower_bound,
    }


def placements(anchors: Mapping[str, Instant]) -> list[dict[str, str]]:
    return [{"schedule": key, "anchor": show.stamp(at)} for key, at in anchors.items()]


# --- for people -------------------------------------------------------------------------------


def print_tables(target: Console, pictures: Pictures, one_by_one: PlacedSet, plan: Plan) -> None:
    """Bars by hour, the measures side by side, and a sentence on what to do."""
    picture = pictures.placed
    runs = sum(hour.run_count for hour in picture.hourly)
    target.print(
        f"[bold]{picture.total_jobs:,} schedules, {runs:,} runs[/bold] "
        f"in the 24 h from {show.stamp(picture.start)}"
    )
    if not runs:
        return
    target.print()
    target.print(hours_table(picture, columns=target.width, blocks=show.has_blocks(target)))
    target.print()
    target.print(measures_table(pictures))
    target.print()
    target.print(advice(pictures, plan, placed_intervals=len(one_by_one.anchors)))


def hours_table(picture: Distribution, *, columns: int, blocks: bool) -> Table:
    """An hour a row: its load as a bar, its four slots beside it; the busiest slot is marked."""
    hours = by_hour(picture)
    fullest = max(sum(slots) for slots in hours.values())
    runs = {hour.hour: hour.run_count for hour in picture.hourly}
    peak = f"peak {picture.peak:,}"
    busiest = next(hour for hour, slots in hours.items() if picture.peak in slots)
    # The numbers must not be cut, so the bars take what they leave.
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
            Text(show.spark(slots, full=picture.peak, blocks=blocks), style="cyan"),
            peak if is_busiest else "",
        )
    return table


def by_hour(picture: Distribution) -> dict[int, tuple[int, ...]]:
    """The slots of each UTC hour, from 00 to 23, wherever in the day the picture begins."""
    first = picture.start // SLOT_S % DAY_SLOTS
    of_day = picture.slots[DAY_SLOTS - first :] + picture.slots[: DAY_SLOTS - first]
    return {hour: of_day[hour * HOUR_SLOTS :][:HOUR_SLOTS] for hour in range(24)}


def measures_table(pictures: Pictures) -> Table:
    """What one by one, rebalanced and by hash differ in."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("PLACED")
    for title in ("SCORE", "PEAK", "PEAK/MEAN", "LOWER BOUND"):
        table.add_column(title, justify="right")
    rows: Sequence[tuple[str, Distribution]] = (
        ("one by one", pictures.placed),
        ("rebalanced", pictures.rebalanced),
        ("by hash", pictures.by_hash),
    )
    for name, picture in rows:
        table.add_row(
            name,
            f"{picture.distribution_score:.3f}",
            f"{picture.peak:,}",
            f"{picture.peak_to_mean:.2f}",
            f"{picture.lower_bound:.2f}",
        )
    return table


def advice(pictures: Pictures, plan: Plan, *, placed_intervals: int) -> str:
    """What rebalancing would gain, and whether that is worth it."""
    if not placed_intervals:
        return "No interval leaves its phase to the operator: there is nothing to rebalance."
    if not plan.moves:
        return f"Rebalancing would gain nothing: {placed_intervals:,} placed, none would move."
    before, after = pictures.placed, pictures.rebalanced
    return (
        f"Rebalancing would move {len(plan.moves):,} of {placed_intervals:,} placed intervals: "
        f"peak {before.peak:,} -> {after.peak:,}, "
        f"peak/mean {before.peak_to_mean:.2f} -> {after.peak_to_mean:.2f}."
    )
