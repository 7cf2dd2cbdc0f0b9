"""Lists and watches one kind of object, for ever: Jobs, and in the simulator schedules too.

After any fault it watches on from where it was or lists again, so that the listener learns how
things stand; no more often than once a second on average. A watch that is silent is given up,
however its connection died. Not every change is seen: several changes between a broken watch and
the next list arrive as one, and only the list tells of deletions meanwhile.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import orjson

from evenkeel import clock
from evenkeel.kube.api import SILENCE_S, Api, NoAnswer, NotSent, Reply
from evenkeel.model import WatchRestart

PAGE = 500
"""Objects a page: a 16 MB list in one piece stopped the loop for half a second."""

PAUSE_S = 1.0
"""Between two tries, jittered; doubled with each that fails in a row."""

LONGEST_PAUSE_S = 30.0

WATCH_S = 300
"""The server ends a watch after this; the next one goes on from there."""


class Listener(Protocol):
    """What a reflector tells of the objects it follows."""

    def read(self, item: dict[str, Any]) -> Any:
        """What is needed of an object; None: nothing. Called for each page of a list: to read
        forty thousand Jobs at once would stop the loop for half a second."""

    def listed(self, found: list[Any], listed_at: float) -> None:
        """What was read of all objects, by a list that was asked for at `listed_at`."""

    def changed(self, kind: str, item: dict[str, Any]) -> None:
        """ADDED, MODIFIED or DELETED."""

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""


class Gone(Exception):
    """410: the version is too old, and a list is needed."""


class Unusable(Exception):
    """No list and no watch came of the request: a refusal, a proxy's page, a silent watch."""


class Reflector:
    """One kind of object, followed."""

    def __init__(
        self,
        api: Api,
        path: str,
        listener: Listener,
        *,
        now: Callable[[], float],
        params: Mapping[str, str] | None = None,
        on_restart: Callable[[WatchRestart, str], None] = lambda why, sentence: None,
    ) -> None:
        self._api = api
        self._path = path
        self.listener = listener
        self._now = now
        self._params = dict(params or {})
        self._on_restart = on_restart
        self._version = ""
        # Not the wall clock: one that is set forward would make every watch seem silent.
        self._time = asyncio.get_running_loop().time
        self._heard_at = self._answered_at = self._time()

    @property
    def silence_s(self) -> float:
        """Since a list or a line of a watch told something of the objects."""
        return self._time() - self._heard_at

    @property
    def unanswered_s(self) -> float:
        """Since the server said anything at all here, a refusal included."""
        return self._time() - self._answered_at

    def _hear(self) -> None:
        self._heard_at = self._answered_at = self._time()

    async def run(self) -> None:
        """Follow until cancelled."""
        pause_s = PAUSE_S
        began_at = ""
        while True:
            try:
                if not self._version:
                    await self._list()
                began_at = self._version
                await self._watch()
                if self._version == began_at:
                    # The API server tells at least its version before it ends a watch. A proxy that
                    # tells nothing may never tell anything: only a list does.
                    raise Unusable("a watch that told nothing")
                pause_s = PAUSE_S
                await clock.sleep(clock.jitter(PAUSE_S) / 5)
            except Gone:
                self._version = ""
                self._on_restart(WatchRestart.GONE, "the version it stood at is gone")
                await clock.sleep(clock.jitter(PAUSE_S))
            except (NotSent, NoAnswer, Unusable) as error:
                if self._version not in ("", began_at):
                    # The watch worked and was cut. After longer and longer pauses, a proxy that
                    # cuts it each minute would keep us from watching for half of the time.
                    pause_s = PAUSE_S
                # After a refusal a list: nothing says that a watch would tell what was missed.
                self._version = self._version if isinstance(error, NoAnswer) else ""
                self._on_restart(WatchRestart.BROKEN, str(error))
                await clock.sleep(clock.jitter(pause_s))
                pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _list(self) -> None:
        listed_at = self._now()
        found: list[Any] = []
        params = {**self._params, "limit": str(PAGE)}
        while True:
            reply = await self._api.call("GET", self._path, params=params)
            self._answered_at = self._time()
            page = _checked(reply).json()
            items = page.get("items") or ()
            found += [read for item in items if (read := self.listener.read(item)) is not None]
            metadata = page.get("metadata") or {}
            if not metadata.get("resourceVersion"):
                # A proxy's page with status 200, say: as an empty list it would end all runs.
                raise Unusable("not a list")
            if not metadata.get("continue"):
                break
            params["continue"] = metadata["continue"]
        self._hear()
        self.listener.listed(found, listed_at)
        self._version = metadata["resourceVersion"]

    async def _watch(self) -> None:
        params = {
            **self._params,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }
        began_at = self._version
        try:
            # A time-out of our own: a connection may die in ways that its client never notices,
            # and then no end of any Job would be seen again.
            async with asyncio.timeout(SILENCE_S) as silence:
                async with self._api.watch(self._path, params) as stream:
                    self._answered_at = self._time()
                    if stream.status != 200:
                        _checked(await stream.reply())
                    async for line in stream.lines():
                        self._hear()
                        silence.reschedule(self._time() + SILENCE_S)
                        self._take(line)
        except TimeoutError as error:
            sentence = f"a watch that was silent for {SILENCE_S:.0f} s"
            # One that never told anything may never do so: a list tells at least what there is.
            raise (Unusable if self._version == began_at else NoAnswer)(sentence) from error

    def _take(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            kind, item = event["type"], event["object"]
            if kind == "ERROR":  # in the stream, with status 200: often a 410
                if item.get("code") == 410:
                    raise Gone
                self._version = ""
                raise NoAnswer(str(item.get("message", "error in the watch")))
            self._version = item["metadata"]["resourceVersion"]
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise NoAnswer("half a line, or none of a watch") from error
        if kind != "BOOKMARK":
            self.listener.changed(kind, item)


def _checked(reply: Reply) -> Reply:
    if reply.status == 410:
        raise Gone
    if not reply.ok:
        raise Unusable(f"{reply.status} {reply.message}")
    return reply
