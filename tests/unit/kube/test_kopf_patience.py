"""Kopf must outlast any outage of the API server: it ends the process when it gives up."""

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
