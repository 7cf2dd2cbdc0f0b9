"""Who may read: what the API server says is kept, and a flood of tokens costs it little."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from evenkeel.web.access import ALLOWED_S, REFUSED_S, REMEMBERED, UNKNOWN_A_SECOND, Access, Decision


class Cluster:
    """An API server that knows one token, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.says: dict[str, Decision] = {"prometheus": Decision.ALLOWED, "ann": Decision.REFUSED}
        self.asked: Counter[str] = Counter()
        self.access = Access(self._review, monotonic=lambda: self.now)

    async def _review(self, token: str) -> Decision:
        self.asked[token] += 1
        return self.says.get(token, Decision.UNKNOWN)

    def ask(self, token: str) -> Decision:
        return asyncio.run(self.access.ask(token))


def test_a_yes_is_kept_for_a_minute_and_then_asked_again() -> None:
    cluster = Cluster()
    for _ in range(3):
        assert cluster.ask("prometheus") is Decision.ALLOWED
    cluster.now += ALLOWED_S - 0.1
    cluster.ask("prometheus")
    assert cluster.asked["prometheus"] == 1
    cluster.now += 0.2
    cluster.says["prometheus"] = Decision.REFUSED
    assert cluster.ask("prometheus") is Decision.REFUSED


@pytest.mark.parametrize(
    ("token", "said"), [("ann", Decision.REFUSED), ("nobody", Decision.UNKNOWN)]
)
def test_a_no_is_kept_for_seconds(token: str, said: Decision) -> None:
    cluster = Cluster()
    assert [cluster.ask(token), cluster.ask(token)] == [said, said]
    assert cluster.asked[token] == 1
    cluster.now += REFUSED_S
    cluster.says[token] = Decision.ALLOWED
    assert cluster.ask(token) is Decision.ALLOWED


def test_an_api_server_that_is_away_is_asked_again_at_once() -> None:
    cluster = Cluster()
    cluster.says["prometheus"] = Decision.AWAY
    assert cluster.ask("prometheus") is Decision.AWAY
    cluster.says["prometheus"] = Decision.ALLOWED
    assert cluster.ask("prometheus") is Decision.ALLOWED


def test_a_flood_of_tokens_is_turned_away_and_keeps_nobody_out_who_was_allowed() -> None:
    cluster = Cluster()
    assert cluster.ask("prometheus") is Decision.ALLOWED
    cluster.now += ALLOWED_S + 1
    answers = Counter(cluster.ask(f"guess {number}") for number in range(500))
    assert answers[Decision.BUSY] == 500 - UNKNOWN_A_SECOND
    assert cluster.ask("prometheus") is Decision.ALLOWED
    assert cluster.asked["prometheus"] == 2
    cluster.now += 1
    assert cluster.ask("one more") is Decision.UNKNOWN


def test_what_is_remembered_is_bounded_and_holds_no_token() -> None:
    cluster = Cluster()
    for number in range(REMEMBERED + 50):
        cluster.now += 1
        cluster.ask(f"guess {number}")
    assert len(cluster.access._refused) == REMEMBERED
    assert "guess" not in repr(vars(cluster.access))
