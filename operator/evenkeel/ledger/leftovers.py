"""Ends the rows of requested runs that an earlier process left unfinished, and that nobody follows
any more. `sync` calls it. (Runs by schedule are ended by `reconcile`.)

The rows are read once, when the store is first there. A run of which the scheduler tells something
is followed. Of the others the status of their request may tell the end, or that they are alive. The
rest is lost; but a run for later never began, and is cancelled if its request is gone.

Not guaranteed: that the rows of a store that is put in place of another one are looked at before
the next start.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from evenkeel.clock import Clock
from evenkeel.core.effects import RequestKnown
from evenkeel.ledger.outbox import Outbox, Teller
from evenkeel.ledger.reconcile import ATTEMPT_AS_STORED, row_of_recent
from evenkeel.ledger.rows import RunQuery, RunRow
from evenkeel.ledger.store import RunStore
from evenkeel.log import log
from evenkeel.model import BY_SCHEDULE, ENDED, RunId, RunState
from evenkeel.reasons import Reason

PAGE = 1000
_UNFINISHED = frozenset(RunState) - ENDED


class Leftovers:
    """Of one process."""

    def __init__(
        self,
        outbox: Outbox,
        clock: Clock,
        *,
        requests: Callable[[], Collection[str] | None],
        launched: Callable[[], Iterable[tuple[RunId, int]]],
        observe: Callable[[str, float], object],
    ) -> None:
        """`requests`: the kinds of all requests that exist; None: they are not known yet.
        `launched`: runs whose Job exists."""
        self._outbox = outbox
        self._clock = clock
        self._requests = requests
        self._launched = launched
        self._observe = observe
        self._keys: dict[RunId, str] | None = None
        """The runs, each with `namespace/name` of its schedule; None: they were not read yet."""
        self._seen: set[RunId] = set()
        """Runs that the scheduler has told of before the rows were read: rows of this process may
        be among them."""
        self._known: dict[Teller, RequestKnown] = {}

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {"runs left over": len(self._keys or ()), "requests known": len(self._known)}

    def see(self, run: RunId) -> None:
        """The scheduler has told something of this run."""
        if self._keys is None:
            self._seen.add(run)
        elif self._keys and self._keys.pop(run, None) is not None and not self._keys:
            self._known.clear()

    def know(self, known: RequestKnown) -> None:
        """What the status of a request told at the start: the ends that it names are written, and
        those that have rows already are the same."""
        teller = Teller(known.uid, known.kind)
        for recent in known.recent:
            if recent.state in ENDED:
                run = RunId(known.uid, recent.due, known.kind)
                row = replace(row_of_recent(run, known.key, recent), request=known.name)
                self._outbox.hold(teller, row, revision=0, now_m=self._clock.monotonic())
        if self._keys is None or any(_asked_by(run, known) for run in self._keys):
            self._known[teller] = known

    def forget(self, uid: str) -> None:
        """A schedule was deleted, and the store ends its rows."""
        for run in [run for run in self._keys or () if run.uid == uid]:
            self.see(run)

    async def start(self, store: RunStore) -> None:
        """Read the rows, once."""
        if self._keys is not None:
            return
        found: dict[RunId, str] = {}
        cursor = ""
        while True:
            query = RunQuery(states=_UNFINISHED, ranges=False, limit=PAGE, cursor=cursor)
            page = await store.runs(query)
            for row in page.items:
                if isinstance(row, RunRow) and row.run.kind != BY_SCHEDULE:
                    found[row.run] = row.key
            if not (cursor := page.next):
                break
        told = {write.run for write in self._outbox.all_rows() if isinstance(write, RunRow)}
        self._keys = {
            run: key for run, key in found.items() if run not in told and run not in self._seen
        }
        self._seen.clear()
        self._forget_known()

    async def end_some(self, store: RunStore) -> None:
        """End those of which it is known by now what became of them. Called once all Jobs and all
        schedules are known."""
        if not self._keys or (kinds := self._requests()) is None:
            return
        decided = [
            run for run in self._keys if self._told_of(run) is not None or run.kind not in kinds
        ]
        if not decided:
            return
        states = await store.states(decided)
        launched = {run for run, _ in self._launched()}
        rows = []
        for run in decided:
            key, state = self._keys.pop(run, None), states.get(run)
            if key is None or state is None or state in ENDED or run in launched:
                continue  # somebody has told of it meanwhile, or will
            if (row := self._end(run, key, state)) is not None:
                rows.append(row)
        self._forget_known()
        for row in rows:
            teller = Teller(row.run.uid, row.run.kind)
            self._outbox.hold(teller, row, revision=0, now_m=self._clock.monotonic())
        if rows:
            self._observe("ledger_reconciled", len(rows))
            log("requested runs of an earlier process ended", count=len(rows))

    def _end(self, run: RunId, key: str, state: RunState) -> RunRow | None:
        """How a run ended; None: it did not, or its end is written already."""
        known = self._told_of(run)
        if known is not None:
            told = {recent.due for recent in known.recent if recent.state in ENDED}
            if run in known.alive or run.due in told:
                return None
        if state is not RunState.SCHEDULED:
            lost, why = RunState.LOST, Reason.OUTCOME_UNKNOWN
        elif known is None:
            lost, why = RunState.CANCELLED, Reason.REQUEST_DELETED
        else:
            return None
        return RunRow(run, key, lost, why, attempt=ATTEMPT_AS_STORED)

    def _told_of(self, run: RunId) -> RequestKnown | None:
        return self._known.get(Teller(run.uid, run.kind))

    def _forget_known(self) -> None:
        assert self._keys is not None
        needed = {Teller(run.uid, run.kind) for run in self._keys}
        self._known = {each: known for each, known in self._known.items() if each in needed}


def _asked_by(run: RunId, known: RequestKnown) -> bool:
    return (run.uid, run.kind) == (known.uid, known.kind)
