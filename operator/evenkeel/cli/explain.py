"""`evenkeel plan --explain`: says how each schedule is read.

`plan` calls `explained`. One line for each schedule says its timing, its zone and its next due
time; notes about the schedule follow.
"""

from collections.abc import Iterator

from evenkeel.cli import show
from evenkeel.cli.given import GivenSet, PlacedSet, Planned, needs_a_phase
from evenkeel.cli.notes import notes_of, refusal_of_croniter
from evenkeel.cli.second_opinion import SecondOpinion
from evenkeel.manifests.cronjob import is_cronjob
from evenkeel.model import Instant


def explained(given: GivenSet, on_cluster: PlacedSet, start: Instant) -> Iterator[str]:
    """The lines, in the order of the files."""
    opinion = SecondOpinion(start)
    for planned in on_cluster.planned:
        schedule, key = planned.schedule, planned.schedule.key
        yield f"{key}: {_read_as(planned, on_cluster, start)}"
        was_cronjob = is_cronjob(given.objects[key])
        for note in notes_of(schedule, was_cronjob=was_cronjob, opinion=opinion, start=start):
            yield f"{key}: note: {note.sentence}"
        refused = refusal_of_croniter(schedule, opinion)
        if refused is not None:
            yield f"{key}: note: {refused}"


def _read_as(planned: Planned, on_cluster: PlacedSet, start: Instant) -> str:
    schedule = planned.schedule
    first = planned.dues.next_after(start - 1)
    due = f"next due {show.stamp(first)}" if first is not None else "never due again"
    zone = f" in {schedule.timing.zone}"
    if not needs_a_phase(schedule):
        return f"{planned.dues.text}{zone}; {due}"
    whose = "placed here" if schedule.key in on_cluster.chosen else "placed by status.placement"
    return f"{planned.dues.text}{zone}, {whose}; {due}"
