"""Creates that are held back: nothing was written, and trying again may succeed.

What holds one run of a schedule back holds its others: they share one pause, or each would ask the
API server for itself. `grace` limits how long; after it `late` settles them as one set. The runs of
a request share a pause of their own, which delays no run by schedule, and no limit.
"""

from evenkeel.core.schedule import life
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.progress import Backoff
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.reasons import ConditionReason, Reason

HELD_RETRY_LIMIT_S = 30
"""A quota that heals is noticed within this; a schedule that never fits asks twice a minute."""

ANSWER_WAIT_S = 60.0
"""So long the set waits for answers: a reading by name takes 10 s to fail, and pauses as long."""

ANSWER_LOOK_S = 1.0

GRACE_SHARE = 0.25
"""Of grace, a pause within it is no longer. After tries at 1, 3, 7 and 15 s the next one came at
31, and an API server that was back after 18 s was too late."""

BUSY_RETRY_S = 1.0
"""After a 429 the lanes are closed for all, as long as the server says. A schedule that paused on
its own as well, longer each time, would leave the server idle when it has room again."""


def launch(turn: Turn, entry: Entry, run: Run) -> None:
    """Launch, unless the schedule's last create was held: then wait for its next try, too."""
    if turn.monotonic < pause_of(entry, run).until_m:
        _wait(turn, entry, run, since_m=turn.monotonic)
    else:
        life.launch(turn, entry, run)


def hold(
    turn: Turn, entry: Entry, run: Run, reason: ConditionReason, message: str, *, since_s: float
) -> None:
    """Nothing was written, and it may heal: try again, later each time. `since_s`: how long ago the
    create was sent; where no answer came that may be long."""
    pause = pause_of(entry, run)
    pause.message = message
    unannounced = reason is ConditionReason.STATUS_NOT_WRITTEN
    pause.reason = Reason.UNANNOUNCED if unannounced else Reason.HELD
    if turn.monotonic >= pause.until_m:  # those sent beside it say the same
        if not pause.count:
            pause.since_m = turn.monotonic
        delay_s = min(HELD_RETRY_LIMIT_S, 2.0 ** min(pause.count, 10))
        grace_s = turn.settings.grace_s
        if turn.monotonic < pause.since_m + grace_s:  # or a pause would outlast what is left of it
            delay_s = min(delay_s, grace_s * GRACE_SHARE)
        if reason is ConditionReason.TOO_MANY_REQUESTS:
            delay_s = BUSY_RETRY_S
        pause.count += 1
        pause.until_m = turn.monotonic + delay_s
    if pause.count == 1:
        turn.log("create held", level="warning", schedule=entry.key, reason=reason)
    _wait(turn, entry, run, since_m=turn.monotonic - since_s)


def pause_of(entry: Entry, run: Run) -> Backoff:
    """The pause that this run shares with others."""
    request = entry.request_of(run.id)
    return entry.backoff if request is None else request.backoff


def release(turn: Turn, entry: Entry) -> None:
    """The API server answers again: what waited for that is tried at once."""
    for pause in (entry.backoff, *(request.backoff for request in entry.unfinished.values())):
        _release(turn, entry, pause)


def release_those_of(turn: Turn, entry: Entry, run: Run) -> None:
    """A create was answered: what waited for that is tried at once."""
    _release(turn, entry, pause_of(entry, run))


def _release(turn: Turn, entry: Entry, pause: Backoff) -> None:
    if not pause.count:
        return
    turn.log("creates go on", schedule=entry.key, tries=pause.count)
    pause.end()
    for run in entry.held:
        if pause_of(entry, run) is pause:
            turn.retry_later(run, delay_s=0)


def awaits_answers(turn: Turn, entry: Entry) -> bool:
    """Creates without an answer belong to the set, if they come to nothing: after an outage that
    swallowed them they are found out one by one, and as many sets would run as many late."""
    pause = entry.backoff
    runs = entry.runs.values()
    if not any(run.stage is Stage.ASKING and run.by_schedule for run in runs):
        pause.answers_awaited_until_m = None
        return False
    if pause.answers_awaited_until_m is None:
        pause.answers_awaited_until_m = turn.monotonic + ANSWER_WAIT_S
    return turn.monotonic < pause.answers_awaited_until_m


def _wait(turn: Turn, entry: Entry, run: Run, *, since_m: float) -> None:
    if not run.was_held:  # its grace counts from here: to wait in a queue or lane is no failure
        run.was_held = True
        run.taken_m = max(run.taken_m, since_m)
    pause = pause_of(entry, run)
    run.message = pause.message
    life.wait(turn, entry, run, Stage.HELD, pause.reason)
    turn.retry_later(run, delay_s=pause.until_m - turn.monotonic)
