"""What requests change in the runs by schedule: the same play with its requests and without.

`request_differences` compares two plays that nothing disturbs: with faults they would have other
weather.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.sim.outcome import Created, Outcome
from tests.sim.play import play
from tests.sim.reading import name_of
from tests.sim.request_reading import all_asked
from tests.sim.requested import without_requests
from tests.sim.world import EVER, World

from evenkeel import rfc3339
from evenkeel.model import BY_SCHEDULE, RunId

MET = ("skipped", "cancelled", "missed", "lost")
"""What may become of a run by schedule that meets another one in its place."""

HALTED = ("suspended", "paused", "rejected", "schedule_deleted")
"""Reasons of an end that a run may get while it waits for its place. It met no run then."""


def request_differences(world: World) -> tuple[list[str], Outcome]:
    """Where the runs by schedule are not what they would be without requests."""
    asked, alone = play(world), play(without_requests(world))
    return [*differences_of(asked, alone)], asked


def differences_of(asked: Outcome, alone: Outcome) -> Iterator[str]:
    """Of two plays of one world, with its requests and without."""
    ours, theirs = _ends(asked), _ends(alone)
    for run in sorted(ours.keys() | theirs.keys(), key=lambda run: (run.uid, run.due)):
        mine, other = ours.get(run, "nothing"), theirs.get(run, "nothing")
        meetings = _meetings(asked, run.uid)
        if mine == other or "Policy" in meetings:
            continue
        where = f"{run.uid} due {rfc3339.show(run.due)}: {mine}, and without requests {other}"
        if "Wait" not in meetings:
            yield where
        elif _is_met(mine) and not _is_met(other) and not _met_another(asked, run, mine):
            yield f"{where}, and no run by schedule was in its place"


def _is_met(end: str) -> bool:
    return end.startswith(MET) and not any(f"({reason})" in end for reason in HALTED)


def _meetings(outcome: Outcome, uid: str) -> set[str]:
    """What the requests of a schedule do where they meet its runs: without a policy that shares
    places, nothing."""
    policies = {one["spec"].get("concurrencyPolicy", "Allow") for one in outcome.specs[uid]}
    if policies == {"Allow"}:
        return set()
    name = name_of(outcome, uid)
    return {asked.spec["overlap"] for asked in all_asked(outcome) if asked.schedule == name}


def _ends(outcome: Outcome) -> dict[RunId, str]:
    """What became of each run by schedule, as the ledger tells, and how many Jobs it had."""
    ends = {
        run: f"{cold.row.state} ({cold.row.reason})" if cold.row.reason else cold.row.state
        for run, cold in outcome.vault.tables.runs.items()
        if run.kind == BY_SCHEDULE
    }
    jobs = Counter(job.run for job in outcome.jobs.values())
    return {
        run: f"{ends.get(run)} with {jobs[run]} Jobs" if jobs[run] else ends[run]
        for run in ends.keys() | jobs.keys()
    }


def _met_another(outcome: Outcome, run: RunId, end: str) -> bool:
    """Whether another run by schedule was in its place or waited for it, or a deadline passed while
    it waited."""
    others = [job for job in outcome.jobs.values() if job.uid == run.uid and job.due != run.due]
    if end.startswith("cancelled"):
        return any(job.due > run.due for job in others)
    if end.startswith("missed"):
        return any("startingDeadlineSeconds" in one["spec"] for one in outcome.specs[run.uid])
    return any(
        job.due < run.due and (job.at > run.due or _gone_at(job) > run.due) for job in others
    )


def _gone_at(job: Created) -> float:
    """When it freed its place."""
    ended = job.ended_at if job.ended else EVER
    return min(ended, job.deleted_at or EVER)
