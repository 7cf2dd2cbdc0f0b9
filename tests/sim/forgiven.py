"""What an oracle lets pass. Each exception has a name, a reason, and a limit to its uses.

An oracle asks an exception last, when something would be wrong without it, so that a use is
counted only where it makes a difference. More uses in one play than `a_play`, or more plays of a
batch of seeds than `a_thousand` allows, are a violation: an exception that is used more and more
hides a defect. The limits were measured: a bit above what thousands of seeds show.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.sim.outcome import Created, Outcome
from tests.sim.reading import faults_of, has_pending_deadline, may_vanish

from evenkeel.resource.request_record import REQUEST_RECENT_COUNT

Holds = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class Limit:
    """How often an exception may be used."""

    a_play: int
    """Uses in one play."""
    a_thousand: float
    """Plays that use it, of a thousand seeds."""

    def plays(self, seeds: int) -> int:
        """Of so many seeds so many may use it: one, and four standard deviations, above the mean.
        Of 25 seeds chance alone brings more than the mean, in one of many batches."""
        mean = self.a_thousand * seeds / 1_000
        return math.ceil(mean + 4 * math.sqrt(mean) + 1) if mean else 0


LIMITS: dict[str, Limit] = {}


def forgiven(*, a_play: int, a_thousand: float) -> Callable[[Holds], Holds]:
    """Count the uses of a predicate. Its first argument is the outcome."""

    def name_it(holds: Holds) -> Holds:
        LIMITS[holds.__name__] = Limit(a_play, a_thousand)

        @functools.wraps(holds)
        def counted(outcome: Outcome, *args: object) -> bool:
            passes = holds(outcome, *args)
            outcome.forgiven[holds.__name__] += passes
            return passes

        return counted

    return name_it


def too_often_in_a_play(outcome: Outcome) -> Iterator[str]:
    """What was forgiven more often than one play explains."""
    for name, uses in sorted(outcome.forgiven.items()):
        if uses > LIMITS[name].a_play:
            yield f"forgiven too often: {name}, {uses} times, at most {LIMITS[name].a_play}"


def too_often_in_a_batch(plays: Mapping[str, int], seeds: int) -> list[str]:
    """`plays`: how many of so many seeds used an exception, by its name."""
    return [
        f"forgiven too often: {name} in {used} of {seeds} plays, at most {most}"
        for name, used in sorted(plays.items())
        if used > (most := LIMITS[name].plays(seeds))
    ]


# --- the world is such that nobody could do better ------------------------------------------------


@forgiven(a_play=320, a_thousand=140)
def clock_was_set(outcome: Outcome) -> bool:
    """Somebody set the clock of the operator's machine: the operator can only go by that clock."""
    return "wall" in outcome.world.tags


@forgiven(a_play=40, a_thousand=55)
def two_writers(outcome: Outcome) -> bool:
    """Two processes without a Lease take turns at one status with what each of them knows: only
    what they do to Jobs is promised."""
    return outcome.processes[0].play.trouble.twins


@forgiven(a_play=2, a_thousand=3)
def user_deleted_the_job(outcome: Outcome, *jobs: Created) -> bool:
    """The name locks while the Job lives. A user who deletes a Job while no status tells of its run
    opens the lock (docs/promises.md)."""
    return any(job.deleted_by == "user" for job in jobs)


@forgiven(a_play=1_000, a_thousand=700)
def status_was_forged(outcome: Outcome, *uids: str) -> bool:
    """Somebody wrote nonsense into the stored status of this schedule, and the operator that read
    it may believe of it what could be true: what that schedule counts and runs is apart. It must
    go on, heal, and disturb no other."""
    return any(uid in outcome.forged for uid in uids)


# --- creates --------------------------------------------------------------------------------------


@forgiven(a_play=6, a_thousand=10)
def twin_did_not_see_it(outcome: Outcome, jobs: list[Created]) -> bool:
    """Two processes without a Lease: one whose watch hung, or whose list of Jobs came long after
    that of schedules, did not see the other launch the runs of its own queue or catch-up, nor
    history or a short ttl take those Jobs away. The name locks while the Job lives."""
    apart = all(
        one.deleted_at is not None and one.who != other.who
        for one, other in itertools.pairwise(sorted(jobs, key=lambda job: (job.attempt, job.at)))
        if one.attempt == other.attempt
    )
    return outcome.processes[0].play.trouble.twins and apart


