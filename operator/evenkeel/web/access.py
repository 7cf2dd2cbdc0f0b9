"""Who may read what names schedules: the API server decides, by the caller's own token.

Its answers are kept for a while, by a hash of the token; a token is neither stored nor logged. A
token that was never allowed costs the API server a request, so there are few of them a second,
whoever sends them. One that was allowed is asked about even then: a flood of wrong tokens must not
keep Prometheus out. `schedule_metrics` asks.
"""

import enum
import hashlib
from collections.abc import Awaitable, Callable

ALLOWED_S = 60.0
REFUSED_S = 5.0
"""How long an answer is kept. A right that was just given should not be waited for."""

UNKNOWN_A_SECOND = 20
"""Questions about tokens that were never allowed, of all callers together."""

REMEMBERED = 1_000
"""Tokens of each kind."""


class Decision(enum.Enum):
    """What becomes of a request."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The API server does not know the token."""
    BUSY = "busy"
    """Too many tokens that are not known."""
    AWAY = "away"
    """The API server does not answer."""


Review = Callable[[str], Awaitable[Decision]]
"""Asks the API server about a token: ALLOWED, REFUSED, UNKNOWN or AWAY."""


class Access:
    """Remembers what the API server said."""

    def __init__(self, review: Review, *, monotonic: Callable[[], float]) -> None:
        self._review = review
        self._monotonic = monotonic
        self._allowed: dict[bytes, float] = {}
        """Until when, by the token's hash, the one asked about last at the end. They stay beyond
        that time, as tokens that were allowed once."""
        self._refused: dict[bytes, tuple[Decision, float]] = {}
        self._second = 0
        self._asked = 0
        """In that second."""

    async def ask(self, token: str) -> Decision:
        """Whether the holder of this token may read."""
        key = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        now = self._monotonic()
        if key in self._allowed:
            if now < self._allowed[key]:
                return Decision.ALLOWED
        else:
            decision, until = self._refused.get(key, (Decision.AWAY, 0.0))
            if now < until:
                return decision
            if not self._may_ask_about_unknown(now):
                return Decision.BUSY
        decision = await self._review(token)
        self._remember(key, decision)
        return decision

    def _may_ask_about_unknown(self, now: float) -> bool:
        if int(now) != self._second:
            self._second, self._asked = int(now), 0
        self._asked += 1
        return self._asked <= UNKNOWN_A_SECOND

    def _remember(self, key: bytes, decision: Decision) -> None:
        now = self._monotonic()
        if decision is Decision.ALLOWED:
            self._allowed.pop(key, None)
            self._refused.pop(key, None)
            self._allowed[key] = now + ALLOWED_S
            _keep_newest(self._allowed)
        elif decision is not Decision.AWAY:  # nothing is known then
            self._allowed.pop(key, None)
            self._refused.pop(key, None)
            self._refused[key] = decision, now + REFUSED_S
            _keep_newest(self._refused)


def _keep_newest(
    kept: dict[bytes, object] | dict[bytes, float] | dict[bytes, tuple[Decision, float]],
) -> None:
    while len(kept) > REMEMBERED:
        del kept[next(iter(kept))]
