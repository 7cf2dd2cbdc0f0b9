"""What is said while the store is away, and when it is tried again. `sync` calls it."""

import traceback
from enum import StrEnum

from evenkeel.clock import Clock
from evenkeel.errors import EvenkeelError
from evenkeel.ledger.store import BadStore, OlderTerm, StoreAway
from evenkeel.log import log

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
SAID_EVERY_S = 60.0
"""One line a minute: a store that is away must not fill a disk."""


class ErrorKind(StrEnum):
    """Why a call of the store failed, for the metric."""

    AWAY = "away"
    OLDER_TERM = "older_term"
    BAD_STORE = "bad_store"
    DEFECT = "defect"
    """Of the store's code."""


def kind_of(error: Exception) -> ErrorKind:
    """How the metric counts an error of a store."""
    match error:
        case StoreAway() | TimeoutError():
            return ErrorKind.AWAY
        case OlderTerm():
            return ErrorKind.OLDER_TERM
        case BadStore():
            return ErrorKind.BAD_STORE
        case _:
            return ErrorKind.DEFECT


class Trouble:
    """Since when the store has been away."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_m: float | None = None
        self._said_m = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._dropped = 0
        self._term_said_m = float("-inf")

    @property
    def is_on(self) -> bool:
        """Whether the store is away."""
        return self._since_m is not None

    def begin(self, error: Exception, *, waiting: int, dropped: int) -> float:
        """A call failed. How long to wait before the next try."""
        now_m = self._clock.monotonic()
        if self._since_m is None:
            self._since_m, self._dropped = now_m, dropped
            self._say("ledger away", error, now_m, waiting=waiting, dropped=0)
        elif now_m - self._said_m >= SAID_EVERY_S:
            lost = dropped - self._dropped
            self._say("ledger still away", error, now_m, waiting=waiting, dropped=lost)
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, LONGEST_PAUSE_S)
        return pause_s

    def end(self, *, waiting: int, dropped: int) -> None:
        """A call was answered."""
        if self._since_m is None:
            return
        log(
            "ledger back",
            away_s=round(self._clock.monotonic() - self._since_m),
            waiting_rows=waiting,
            dropped_rows=dropped - self._dropped,
        )
        self._since_m, self._pause_s = None, FIRST_PAUSE_S

    def lose_term(self, error: OlderTerm) -> None:
        """Another operator writes to the store, perhaps after each batch of this one."""
        now_m = self._clock.monotonic()
        if now_m - self._term_said_m >= SAID_EVERY_S:
            self._term_said_m = now_m
            log("another operator writes to this ledger", level="error", error=str(error))

    def _say(
        self, event: str, error: Exception, now_m: float, *, waiting: int, dropped: int
    ) -> None:
        self._said_m = now_m
        log(
            event,
            level="error",
            error=sentence(error),
            runs="go on",
            waiting_rows=waiting,
            dropped_rows=dropped,
        )


def sentence(error: Exception) -> str:
    """The text of an error that is none of ours may hold a URL with its password."""
    if isinstance(error, EvenkeelError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
