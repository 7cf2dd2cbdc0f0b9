"""Why a schedule runs when it runs, in sentences for its owner."""

from evenkeel import rfc3339
from evenkeel.balance.nouns import WEEK_S, Member
from evenkeel.model import DAY_S, SLOT_S, Instant
from evenkeel.when import format_duration


def by_load_sentence(
    member: Member, first_run: Instant, *, starts: int, load: int, mean: float
) -> str:
    """For a phase that was chosen by the load."""
    every_s = member.interval.every_s
    if every_s <= SLOT_S:
        chosen = "it loads every slot alike, so only the quietest second was chosen"
    else:
        where = "minutes of its window" if member.window is not None else "minutes"
        chosen = (
            f"the least loaded start of {starts} {where}: the busiest slot it hits carries "
            f"{load} with it, the mean without it is {mean:.1f}"
        )
    return f"{_rhythm(member, first_run)}; {chosen}{_caveat(every_s)}"


def by_hash_sentence(member: Member, first_run: Instant, *, by_load: Instant) -> str:
    """For a phase that was taken from the name although the load was looked at."""
    return (
        f"{_rhythm(member, first_run)}; taken from the hash of its name (Observe mode), "
        f"by load it would first run at {rfc3339.show(by_load)}"
    )


def kept_sentence(member: Member, first_run: Instant) -> str:
    """For a name that came back."""
    return f"{_rhythm(member, first_run)}; the phase that this name had before"


def moved_sentence(member: Member, first_run: Instant) -> str:
    """For a phase that a rebalance chose."""
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
    return f"; {format_duration(every_s)} does not divide {name}: even today, not for ever"
