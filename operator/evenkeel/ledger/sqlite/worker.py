"""Threads of the store's own that do one job after another: SQLite blocks, and the event loop must
not.

A job that takes too long, or that nobody waits for any more, is given up: if it waits, it never
begins; if it runs, its statement is interrupted and its transaction undone, unless the commit has
begun. The threads are daemons: a disk that hangs does not keep the process from ending.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from evenkeel.ledger.store import StoreAway

T = TypeVar("T")


class GivenUpError(Exception):
    """Nobody waits for this job any more."""


class Job:
    """What one call wants done."""

    def __init__(self, work: Callable[["Job"], Any]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self._loop.create_future()
        self._lock = threading.Lock()
        self._given_up = False
        self._connection: sqlite3.Connection | None = None

    def use(self, connection: sqlite3.Connection) -> None:
        """From now on giving up interrupts this connection."""
        with self._lock:
            self._go_on()
            self._connection = connection

    def let_go(self) -> None:
        """From now on giving up interrupts nothing: the next job may use the connection, or the
        commit has begun and what becomes of it must not be left open."""
        with self._lock:
            self._connection = None

    def commit(self) -> None:
        """Call before a commit: what was given up must not be written."""
        with self._lock:
            self._go_on()
            self._connection = None

    def _go_on(self) -> None:
        if self._given_up:
            raise GivenUpError

    def give_up(self) -> None:
        with self._lock:
            self._given_up = True
            if self._connection is not None:
                self._connection.interrupt()

    def do(self) -> None:
        """In the worker's thread."""
        answer: Any = None
        error: BaseException | None = None
        try:
            with self._lock:
                self._go_on()
            answer = self._work(self)
        except BaseException as raised:  # noqa: BLE001 - whoever waits is told
            error = raised
        finally:
            self.let_go()
        try:
            self._loop.call_soon_threadsafe(self._tell, answer, error)
        except RuntimeError:
            return  # the loop has ended, and with it whoever waited

    def _tell(self, answer: object, error: BaseException | None) -> None:
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(answer)
        else:
            self.answer.set_exception(error)


class Workers:
    """Threads that share one queue."""

    def __init__(self, name: str, count: int) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.do()
            del job  # an answer may be large, and the next job far away

    async def call(self, work: Callable[[Job], T], within_s: float) -> T:
        """Have a job done. StoreAway: it took too long."""
        job = Job(work)
        self._jobs.put(job)
        try:
            async with asyncio.timeout(within_s):
                answer: T = await job.answer
                return answer
        except TimeoutError as error:
            raise StoreAway(f"no answer within {within_s:g} s") from error
        finally:
            job.give_up()

    def stop(self) -> None:
        """The threads end after the jobs that are waiting."""
        for _ in self._threads:
            self._jobs.put(None)
