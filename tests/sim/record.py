"""Writes down what happens in a play: into the outcome, and for people as a history."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
from tests.sim.controllers import kind_of, run_of
from tests.sim.outcome import Created, Outcome
from tests.sim.process import CURRENT
from tests.sim.reading import internal
from tests.sim.server import JOB, RUN_REQUEST, SCHEDULED_JOB, Change, Json


class Record:
    """Fills an outcome with what the server stores; `verbose` tells the history too."""

    def __init__(self, outcome: Outcome, *, verbose: bool) -> None:
        self.outcome = outcome
        self.server = outcome.server
        self.verbose = verbose
        self.asking = ""
        """Who asks the server now, if it is not an operator."""
        self._seen_requests = 0

    def changed(self, change: Change) -> None:
        """An object was stored or removed."""
        item, now = change.object, self.server.now()
        uid = item["metadata"]["uid"]
        if change.kind is SCHEDULED_JOB:
            before = self.outcome.schedules.get(uid, item)["metadata"].get("annotations")
            if before != item["metadata"].get("annotations"):
                self.outcome.annotated[uid] = now
            self.outcome.schedules[uid] = item
            self._write_down_generation(item, uid, now)
            if change.type == "DELETED":
                self.outcome.deleted[uid] = now
            elif item.get("status"):
                stored = self.outcome.statuses.setdefault(uid, [])
                if not stored or stored[-1][1] != item["status"]:
                    stored.append((now, item["status"]))
        elif change.kind is RUN_REQUEST:
            self._write_down_request(change, uid, now)
        elif change.kind is JOB:
            self._write_down_job(change, uid, now)
        if self.verbose:
            self._tell(change)

    def _write_down_generation(self, item: Json, uid: str, now: float) -> None:
        generations = self.outcome.specs.setdefault(uid, [])
        if len(generations) < item["metadata"]["generation"]:
            generations.append(item)
            self.outcome.edited.setdefault(uid, []).append(now)

    def _write_down_request(self, change: Change, uid: str, now: float) -> None:
        item = change.object
        self.outcome.requests[uid] = item
        self._write_down_generation(item, uid, now)
        if change.type == "DELETED":
            self.outcome.requests_deleted[uid] = now, self.asking
            return
        stored = self.outcome.request_statuses.setdefault(uid, [])
        status = item.get("status") or {}
        if not stored or stored[-1][1] != status:
            stored.append((now, status))

    def ledger_stands(self) -> None:
        """A process has ended: how far the ledger is behind what the statuses told."""
        self.outcome.ledgers.append(
            {
                uid: (schedule.mark, self.outcome.statuses[uid][-1][1])
                for uid, schedule in self.outcome.vault.tables.schedules.items()
                if uid in self.outcome.statuses
            }
        )

    def _write_down_job(self, change: Change, uid: str, now: float) -> None:
        run = run_of(change.object)
        if run is None:
            return
        metadata = change.object["metadata"]
        if change.type == "ADDED":
            process = CURRENT.get()
            who = f"operator {process.number}" if process else ""
            self.outcome.all_jobs[uid] = Created(
                *run,
                metadata["namespace"],
                metadata["name"],
                now,
                who,
                image=_image(change.object),
                kind=kind_of(change.object),
            )
            return
        job = self.outcome.all_jobs[uid]
        ends = {"Complete": "succeeded", "Failed": "failed"}
        for condition in (change.object.get("status") or {}).get("conditions") or ():
            if not job.ended and condition["type"] in ends:
                job.ended = ends[condition["type"]]
                job.ended_at = now
        if change.type == "DELETED":
            job.deleted_at = now
            job.deleted_by = self.asking

    def _tell(self, change: Change) -> None:
        item = change.object
        where = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        status = item.get("status") or {}
        more: Mapping[str, Any] = {}
        if change.kind is SCHEDULED_JOB:
            keys = ("mark", "counts", "waiting", "active", "recent", "pause")
            told = {**status, **internal(status)}
            more = {key: told[key] for key in keys if told.get(key)}
        elif change.kind is RUN_REQUEST:
            keys = ("state", "plan", "active", "counts", "done", "total", "recent", "conditions")
            more = {key: status[key] for key in keys if status.get(key)}
        elif change.kind is JOB:
            more = {"conditions": [c["type"] for c in status.get("conditions") or ()]}
        self.note(f"    {change.type} {change.kind.name} {where} {_short(more)}")

    def note(self, text: str) -> None:
        """A line of the history, below the requests that came before it."""
        if self.verbose:
            for request in self.server.requests[self._seen_requests :]:
                self._line(
                    request.at,
                    f"{request.who}: {request.verb} {request.path} {request.note}"
                    f" -> {request.status}",
                )
            self._seen_requests = len(self.server.requests)
            self._line(self.server.now(), text)

    def _line(self, at: float, text: str) -> None:
        self.outcome.history.append(f"{at - self.outcome.world.base:9.3f} {text}")

    @contextmanager
    def logged(self) -> Iterator[None]:
        """The operator's log lines become notes, or nothing."""
        logger = logging.getLogger("evenkeel")
        level = logger.level
        handler = _Notes(self) if self.verbose else logging.NullHandler()
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if self.verbose else logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)
            logger.removeHandler(handler)


class _Notes(logging.Handler):
    def __init__(self, record: Record) -> None:
        super().__init__()
        self._record = record

    def emit(self, line: logging.LogRecord) -> None:
        self._record.note(f"    log: {line.getMessage()} {getattr(line, 'fields', '')}")


def _image(job: Mapping[str, Any]) -> str:
    image: str = job["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def _short(values: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={orjson.dumps(value).decode()}" for key, value in values.items())