@forgiven(a_play=2, a_thousand=2)
def on_its_way_when_all_went(outcome: Outcome, jobs: list[Created]) -> bool:
    """A request that arrives after its schedule and all Jobs of the schedule were deleted, because
    it was late, or no watch or list had told of that: the garbage collector takes its Job at
    once."""
    gone_at = outcome.deleted.get(jobs[0].uid, math.inf)
    before = [job.attempt for job in jobs if job.at <= gone_at]
    collected = all(job.deleted_at and not job.ended for job in jobs if job.at > gone_at)
    return before == [*range(1, len(before) + 1)] and len(before) < len(jobs) and collected


@forgiven(a_play=1, a_thousand=0.5)
def on_its_way_when_too_slow(outcome: Outcome, jobs: list[Created]) -> bool:
    """A request that arrives late, after the Job of its attempt was given up as too slow and
    deleted, which frees the name: its Job is deleted before it has done anything."""
    too_slow = has_pending_deadline(outcome, jobs[0].uid)
    undone = jobs[-1].deleted_at is not None and not jobs[-1].ended
    return "late" in faults_of(outcome) and too_slow and undone


@forgiven(a_play=1, a_thousand=0.5)
def on_its_way_when_replaced(outcome: Outcome, jobs: list[Created]) -> bool:
    """A request that arrives late, after another create of its run was answered, and that Job was
    replaced and deleted, which frees the name: its Job is deleted when a watch or a list shows it,
    and may have ended by then."""
    replaced, arrived = jobs[-2:]
    replaces = any(
        one["spec"].get("concurrencyPolicy") == "Replace" for one in outcome.specs[arrived.uid]
    )
    freed = replaced.deleted_at is not None and replaced.deleted_at <= arrived.at
    undone = arrived.deleted_at is not None and arrived.deleted_at < arrived.at + 60
    once = [job.attempt for job in jobs] == [*range(1, len(jobs)), replaced.attempt]
    return "late" in faults_of(outcome) and replaces and freed and undone and once


@forgiven(a_play=30, a_thousand=45)
def given_up_as_too_slow(outcome: Outcome, uid: str) -> bool:
    """A Job that did not start within pendingDeadlineSeconds has failed, and with faults it may be
    deleted after the next attempt was created."""
    return has_pending_deadline(outcome, uid)


@forgiven(a_play=4, a_thousand=5)
def started_too_late(outcome: Outcome, job: Created) -> bool:
    """A Job that did not start in time has failed, and is still there when it ends or the play
    does: its deletion waits for a stored status, or comes too late."""
    return job.ended == "succeeded" or job.at > outcome.now - 30


@forgiven(a_play=4, a_thousand=6)
def deleted_before_the_next(outcome: Outcome, job: Created) -> bool:
    """Two Jobs of one attempt, the first of which was deleted: one of the exceptions above has
    said why there are two, and the second is no attempt after a failed one."""
    return job.deleted_at is not None


@forgiven(a_play=5, a_thousand=5)
def arrived_after_its_verdict(outcome: Outcome) -> bool:
    """A create whose request arrives after its run was given up makes a Job beside the verdict.
    The Job is deleted, and may have ended before that."""
    return "late" in faults_of(outcome)


# --- timings that no status told of ---------------------------------------------------------------


@forgiven(a_play=3, a_thousand=6)
def timing_was_never_told(outcome: Outcome, told: bool) -> bool:
    """The process that saw an edit died before a status told of it, or another edit came first:
    from when until when that timing was in force nobody outside can say."""
    return not told


@forgiven(a_play=3, a_thousand=12)
def planned_by_a_timing_never_told(outcome: Outcome, untold: bool) -> bool:
    """A request was planned by a timing or a phase of which no status of the schedule was stored:
    the process died before, or another edit came first. The plan itself names it."""
    return untold


@forgiven(a_play=4, a_thousand=20)
def run_of_a_timing_never_told(outcome: Outcome) -> bool:
    """A Job of a timing that no status told of, because the process died before: it ran, so it is
    a run, although that timing is reckoned not to have been."""
    return True


@forgiven(a_play=6, a_thousand=25)
def in_the_ledger_by_a_timing_never_told(outcome: Outcome, ran: bool) -> bool:
    """A Job of a timing that no status told of has its row, because it ran; by the timings that the
    ledger was told it was never due."""
    return ran


