"""Counts that Prometheus must see at 0 before they grow.

A counter that is above 0 when Prometheus sees it first has no increase: what was missed while the
operator was down, and is counted at its start, would never raise an alert. So counts are withheld
until a few seconds after the first scrape was answered. Without a scrape they are shown some
minutes after the operator is ready. `Metrics` feeds and shows them. Not guaranteed: that a second
Prometheus, whose first scrape comes later, sees the increase.
"""

from collections.abc import Callable, Iterable

AFTER_SCRAPE_S = 5.0
"""Of two Prometheus servers the second scrapes a little later, and should see the 0 as well."""

AFTER_READY_S = 300.0
"""Where nobody has scraped for so long, nobody waits for an increase."""

Key = tuple[str, ...]
"""The name of a family and the values of its labels."""


class Counts:
    """Numbers by key, withheld at first and shown later. A key that was never added to shows 0."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._open_m = float("inf")
        self._shown: dict[Key, float] = {}
        self._withheld: dict[Key, float] = {}

    def became_ready(self) -> None:
        """Schedules and Jobs are listed: from now on the operator counts what is missed."""
        self._open_m = min(self._open_m, self._monotonic() + AFTER_READY_S)

    def was_scraped(self) -> None:
        """A scrape has been answered."""
        self._open_m = min(self._open_m, self._monotonic() + AFTER_SCRAPE_S)

    def add(self, key: Key, number: float = 1) -> None:
        """Count so many more."""
        self._withheld[key] = self._withheld.get(key, 0) + number
        self._show()

    def shown(self, key: Key) -> float:
        """The number that a scrape may see."""
        self._show()
        return self._shown.get(key, 0)

    def withheld(self, family: str) -> float:
        """How many of a family are not shown yet."""
        self._show()
        return sum(number for key, number in self._withheld.items() if key[0] == family)

    def forget(self, keys: Iterable[Key]) -> None:
        """What these keys counted is gone."""
        for key in list(keys):
            self._shown.pop(key, None)
            self._withheld.pop(key, None)

    def keys(self, family: str) -> set[Key]:
        """All keys of a family that were ever added to."""
        return {key for key in (*self._shown, *self._withheld) if key[0] == family}

    def _show(self) -> None:
        if self._withheld and self._monotonic() >= self._open_m:
            for key, number in self._withheld.items():
                self._shown[key] = self._shown.get(key, 0) + number
            self._withheld.clear()
