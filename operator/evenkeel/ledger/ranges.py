"""Which range rows may stand beside each other. All stores ask here. Pure."""

import enum
from collections.abc import Iterable

from evenkeel.ledger.rows import UNRECORDED, Range, SpanRow
from evenkeel.model import ENDED, Instant

OPEN_LAST: Instant = (1 << 62) - 1
"""Where an open range row stands among the others: after all that has an end."""


COUNTED = frozenset({*ENDED, UNRECORDED})
"""What a range row may count: a run without an end has a row of its own."""


def last_of(span: SpanRow) -> Instant:
    """The last instant of a range row."""
    return OPEN_LAST if span.end is None else span.end - 1


def is_unrecorded(span: SpanRow) -> bool:
    """Nobody knows what became of these due times."""
    return span.counts.keys() == {UNRECORDED}


class Fits(enum.Enum):
    """What becomes of a new VERDICT row."""

    NEW = "new"
    STORED = "stored"
    REFUSED = "refused"


def fits(new: SpanRow, verdicts: Iterable[SpanRow]) -> Fits:
    """Whether a VERDICT row fits among those of its schedule that overlap it.

    Verdicts never overlap. An unrecorded row and a verdict may: which of their due times are meant
    is not known."""
    answer = Fits.NEW
    for one in verdicts:
        if (one.first, one.end, one.reason) == (new.first, new.end, new.reason) and dict(
            one.counts
        ) == dict(new.counts):
            return Fits.STORED
        same_place = (one.first, one.reason) == (new.first, new.reason)
        if same_place or is_unrecorded(one) == is_unrecorded(new):
            answer = Fits.REFUSED
    return answer


def overlap(one: SpanRow, other: SpanRow) -> bool:
    """Whether two range rows share an instant."""
    return one.first <= last_of(other) and other.first <= last_of(one)


def widen(first: Instant, end: Instant, spans: Iterable[SpanRow]) -> tuple[Instant, Instant]:
    """The asked time, so that it cuts none of these rows that is not open; it may then touch
    others."""
    for span in spans:
        if span.kind is not Range.OPEN and span.end is not None:
            first, end = min(first, span.first), max(end, span.end)
    return first, end
