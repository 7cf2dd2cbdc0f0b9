"""Counts are withheld until Prometheus has seen the counters at 0, and not for ever."""

import pytest

from evenkeel.web.counts import AFTER_READY_S, AFTER_SCRAPE_S, Counts

MISSED = ("missed", "superseded")


class Machine:
    """A clock and counts on it."""

    def __init__(self) -> None:
        self.now = 50.0
        self.counts = Counts(monotonic=lambda: self.now)

    def seen(self) -> tuple[float, float]:
        """What a scrape shows: counted, and not yet counted."""
        return self.counts.shown(MISSED), self.counts.withheld("missed")


def test_what_was_missed_before_the_first_scrape_is_counted_after_it() -> None:
    machine = Machine()
    machine.counts.add(MISSED, 29)
    machine.counts.became_ready()
    machine.now += 20
    assert machine.seen() == (0, 29)
    machine.counts.was_scraped()
    machine.now += AFTER_SCRAPE_S - 0.1
    assert machine.seen() == (0, 29)
    machine.now += 0.2
    assert machine.seen() == (29, 0)


def test_without_a_scrape_it_is_counted_minutes_after_the_operator_is_ready() -> None:
    machine = Machine()
    machine.counts.add(MISSED, 29)
    machine.now += 10 * AFTER_READY_S  # a start that takes long, an API server that is away
    assert machine.seen() == (0, 29)
    machine.counts.became_ready()
    machine.now += AFTER_READY_S - 1
    assert machine.seen() == (0, 29)
    machine.now += 2
    assert machine.seen() == (29, 0)


def test_a_scrape_before_the_operator_is_ready_counts_as_the_first() -> None:
    machine = Machine()
    machine.counts.was_scraped()
    machine.now += AFTER_SCRAPE_S + 60
    machine.counts.add(MISSED)
    machine.counts.became_ready()
    assert machine.seen() == (1, 0)


def test_later_scrapes_withhold_nothing() -> None:
    machine = Machine()
    machine.counts.was_scraped()
    for _ in range(3):
        machine.now += AFTER_SCRAPE_S
        machine.counts.was_scraped()
        machine.counts.add(MISSED)
    assert machine.seen() == (3, 0)


@pytest.mark.parametrize("is_open", [False, True])
def test_what_is_forgotten_is_counted_nowhere(is_open: bool) -> None:
    machine = Machine()
    machine.counts.add(("namespace", "shop", "failed"), 2)
    if is_open:
        machine.counts.was_scraped()
        machine.now += AFTER_SCRAPE_S
    assert machine.counts.keys("namespace") == {("namespace", "shop", "failed")}
    machine.counts.forget([("namespace", "shop", "failed")])
    assert machine.counts.keys("namespace") == set()
    assert machine.counts.shown(("namespace", "shop", "failed")) == 0
