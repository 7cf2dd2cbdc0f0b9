"""Looks for what is wrong with a file and the rows in it. SQLite proves that its pages hold
together; what a flipped bit made of a value it cannot tell, so the values are looked at too.

Not guaranteed: that a value that may be right is right.
"""

import sqlite3
from collections.abc import Iterator

from evenkeel.ledger.ranges import Fits, fits, last_of
from evenkeel.ledger.rows import SpanRow
from evenkeel.ledger.sqlite.columns import span_of
from evenkeel.ledger.sqlite.migrate import SQL

MOST = 20
"""Sentences of one kind."""

_SENTENCES = {
    "orphans": "the {0} at {2} is of no schedule (number {1})",
    "bad_runs": "{0}: the run {1} at {2} cannot be: its state is {3}",
    "bad_spans": "{0}: the range row {1} at {2} ends before it begins, or cannot be read",
    "stale": "{0}: the run {1} at {2} is deferred, and has ended",
    "bad_deferred": "{0}: the run {1} at {2} is deferred, and its state is {3}",
}


def check(connection: sqlite3.Connection) -> list[str]:
    """A sentence for each thing that is wrong, up to a few of each kind."""
    wrong = [
        f"the file: {text}" for (text,) in connection.execute(SQL["integrity"]) if text != "ok"
    ]
    for name, sentence in _SENTENCES.items():
        found = connection.execute(SQL[name], {"limit": MOST})
        wrong += [sentence.format(*row) for row in found]
    return wrong + list(_overlaps(connection))


def _overlaps(connection: sqlite3.Connection) -> Iterator[str]:
    """Verdicts of one schedule that overlap."""
    count = 0
    before: list[SpanRow] = []
    for uid, *own in connection.execute(SQL["overlaps"]):
        span = span_of(uid, *own)
        before = [one for one in before if one.uid == uid and last_of(one) >= span.first]
        for one in before:
            if count < MOST and fits(span, [one]) is Fits.REFUSED:
                count += 1
                yield f"{span.key}: the range rows at {one.first} and {span.first} overlap"
        before.append(span)
