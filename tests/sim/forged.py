"""A status as a hostile tenant writes it: whatever the schema takes, and the core never left.

Each part is a patch of its own, so that one which the schema refuses does not save the operator
from the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tests.sim.server import Json

from evenkeel import rfc3339

DAY_S = 86_400

AHEAD_AND_BEHIND = (-60 * DAY_S, -3_700, -600, -10, 0, 10, 3_600, 80_000, 365 * DAY_S)
"""Seconds from now."""

STATES = ("pending", "retrying", "running", "scheduled", "failed", "succeeded", "purple")
REASONS = ("held", "queued", "launching", "unannounced", "Retrying", "")
ATTEMPTS = (0, 1, 2, 21, 2**53)


def parts(rng: Random, now: float) -> Iterator[Json]:
    """Patches of a status, one after another."""

    def moment() -> str:
        return rfc3339.show(int(now) + rng.choice(AHEAD_AND_BEHIND) + rng.choice((0, 0, 7)))

    dues = sorted({moment() for _ in range(rng.choice((2, 8, 30)))})
    recent = [_row(rng, due, moment()) for due in dues[:10]]
    candidates: list[Json] = [
        _kept("mark", moment()),
        {"recent": recent},
        _waiting(rng, dues),
        {"conditions": [_condition(n, moment()) for n in range(rng.choice((1, 16, 20)))]},
        {"counts": dict.fromkeys(("succeeded", "failed", "lost"), rng.choice((-5, 2**53)))},
        {"consecutiveFailures": rng.choice((-1, 5, 2**63 - 1))},
        _active_count(rng.choice((-1, 49, 2**53))),
        {"active": [{"name": f"nobody-{n}", "namespace": "other"} for n in range(50)]},
        {"pause": {"since": moment(), "by": "nobody", "reason": "x" * 2_000}},
        {"placement": _placement(rng, moment)},
        _kept("suspendedSince", moment()),
        _kept("resumedAt", moment()),
        _kept("timing", {"hash": "0", "since": moment(), "fields": _fields(rng)}),
        _kept("templateHash", "0" * 5_000),
        {"internal": {"durations": [rng.choice((-1, 0, 2**53))] * rng.choice((1, 10))}},
        {key: moment() for key in ("lastScheduleTime", "lastSuccessfulTime", "countsSince")},
    ]
    yield from rng.sample(candidates, rng.randint(3, len(candidates)))


def _active_count(count: int) -> Json:
    return {"activeCount": count, "internal": {"unnamedActive": count}}


def _kept(name: str, value: Any) -> Json:
    """What the operator keeps for itself, where it is and where it is to be."""
    return {name: value, "internal": {name: value}}


def _waiting(rng: Random, dues: list[str]) -> Json:
    kinds = rng.choice((("s",), ("s", "q0abcdef"), ("s", "q0abcdef", "", "nonsense")))
    rows = [
        {
            "due": due,
            "kind": rng.choice(kinds),
            "attempt": rng.choice(ATTEMPTS),
            "reason": rng.choice(REASONS),
            "retryAt": rng.choice(dues),
        }
        for due in dues
    ]
    return {"waiting": rng.choice((rows, dues)), "internal": {"waiting": rows}}


def _row(rng: Random, due: str, finished: str) -> Json:
    return {
        "due": due,
        "state": rng.choice(STATES),
        "reason": rng.choice(REASONS),
        "attempt": rng.choice(ATTEMPTS),
        "started": due,
        "finished": finished,
        "job": rng.choice(("", "nobody")),
    }


def _condition(number: int, since: str) -> Json:
    return {
        "type": f"X{number}",
        "status": "True",
        "lastTransitionTime": since,
        "reason": "Foreign",
        "message": "somebody else's",
    }


def _placement(rng: Random, moment: Any) -> Json:
    return {
        "anchor": moment(),
        "placedAt": moment(),
        "every": rng.choice(("10s", "20s", "1s", "99999999999s", "-5s", "soon")),
        "slot": rng.choice(("10:00", "99:99", "")),
        "weight": rng.choice((-1, 2**53)),
        "load": 1e300,
        "expectedSeconds": rng.choice((-1, 0, 2**53)),
    }


def _fields(rng: Random) -> Json:
    return rng.choice(
        (
            {},
            {"schedule": "* * * * *", "timeZone": "Mars/Phobos"},
            {"schedule": "31 31 31 31 31"},
            {"interval": {"every": "1s", "offset": "0s"}},
            {"interval": {"every": "0s", "offset": "0s"}},
            {"at": "9999-12-31T23:59:59Z"},
            {"hourly": {"minute": 2**53}},
        )
    )
