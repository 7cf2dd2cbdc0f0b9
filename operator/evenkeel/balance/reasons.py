"""The sentences of status.placement.reason: why a schedule has its phase.

`place` and core's rebalance call these functions; owners of schedules read the sentences.
"""

from evenkeel import rfc3339
from evenkeel.balance.nouns import WEEK_S, Member
from evenkeel.balance.starts import BY_SECONDS_BELOW_S
from evenkeel.model import DAY_S, SLOT_S, Instant
from evenkeel.when import format_duration


def by_load_sentence(
    member: Member, first_run: Instant, *, starts: int, load: int, mean: float
) -> str:
    """The phase was chosen by the load."""
    every_s = member.interval.every_s
    if every_s < BY_SECONDS_BELOW_S:
        chosen = "so short an interval runs in nearly every minute, so only its second was chosen"
    elif every_s <= SLOT_S:
        chosen = f"the least used minutes of {starts} possible starts: it runs in every slot"
    else:
        where = "minutes of its window" if member.window is not None else "minutes"
        chosen = (
            f"the least loaded start of {starts} {where}: the busiest slot in which it runs has a "
            f"load of {load} with it, and the mean slot has {mean:.1f} without it"
        )
    return f"{_rhythm(member, first_run)}; {chosen}{_caveat(every_s)}"


def by_hash_sentence(member: Member, first_run: Instant, *, by_load: Instant) -> str:
    """The phase is a hash of the name (setting placement.mode: Observe)."""
    return (
        f"{_rhythm(member, first_run)}; the phase is a hash of its name (Observe mode); "
        f"chosen by the load, the first run would be {rfc3339.show(by_load)}"
    )


def kept_sentence(member: Member, first_run: Instant) -> str:
    """A schedule of this name had this phase before."""
    return f"{_rhythm(member, first_run)}; a schedule of this name had this phase before"


def improved_sentence(member: Member, first_run: Instant) -> str:
    """The phase was improved when all of the set were known."""
    every_s = member.interval.every_s
    return (
        f"{_rhythm(member, first_run)}; improved before its first run, together with the schedules "
        f"that arrived at the same time{_caveat(every_s)}"
    )


def moved_sentence(member: Member, first_run: Instant) -> str:
    """The phase was chosen by a rebalance."""
    every_s = member.interval.every_s
    return f"{_rhythm(member, first_run)}; moved by a rebalance{_caveat(every_s)}"


def _rhythm(member: Member, first_run: Instant) -> str:
    zone = member.timing.zone
    every_s = member.interval.every_s
    counted = f" of {zone}" if every_s % DAY_S == 0 and zone != "UTC" else ""
    return f"first run {rfc3339.show(first_run)}, then every {format_duration(every_s)}{counted}"


def _caveat(every_s: int) -> str:
    horizon_s, name = (DAY_S, "24 hours") if every_s <= DAY_S else (WEEK_S, "7 days")
    if horizon_s % every_s == 0:
        return ""
    return (
        f"; {format_duration(every_s)} does not divide {name}, so its times shift and the load may "
        "become less even"
    )
