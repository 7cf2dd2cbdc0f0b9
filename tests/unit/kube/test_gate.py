"""Whom a 429 or a 503 closes: its namespace, or all."""

import pytest
from tests.unit.kube.scripted import status, virtually

from evenkeel import clock as clocks
from evenkeel.kube.api import Reply
from evenkeel.kube.gate import RETRY_AFTER_S, Gate

DENIED = 'admission webhook "tenant.example" denied the request: slow down'
PLAIN = Reply(429, b"Too many requests, please try again later.", {"Retry-After": "9"})


def closed(*heard, what="creates", ns="one"):
    """For how long, after these answers to creates, each by namespace."""
    found = []

    async def scenario(clock):
        gate = Gate(clock)
        for where, reply in heard:
            gate.heed("creates", where, reply)
        found.append(gate.closed_s(what, ns))
        await clocks.sleep(found[0])
        assert gate.closed_s(what, ns) == 0

    virtually(scenario)
    return pytest.approx(found[0])


def wait(code, message="", seconds=9):
    return status(code, "", message, **({"Retry-After": str(seconds)} if seconds else {}))


def test_a_webhook_closes_its_namespace_for_what_it_has_denied():
    denied = ("one", wait(429, DENIED))
    assert closed(denied) == 9
    assert closed(denied, ns="other") == 0
    assert closed(denied, what="statuses") == 0


def test_webhooks_never_close_all_however_many_namespaces_have_one():
    heard = [(f"ns-{n}", wait(429, DENIED)) for n in range(5)]
    assert closed(*heard, ns="other") == 0


def test_a_webhook_that_mentions_another_one_in_its_own_words_is_still_one():
    denied = wait(429, f"{DENIED}: Too many requests, please try again later.")
    assert closed(("one", denied), ("two", denied), ns="other") == 0


def test_the_api_servers_own_limit_closes_all():
    assert closed(("one", PLAIN), ns="other") == 9
    assert closed(("one", PLAIN), what="statuses", ns="other") == 9


@pytest.mark.parametrize("code", [429, 503])
def test_of_what_nobody_is_named_for_two_namespaces_must_hear(code):
    assert closed(("one", wait(code)), ns="other") == 0
    assert closed(("one", wait(code)), ("one", wait(code)), ns="other") == 0
    assert closed(("one", wait(code)), ("two", wait(code)), ns="other") == 9


def test_without_retry_after_a_429_is_a_second_and_a_503_a_failure_like_any_other():
    assert closed(("one", wait(429, seconds=0))) == RETRY_AFTER_S
    assert closed(("one", wait(503, seconds=0))) == 0


def test_a_shorter_pause_does_not_end_a_longer_one():
    assert closed(("one", wait(429, DENIED, 20)), ("one", wait(429, DENIED, 2))) == 20


def test_other_answers_close_nothing():
    assert closed(("one", wait(500)), ("one", status(403, "Forbidden", DENIED))) == 0
