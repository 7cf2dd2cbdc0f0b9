"""Asks croniter how it reads a cron text, and says where it reads the text otherwise than we do.

`lint` and `plan --explain` call `SecondOpinion`. People move schedules between tools, and many of
those use croniter. Compared is the reading of the text by the clock on the wall: no zone and no
daylight saving, because what becomes of the hour of a clock change depends on the tool, too. Texts
with `H` are not compared: every program hashes in its own way.

First the fields are compared, which takes 0.1 ms. Only where they differ, times are computed until
the first difference; how many is bounded, for one text and for all together. So no difference said
does not prove that there is none. Whatever croniter raises is "refused", and never more.
"""

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from croniter import croniter

from evenkeel.model import Cron, DayMatch, Instant, Timing
from evenkeel.when import compile_timing, days
from evenkeel.when.cron import CronFields, parse_cron

VERSION = importlib.metadata.version("croniter")

TIMES_COMPARED = 1_000
"""Of one text. croniter computes about 20 in a millisecond."""

YEARS_COMPARED = 5
YEAR_S = 366 * 86_400

TIMES_IN_ALL = 20_000
"""Of all texts of a command, so that croniter never costs more than some seconds."""

_FULL = (range(60), range(24), range(1, 32), range(1, 13), range(7))


@dataclass(frozen=True, slots=True)
class Opinion:
    """What croniter makes of a text. Nothing is set where it reads the text as we do."""

    refused: bool = False
    parting: Instant | None = None
    """The first time, by the clock on the wall, at which only one of the two runs."""
    theirs: bool = False
    """croniter runs at that time, and we do not."""


AGREES = Opinion()
REFUSES = Opinion(refused=True)


class SecondOpinion:
    """croniter's opinion of the texts of one command. Equal texts are asked once."""

    def __init__(self, start: Instant) -> None:
        self._start = start
        self._known: dict[Cron, Opinion] = {}
        self._times_left = TIMES_IN_ALL

    def of(self, rule: Cron) -> Opinion:
        """The opinion on a text that we have accepted."""
        found = self._known.get(rule)
        if found is None:
            found = self._known[rule] = self._ask(rule)
        return found

    def _ask(self, rule: Cron) -> Opinion:
        text = " ".join(rule.text.split())
        if _is_hashed(text):
            return AGREES
        try:
            expanded, counted = croniter.expand(text)
        except Exception:  # noqa: BLE001 - besides its own errors it raises ValueError and others
            return REFUSES
        ours = parse_cron(text, day_match=rule.day_match, seed="")
        if _read_alike(ours, expanded, counted, rule.day_match):
            return AGREES
        return self._first_difference(text, rule)

    def _first_difference(self, text: str, rule: Cron) -> Opinion:
        ours = compile_timing(Timing(Cron(text, rule.day_match)), seed="")
        at, end = self._start, self._start + YEARS_COMPARED * YEAR_S
        try:
            theirs: Any = croniter(
                text,
                float(at),
                day_or=rule.day_match is DayMatch.OR,
                max_years_between_matches=YEARS_COMPARED,
            )
            for _ in range(min(TIMES_COMPARED, self._times_left)):
                self._times_left -= 1
                our_next, their_next = ours.next_after(at), int(theirs.get_next(float))
                if our_next is None or our_next > end:
                    break
                if our_next != their_next:
                    return Opinion(parting=min(our_next, their_next), theirs=their_next < our_next)
                at = our_next
        except Exception:  # noqa: BLE001 - it finds no time, or fails in the search
            return REFUSES
        return AGREES


def _is_hashed(text: str) -> bool:
    """Whether an entry is H. Other entries hold the letter too: THU."""
    return any(item.startswith("H") for word in text.upper().split() for item in word.split(","))


def _read_alike(
    ours: CronFields,
    expanded: Sequence[Sequence[Any]],
    counted: dict[int, set[Any]],
    day_match: DayMatch,
) -> bool:
    minute, hour, dom, month, dow = (
        _mask(values, full) for values, full in zip(expanded, _FULL, strict=True)
    )
    both = list(expanded[2]) != ["*"] and list(expanded[4]) != ["*"]
    if counted and both:
        return False  # its search joins `5#2` and a day of month by AND, whatever it is told
    if counted:
        dow = 0
        for day, which in counted.items():
            for nth in which:
                last = nth == "l"
                dow |= days.last_day_of_week(day) if last else days.nth_day_of_week(day, nth)
    either = both and day_match is DayMatch.OR
    return (minute, hour, dom, month, dow, either) == (
        ours.minute,
        ours.hour,
        ours.dom,
        ours.month,
        ours.dow,
        ours.either,
    )


def _mask(values: Sequence[Any], full: range) -> int:
    """The bits of a field; `*` is all of them, and `l` the last day of the month."""
    mask = 0
    for value in values:
        if value == "*":
            mask |= sum(1 << each for each in full)
        else:
            mask |= days.LAST_DAY_OF_MONTH if value == "l" else 1 << value
    return mask
