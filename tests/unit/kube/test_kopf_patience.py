"""Kopf must outlast any outage of the API server: it ends the process when it gives up. Nor may it
wait for ever for a server that fell silent."""

import itertools
from collections.abc import Sized

from evenkeel.kube.watch import _settings


def test_kopf_tries_for_ever_and_soon_enough() -> None:
    pauses = _settings().networking.error_backoffs

    assert not isinstance(pauses, Sized), "kopf counts them, and stops after the last"
    for _ in range(2):  # every request begins anew
        first = list(itertools.islice(pauses, 10_000))
        assert len(first) == 10_000
        assert max(first) <= 5


def test_a_watch_that_fell_silent_is_given_up_soon_after_a_bookmark_is_missed() -> None:
    assert 60 < _settings().watching.inactivity_timeout <= 90
