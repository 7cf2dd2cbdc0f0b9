"""One request as the scheduler holds it: what it asks for, which runs are planned, how far it is.

The runs themselves stand in the entry of their schedule (`Entry.runs`), as runs of the kind of the
request. `planning` and `requested` change a request; nobody else does.
"""

import enum
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenkeel.core.schedule.progress import Backoff, Storing
from evenkeel.model import (
    Instant,
    Order,
    Request,
    RequestState,
    Timing,
    kind_of_request,
)
from evenkeel.resource.record import Condition
from evenkeel.resource.request_record import Plan, RequestMemory, RequestRecord


class Step(enum.Enum):
    """Where a request stands."""

    WAITING = "waiting"
    """It waits for its schedule, for its turn in its namespace, or for the ledger."""
    LISTING = "listing"
    """The due times of its range are being listed."""
    ASKING = "asking"
    """The ledger is being asked which of them have run."""
    PLANNED = "planned"
    """No run begins before a stored status tells of the plan."""
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True)
class RequestEntry:
    """A request and its progress."""

    uid: str
    ns: str
    name: str
    created: Instant = 0
    """0: it was never accepted."""
    spec: Request | None = None
    generation: int = 0
    seen_m: float = 0.0
    kind: str = field(init=False)
    """Of its runs."""
    bound_to: str = ""
    """The uid of the schedule in whose entry it stands; empty: in none."""

    # the plan
    step: Step = Step.WAITING
    schedule_uid: str = ""
    """The schedule that it was accepted for."""
    plan: Plan | None = None
    plan_revision: int = 0
    """The status of this revision tells of the plan."""
    asks_again_m: float = 0.0
    """Until then the ledger, which was away, is not asked again."""
    timing: Timing | None = None
    """By which the due times are being listed."""
    listed: Sequence[Instant] = ()
    """All due times of the range, while it is found out which of them have run."""
    dues: Sequence[Instant] = ()
    """The due times that are to run, in the order of the request."""

    # progress
    begun: int = 0
    """So many of `dues` have begun."""
    deferred: bool = False
    """The ledger was told of a run that waits for its due time."""
    stopped: bool = False
    """stopAfterFailures is reached: nothing new begins."""
    record: RequestRecord = field(default_factory=RequestRecord)
    state: RequestState = RequestState.PENDING
    started: Instant | None = None
    finished: Instant | None = None
    backoff: Backoff = field(default_factory=Backoff)

    # the status
    conditions: dict[str, Condition] = field(default_factory=dict)
    memory: RequestMemory | None = None
    """What the status said at first sight; dropped when its runs are taken over."""
    whole: bool = True
    """False: the stored status tells more than this process has read of it."""
    storing: Storing = field(default_factory=Storing)

    def __post_init__(self) -> None:
        self.kind = kind_of_request(self.uid)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.ns}/{self.name}"

    @property
    def ended(self) -> bool:
        """It has come to its end."""
        return self.step is Step.ENDED

    @property
    def total(self) -> int | None:
        """How many runs are planned; None: it is not planned."""
        return len(self.dues) if self.plan is not None else None

    @property
    def is_all_begun(self) -> bool:
        """No planned due time is left that has not begun."""
        return self.begun >= len(self.dues)

    @property
    def mark(self) -> Instant | None:
        """The due time that has begun last, in the order of the request."""
        return self.dues[self.begun - 1] if self.begun else None

    def position(self, due: Instant) -> int | None:
        """The place of a due time among `dues`; None: it is not planned."""
        newest_first = self.spec is not None and self.spec.order is Order.NEWEST_FIRST
        if newest_first:
            place = len(self.dues) - bisect_left(self.dues[::-1], due + 1)
        else:
            place = bisect_left(self.dues, due)
        return place if place < len(self.dues) and self.dues[place] == due else None

    def adopt_plan(self, plan: Plan, dues: Sequence[Instant]) -> None:
        """Keep the plan, and the due times that it names, ascending."""
        assert self.spec is not None
        ordered = dues[::-1] if self.spec.order is Order.NEWEST_FIRST else dues
        self.plan, self.dues, self.listed = plan, array("q", ordered), ()
