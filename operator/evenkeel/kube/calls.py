"""Small calls to the API server: no launch waits for them. They wait for creates and their turn.

Errands, of schedules and of requests, send their calls through one of these each.
"""

from typing import Any

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.kube.api import Api, NoAnswer, NotSent, Reply
from evenkeel.kube.gate import Gate
from evenkeel.kube.places import Places
from evenkeel.kube.tasks import Busy

PATIENCE_S = 20.0
"""So long errands wait for creates to be sent."""

BUSY_PAUSE_S = 0.05

IN_FLIGHT, KEPT, STUCK, OLD_IN_ALL = 6, 2, 2, 16
"""See `Places`."""


class Calls:
    """Runs on the scheduler's loop."""

    def __init__(self, api: Api, clock: Clock, *, what: str, busy: Busy, gate: Gate | None) -> None:
        """`what` is sent: see `Gate`."""
        self._api = api
        self._clock = clock
        self._what = what
        self._busy = busy
        self._gate = gate or Gate(clock)
        self._places = Places(IN_FLIGHT, kept=KEPT, stuck=STUCK, old_in_all=OLD_IN_ALL)

    async def call(
        self,
        ns: str,
        verb: str,
        path: str,
        *,
        patience_s: float = PATIENCE_S,
        places: Places | None = None,
        **more: Any,
    ) -> Reply | None:
        """One call to a namespace; None: no answer. `places`: others than those of these calls."""
        patience = self._clock.monotonic() + patience_s
        while self._busy() and self._clock.monotonic() < patience:
            await clock.sleep(BUSY_PAUSE_S)
        while closed_s := self._gate.closed_s(self._what, ns):
            await clock.sleep(closed_s)
        try:
            async with (places or self._places).hold(ns):
                reply = await self._api.call(verb, path, **more)
        except (NotSent, NoAnswer):
            return None
        self._gate.heed(self._what, ns, reply)
        return reply
