"""Follows the Jobs of ScheduledJobs by a list and watch of our own: kopf would need a core for it.

`app` runs one `Reflector` for the cluster, or one for each namespace that is served.
"""

from collections.abc import Callable
from typing import Any

from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import JobGone, JobSeen, JobsListed
from evenkeel.kube.api import Api, jobs_path
from evenkeel.kube.reflector import Reflector
from evenkeel.model import JobFact, WatchRestart
from evenkeel.resource.job import LABEL_UID, read_job


class JobsListener:
    """Turns Jobs into facts for the scheduler. Jobs of others, and changes that tell nothing new,
    are not passed on."""

    def __init__(self, inbox: Inbox, ns: str) -> None:
        """`ns` is the namespace that is followed; empty: all."""
        self._inbox = inbox
        self._ns = ns
        self._known: dict[str, JobFact] = {}

    def read(self, item: dict[str, Any]) -> JobFact | None:
        """The Job as a fact; None: it is not of a ScheduledJob."""
        return read_job(item)

    def listed(self, facts: list[JobFact], listed_at: float) -> None:
        """Tell the scheduler all Jobs there are; it finds out which of its own are missing."""
        self._known = {fact.ref.uid: fact for fact in facts}
        self._inbox.hint(("jobs", self._ns), JobsListed(tuple(facts), int(listed_at), self._ns))

    def changed(self, kind: str, item: dict[str, Any]) -> None:
        """Tell the scheduler of one Job, where something is new."""
        fact = read_job(item)
        known = self._known.get((item.get("metadata") or {}).get("uid", ""))
        if fact is None or (known is not None and known.run != fact.run):
            self._disowned(item)
        elif kind == "DELETED":
            self._known.pop(fact.ref.uid, None)
            # A Job deleted while it still ran carries its last state, which may be its end.
            self._inbox.hint(fact.ref.uid, JobGone(fact if fact.finished else known or fact))
        elif known != fact:
            self._known[fact.ref.uid] = fact
            self._inbox.hint(fact.ref.uid, JobSeen(fact))

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {"Jobs": len(self._known)}

    def _disowned(self, item: dict[str, Any]) -> None:
        """A Job that is not of a ScheduledJob. Where it was, somebody has changed its owner: the
        scheduler is told, or the run would wait for ever."""
        known = self._known.pop((item.get("metadata") or {}).get("uid", ""), None)
        if known is not None:
            self._inbox.hint(known.ref.uid, JobGone(known))


def jobs_reflectors(
    api: Api,
    inbox: Inbox,
    *,
    now: Callable[[], float],
    namespaces: tuple[str, ...],
    on_restart: Callable[[WatchRestart, str], None] = lambda why, sentence: None,
) -> list[Reflector]:
    """One for the whole cluster, or one for each namespace where there are only Roles."""
    return [
        Reflector(
            api,
            jobs_path(ns),
            JobsListener(inbox, ns),
            now=now,
            params={"labelSelector": LABEL_UID},
            on_restart=on_restart,
        )
        for ns in namespaces or ("",)
    ]
