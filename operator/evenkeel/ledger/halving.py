"""Finds the rows that a store refuses: a refused part of a batch is halved until the bad row stands
alone. Stores call it; it writes nothing itself, so one that waits and one that does not can."""

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

Row = TypeVar("Row")


class Halving(Generic[Row]):
    """Iterate over the parts of a batch in their order; call `refused` for one that was refused.

    for part in (halving := Halving(rows)):
        try: write(part)
        except Refused: halving.refused(part)
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._ahead: list[Sequence[Row]] = [rows] if rows else []
        self.bad: list[Row] = []
        """Rows that were refused alone."""

    def __iter__(self) -> Iterator[Sequence[Row]]:
        while self._ahead:
            yield self._ahead.pop()

    def refused(self, part: Sequence[Row]) -> None:
        """The store refused this part, and nothing of it is written."""
        if len(part) == 1:
            self.bad += part
            return
        middle = len(part) // 2
        self._ahead += [part[middle:], part[:middle]]
