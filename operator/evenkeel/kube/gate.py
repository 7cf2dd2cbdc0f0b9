"""Who must pause because a server has said so: one namespace, or all of them.

One gate stands before all requests: creates, statuses, errands and Events tell it each answer that
they get, and ask it before they send. A namespace's own admission webhook can answer 429 as well
as the API server can, so a namespace must not be believed on behalf of others. The gate sends
nothing and wakes nobody.
"""

from evenkeel.clock import Clock
from evenkeel.kube.api import Reply

RETRY_AFTER_S = 1.0
"""After a 429 that does not say how long."""

WEBHOOK = 'admission webhook "'
"""So the API server begins the message of whatever a webhook has denied. What follows is the
webhook's own text, and proves nothing."""


class Gate:
    """Open, closed for some namespaces, or closed for all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._all_until = 0.0
        self._until: dict[tuple[str, str], float] = {}
        """By what is sent, and namespace: a webhook on Jobs says nothing of statuses."""
        self._in_doubt: dict[str, float] = {}
        """Namespaces that were told to pause, and it is not known by whom."""

    def heed(self, what: str, ns: str, reply: Reply) -> None:
        """Close as the answer to a request says. `what` was sent, to this namespace."""
        if reply.status not in (429, 503):
            return
        by_webhook = reply.from_api_server and reply.message.startswith(WEBHOOK)
        pause_s = reply.retry_after_s
        if not pause_s:
            if reply.status == 503 and not by_webhook:
                return  # a failure like any other
            pause_s = RETRY_AFTER_S
        now = self._clock.monotonic()
        until = now + pause_s
        if reply.status == 429 and not reply.from_api_server:
            # In plain text: the API server's own limits, which speak of all that we send.
            self._all_until = max(self._all_until, until)
            return
        lane = what, ns
        self._until = {key: at for key, at in self._until.items() if at > now}
        self._until[lane] = max(self._until.get(lane, 0.0), until)
        if by_webhook:
            return
        self._in_doubt = {other: at for other, at in self._in_doubt.items() if at > now}
        if self._in_doubt.keys() - {ns}:
            self._all_until = max(self._all_until, until)
        self._in_doubt[ns] = max(self._in_doubt.get(ns, 0.0), until)

    def closed_s(self, what: str, ns: str) -> float:
        """For how long nothing of this kind may be sent to this namespace; 0: it may."""
        until = max(self._all_until, self._until.get((what, ns), 0.0))
        return max(0.0, until - self._clock.monotonic())
