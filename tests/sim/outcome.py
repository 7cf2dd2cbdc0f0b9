"""What a play leaves behind: the objects at its end, and all that ever were."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.sim.server import SCHEDULED_JOB, Json, Server
from tests.sim.store import Vault
from tests.sim.world import World

from evenkeel.model import BY_SCHEDULE, Instant, RunId, kind_of_request

if TYPE_CHECKING:
    from tests.sim.process import Process


@dataclass(slots=True)
class Created:
    """A Job that the server created. It may be gone."""

    uid: str
    due: int
    attempt: int
    ns: str
    name: str
    at: float
    who: str
    ended: str = ""
    """succeeded, failed, or empty: it runs, or it was deleted before its end."""
    ended_at: float = 0.0
    deleted_at: float | None = None
    deleted_by: str = ""
    image: str = ""
    """Of its first container: which of several templates it was made from."""
    kind: str = BY_SCHEDULE
    """Of its run."""

    @property
    def run(self) -> RunId:
        return RunId(self.uid, self.due, self.kind)


@dataclass(frozen=True, slots=True)
class Left:
    """What the last process says of itself at the end, before it is stopped."""

    now: float
    """By its own clock."""
    ready: bool
    sizes: dict[str, int]
    tasks: int
    behind: frozenset[str]
    """Namespaces with an Event that has waited for more than a second."""
    documents: dict[str, Json | None]
    """The answers to GetSchedule, by `namespace/name`, of every schedule there ever was."""
    active: frozenset[tuple[str, int]]
    """The answer to GetActiveRuns: (uid, due) of those by schedule."""
    requested: frozenset[RunId] = frozenset()
    """And the others."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one process answered to a scrape."""

    at: float
    number: int
    """Of the process."""
    metrics: str
    by_schedule: str


@dataclass(slots=True)
class Outcome:
    """The state of the world at the end, and how it came about."""

    world: World
    server: Server
    vault: Vault
    all_jobs: dict[str, Created] = field(default_factory=dict)
    """By Job uid: every Job there ever was."""
    statuses: dict[str, list[tuple[float, Json]]] = field(default_factory=dict)
    """By schedule uid: every status that was ever stored."""
    schedules: dict[str, Json] = field(default_factory=dict)
    """By uid: the last that was seen of each, the deleted ones too."""
    processes: list[Process] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    left: Left | None = None
    forgiven: Counter[str] = field(default_factory=Counter)
    """How often oracles used which exception, by its name in forgiven.py."""
    scrapes: list[Scrape] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    """What the operator said to those who asked it something."""
    deleted: dict[str, float] = field(default_factory=dict)
    forged: dict[str, float] = field(default_factory=dict)
    """By schedule uid: when somebody wrote nonsense into its status."""
    ledgers: list[dict[str, tuple[Instant, Json]]] = field(default_factory=list)
    """At the end of each process but the last, by schedule uid: the ledger's mark, and the status
    that was stored."""
    specs: dict[str, list[Json]] = field(default_factory=dict)
    """By uid of a schedule or request: the object at each of its generations."""
    edited: dict[str, list[float]] = field(default_factory=dict)
    """And when each of these was stored."""
    annotated: dict[str, float] = field(default_factory=dict)
    """By schedule uid: when its annotations were changed last."""
    requests: dict[str, Json] = field(default_factory=dict)
    """By uid: the last that was seen of each request, the deleted ones too."""
    request_statuses: dict[str, list[tuple[float, Json]]] = field(default_factory=dict)
    """By request uid: every status that was ever stored."""
    requests_deleted: dict[str, tuple[float, str]] = field(default_factory=dict)
    """By request uid: when it was deleted, and by whom."""

    @property
    def now(self) -> float:
        return self.world.base + self.world.lasts_s

    def schedule(self, name: str, ns: str = "default") -> Json:
        """A ScheduledJob as it stands at the end."""
        return self.server.objects[SCHEDULED_JOB][ns, name]

    def request(self, name: str, ns: str = "default") -> Json:
        """The RunRequest of this name that was created last, as it was seen last."""
        return next(
            item
            for item in reversed(self.requests.values())
            if (item["metadata"]["namespace"], item["metadata"]["name"]) == (ns, name)
        )

    def jobs_asked_for(self, name: str, ns: str = "default") -> list[Created]:
        """The Jobs ever created for a request, by their creation."""
        kind = kind_of_request(self.request(name, ns)["metadata"]["uid"])
        found = [job for job in self.all_jobs.values() if job.kind == kind]
        return sorted(found, key=lambda job: job.at)

    def status(self, name: str, ns: str = "default") -> Json:
        """Its status."""
        status: Json = self.schedule(name, ns).get("status") or {}
        return status

    @property
    def jobs(self) -> dict[str, Created]:
        """By Job uid: those of runs by schedule."""
        return {uid: job for uid, job in self.all_jobs.items() if job.kind == BY_SCHEDULE}

    def jobs_of(self, name: str) -> list[Created]:
        """The Jobs ever created for the due times of schedules of this name, by due and attempt."""
        uids = {uid for uid, item in self.schedules.items() if item["metadata"]["name"] == name}
        found = [job for job in self.jobs.values() if job.uid in uids]
        return sorted(found, key=lambda job: (job.due, job.attempt))
