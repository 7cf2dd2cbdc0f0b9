"""What is right in a manifest and still worth a word: readings of other tools, what differs once a
CronJob is a ScheduledJob, and commands of which a request chooses a part.

`lint` and `plan --explain` call `notes_of`. A note is no mistake: it never fails a command.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace

from evenkeel import rfc3339
from evenkeel.cli.parameter_notes import notes_on_parameters
from evenkeel.cli.remark import Remark
from evenkeel.cli.second_opinion import VERSION, YEAR_S, YEARS_COMPARED, SecondOpinion
from evenkeel.manifests.findings import Path
from evenkeel.model import DAY_S, Cron, Fold, Gap, Instant, Interval, Schedule, Timing
from evenkeel.when import compile_timing, format_duration, hint
from evenkeel.when.zone import load_zone

_SCHEDULE: Path = ("spec", "schedule")


def notes_of(
    schedule: Schedule, *, was_cronjob: bool, opinion: SecondOpinion, start: Instant
) -> Iterator[Remark]:
    """All notes about one schedule."""
    rule = schedule.timing.rule
    if isinstance(rule, Cron):
        meant = hint(rule.text)
        if meant:
            yield Remark(_SCHEDULE, meant)
        yield from _of_croniter(rule, opinion)
        if was_cronjob:
            yield from _of_clock_changes(schedule, start)
    elif was_cronjob and isinstance(rule, Interval):
        every = format_duration(rule.every_s)
        yield Remark(
            _SCHEDULE,
            f"becomes interval: {{every: {every}}}, and the operator chooses when it begins; a "
            "CronJob counts from the start of its controller",
        )
    yield from notes_on_parameters(schedule)


def _of_croniter(rule: Cron, opinion: SecondOpinion) -> Iterator[Remark]:
    found = opinion.of(rule)
    if found.parting is None:
        return
    at = rfc3339.show(found.parting)[:16].replace("T", " ")
    ours, theirs = ("not here", "there") if found.theirs else ("here", "not there")
    yield Remark(
        _SCHEDULE,
        f"croniter {VERSION}, and tools that use it, read {rule.text} otherwise: {at} by the "
        f"zone's clock is due {theirs}, and {ours}",
    )


def refusal_of_croniter(schedule: Schedule, opinion: SecondOpinion) -> str | None:
    """A sentence for a text that croniter does not read."""
    rule = schedule.timing.rule
    if isinstance(rule, Cron) and opinion.of(rule).refused:
        return f"croniter {VERSION}, and tools that use it, refuse {rule.text}"
    return None


def _of_clock_changes(schedule: Schedule, start: Instant) -> Iterator[Remark]:
    at = first_difference(schedule.timing, start)
    if at is not None:
        yield Remark(
            _SCHEDULE,
            f"when the clock changes, a ScheduledJob and a CronJob differ: first at "
            f"{rfc3339.show(at)}; dst: {{gap: Skip, fold: Both}} in the ScheduledJob keeps what "
            "CronJob does",
        )


@functools.lru_cache(maxsize=4096)
def first_difference(timing: Timing, start: Instant) -> Instant | None:
    """The first time in the next years that only one of ScheduledJob and CronJob has. A CronJob has
    no `H`, so the name makes no difference."""
    zone = load_zone(timing.zone)
    if zone.unchanging:
        return None
    ours = compile_timing(timing, seed="")
    theirs = compile_timing(replace(timing, gap=Gap.SKIP, fold=Fold.BOTH), seed="")
    if ours.row == theirs.row:
        return None  # by real minutes, in both
    until = start + YEARS_COMPARED * YEAR_S
    changes, _ = zone.spans(until)
    for change in changes:
        if not start <= change < until:
            continue
        low, high = max(start, change - DAY_S), change + DAY_S
        differ = set(ours.between(low, high)) ^ set(theirs.between(low, high))
        if differ:
            return min(differ)
    return None