@forgiven(a_play=2, a_thousand=3)
def lacks_a_run_of_a_timing_never_told(outcome: Outcome, strays: int) -> bool:
    """And where the next process was killed, too, before its row of that run was written: the
    ledger is filled from `recent` with what was due by the timings that it knows."""
    return strays > 0 and len(outcome.processes) > 2


@forgiven(a_play=2, a_thousand=2)
def verdict_nobody_can_reckon(outcome: Outcome) -> bool:
    """A Job that a user deleted is a run only where the operator had seen the Job before that. And
    where the clock was set back before an edit, the old timing was reckoned up to a mark that lies
    after the edit: by which of the two timings a due time between them counts nobody can say."""
    return True


@forgiven(a_play=12, a_thousand=8)
def phase_was_never_told(outcome: Outcome, untold: bool) -> bool:
    """The process that chose a phase launched by it and died, or no write came through, before a
    status told of the phase: whether a Job was due by it nobody outside can say."""
    return untold


# --- verdicts -------------------------------------------------------------------------------------


@forgiven(a_play=2, a_thousand=2)
def succeeded_after_it_was_given_up(outcome: Outcome, uid: str, ends: set[str]) -> bool:
    """A Job that was given up as too slow may succeed before it is deleted, and so end its run."""
    return has_pending_deadline(outcome, uid) and "succeeded" in ends


@forgiven(a_play=5, a_thousand=70)
def success_nobody_saw(outcome: Outcome, uid: str) -> bool:
    """Replace, a user, a pending deadline or a ttl deletes Jobs that have just ended: cancelled or
    lost is as true."""
    return (
        "deleted jobs" in outcome.world.tags
        or has_pending_deadline(outcome, uid)
        or may_vanish(outcome.schedules[uid])
        or any(one["spec"].get("concurrencyPolicy") == "Replace" for one in outcome.specs[uid])
    )


@forgiven(a_play=1, a_thousand=0)
def lost_between_mark_and_create(outcome: Outcome, due: int | None) -> bool:
    """Where a Job may vanish soon (ttlSecondsAfterFinished), a status announces the run before the
    create. A crash between the two leaves the run lost (outcome_unknown): created again it might
    run twice."""
    return due is not None


# --- requests -------------------------------------------------------------------------------------


@forgiven(a_play=20, a_thousand=0)
def ledger_lost_rows(outcome: Outcome) -> bool:
    """The store was away, slow or lost: what it lacks of requested runs nobody tells it again."""
    return outcome.vault.trouble.is_any


@forgiven(a_play=4, a_thousand=0)
def ends_died_with_their_process(outcome: Outcome, ends: int) -> bool:
    """A process that is killed takes rows with it that the ledger has not got yet. The next one
    writes them from `recent` of the request, which tells of ten."""
    return len(outcome.processes) > 1 and ends > REQUEST_RECENT_COUNT


@forgiven(a_play=2, a_thousand=0)
def more_at_once_after_a_kill(outcome: Outcome) -> bool:
    """A process that was killed had begun the next run, because one had ended, and no status told
    of that end, nor did a Job: its create was refused. The next process follows both."""
    return len(outcome.processes) > 1


@forgiven(a_play=20, a_thousand=0)
def ledger_did_not_know(outcome: Outcome) -> bool:
    """Which due times have run is asked of the ledger. It may lack what happened while it was away,
    what a process had not written when it was killed, and what no watch had told of."""
    processes = outcome.processes
    return (
        outcome.vault.trouble.is_any
        or len(processes) > 1
        or processes[0].play.trouble.storm is not None
    )


# --- bounds ---------------------------------------------------------------------------------------


@forgiven(a_play=1, a_thousand=0.5)
def opening_connections(outcome: Outcome, path: str) -> bool:
    """Before a herd is due, connections are opened by asking for the version."""
    return path == "/version"


@forgiven(a_play=4, a_thousand=4)
def catching_up(outcome: Outcome, verb: str, path: str) -> bool:
    """A catch-up of a hundred runs is a hundred creates, as many Events, and as many looks at Pods
    that do not start."""
    return verb == "POST" or "/events" in path or path.endswith("/pods")


@forgiven(a_play=1, a_thousand=0.5)
def catching_up_beside_another(outcome: Outcome, calls: int, twice: int) -> bool:
    """A catch-up of a hundred runs that another operator creates too, and that do not start, needs
    six requests a run: the create, a look at what it met, at the Pods and at their refusal, the
    deletion and an Event."""
    return outcome.processes[0].play.trouble.twins and calls <= twice
