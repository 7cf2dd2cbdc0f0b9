"""Our Jobs, followed by one list-and-watch of our own: through kopf it would cost a core."""

from collections.abc import Callable
from typing import Any

from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import JobGone, JobSeen, JobsListed
from evenkeel.kube.api import Api, jobs_path
from evenkeel.kube.reflector import Reflector
from evenkeel.model import JobFact
from evenkeel.resource.job import LABEL_UID, read_job


class JobsListener:
    """Turns Jobs into facts. A Job that is not ours, or that says nothing new, is not passed on."""

    def __init__(self, inbox: Inbox, ns: str) -> None:
        """`ns` is the namespace that is followed; empty: all."""
        self._inbox = inbox
        self._ns = ns
        self._known: dict[str, JobFact] = {}

    def read(self, item: dict[str, Any]) -> JobFact | None:
        """None: not ours."""
        return read_job(item)

    def listed(self, facts: list[JobFact], listed_at: float) -> None:
        """All of them: the scheduler compares."""
        self._known = {fact.ref.uid: fact for fact in facts}
        self._inbox.hint(("jobs", self._ns), JobsListed(tuple(facts), int(listed_at), self._ns))

    def changed(self, kind: str, item: dict[str, Any]) -> None:
        """One of them."""
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
        """Was it ours? Somebody took its owner away, or gave it another one: its run would wait for
        ever."""
        known = self._known.pop((item.get("metadata") or {}).get("uid", ""), None)
        if known is not None:
            self._inbox.hint(known.ref.uid, JobGone(known))


def jobs_reflectors(
    api: Api,
    inbox: Inbox,
    *,
    now: Callable[[], float],
    namespaces: tuple[str, ...],
    on_restart: Callable[[str, str], None] = lambda why, sentence: None,
) -> list[Reflector]:
    """Follow the Jobs of ScheduledJobs: in the whole cluster, or in each namespace by itself,
    where a Role is all that we have."""
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
