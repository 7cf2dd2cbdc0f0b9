"""Which launch begins next, and the places that its create holds.

Namespaces take turns, and creates in flight are bounded: see `Lanes` and `Places`. Launches that a
request asked for are a second tier: one of them begins only where no scheduled launch may. The
launcher keeps its waiting launches here. Not guaranteed: that a launch which is taken is wanted
still.
"""

from collections.abc import Callable, Iterator

from evenkeel.core.effects import Launch
from evenkeel.core.lanes import Lanes
from evenkeel.kube.gate import Gate
from evenkeel.kube.places import Place, Places

KEPT, SHARE_KEPT = 8, 6
"""So many creates more than `in_flight` are for namespaces that hold no place, or that part of
`in_flight` where it is less."""

STUCK = 4
"""Creates of one namespace while none of them comes back."""

OLD_IN_ALL = 96
"""Creates older than a second of all namespaces: each holds a connection."""

SHARE_REQUESTED = 4
"""Requested creates hold at most that part of `in_flight`: a herd that is due at the full hour
finds the other places free, however much is backfilled."""

FEW = 8
"""No more creates in flight than these are no herd."""

WHAT = "creates"


class LaunchQueue:
    """Runs on the scheduler's loop."""

    def __init__(self, in_flight: int, gate: Gate, *, freed: Callable[[], object]) -> None:
        """`freed` is told that another create may begin."""
        self._gate = gate
        self._scheduled: Lanes[Launch] = Lanes()
        self._requested: Lanes[Launch] = Lanes()
        self._places = Places(
            in_flight,
            kept=min(KEPT, in_flight // SHARE_KEPT),
            stuck=STUCK,
            old_in_all=OLD_IN_ALL,
            freed=freed,
        )
        self._requested_places = Places(
            max(1, in_flight // SHARE_REQUESTED),
            kept=0,
            stuck=STUCK,
            old_in_all=OLD_IN_ALL // SHARE_REQUESTED,
            freed=freed,
        )
        """A requested create holds one of these as well. None of them is kept for a namespace."""
        self.opens_s: float | None = None
        """When `take` found that launches wait for a namespace that is told to pause: for how long
        the first of these must."""

    def __len__(self) -> int:
        return len(self._scheduled) + len(self._requested)

    @property
    def busy(self) -> bool:
        """Creates wait for others, or the last of many are under way: whoever could wait should.
        Not those of a namespace that hangs or is told to pause: they may last for ever. Nor
        requested ones: a backfill may last for days."""
        scheduled = self._places.young - self._requested_places.young
        return scheduled > FEW or (bool(self._scheduled) and self._places.full)

    def push(self, effect: Launch) -> None:
        """Add a launch."""
        lanes = self._scheduled if effect.request is None else self._requested
        schedule = effect.schedule
        lanes.push(
            effect,
            ns=schedule.ns,
            priority=schedule.priority,
            due=effect.run.due,
            name=schedule.name,
        )

    def take(self) -> Launch | None:
        """The next launch that may begin."""
        self.opens_s = None
        effect = self._scheduled.pop_where(self._may_begin)
        # `full`: a place that is kept for a namespace is not for requested creates.
        if effect is None and not self._places.full:
            effect = self._requested.pop_where(
                lambda ns: self._requested_places.free_for(ns) and self._may_begin(ns)
            )
        return effect

    def take_all(self) -> Iterator[Launch]:
        """All that wait, whether they may begin or not."""
        for lanes in (self._scheduled, self._requested):
            while lanes:
                yield lanes.pop()

    def places(self, effect: Launch) -> list[Place]:
        """Those that its create holds."""
        ns = effect.schedule.ns
        requested = [] if effect.request is None else [self._requested_places.take(ns)]
        return [*requested, self._places.take(ns)]

    def _may_begin(self, ns: str) -> bool:
        if closed_s := self._gate.closed_s(WHAT, ns):
            self.opens_s = closed_s if self.opens_s is None else min(self.opens_s, closed_s)
        return not closed_s and self._places.free_for(ns)
