"""What oracles read of requests: their specs, plans and stored statuses."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.sim.outcome import Created, Outcome
from tests.sim.reading import condition_of, read_instant
from tests.sim.server import Json

from evenkeel.model import Instant, kind_of_request
from evenkeel.resource.request_record import Plan
from evenkeel.resource.request_status import parse_request
from evenkeel.when import compile_timing

FINAL = ("Complete", "Failed")
"""Conditions: at the end exactly one of them is True."""


@dataclass(frozen=True)
class Asked:
    """A request as everybody sees it from outside."""

    outcome: Outcome
    uid: str

    @property
    def item(self) -> Json:
        return self.outcome.requests[self.uid]

    @property
    def spec(self) -> Json:
        spec: Json = self.item["spec"]
        return spec

    @property
    def name(self) -> str:
        """`namespace/name`."""
        metadata = self.item["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"

    @property
    def schedule(self) -> str:
        """`namespace/name` of its schedule."""
        return f"{self.item['metadata']['namespace']}/{self.spec['schedule']}"

    @property
    def is_there(self) -> bool:
        return self.uid not in self.outcome.requests_deleted

    @property
    def stored(self) -> list[tuple[float, Json]]:
        """Every status that was ever stored."""
        return self.outcome.request_statuses.get(self.uid, [])

    @property
    def status(self) -> Json:
        """The last one."""
        return self.stored[-1][1] if self.stored else {}

    def status_at(self, at: float) -> Json:
        """That was stored then."""
        last = bisect.bisect_right(self.stored, at, key=lambda each: each[0]) - 1
        return self.stored[last][1] if last >= 0 else {}

    @cached_property
    def kind(self) -> str:
        """Of its runs."""
        return kind_of_request(self.uid)

    @cached_property
    def jobs(self) -> list[Created]:
        """Its Jobs, by their creation."""
        jobs = [job for job in self.outcome.all_jobs.values() if job.kind == self.kind]
        return sorted(jobs, key=lambda job: job.at)

    @cached_property
    def planned(self) -> tuple[float, list[Instant], set[Instant]] | None:
        """When the first status with a plan was stored, the due times of the request, and those of
        them that are to run. None: there is no plan."""
        for at, status in self.stored:
            if (plan := plan_of(status)) is not None:
                return at, *self._dues(plan)
        return None

    def _dues(self, plan: Plan) -> tuple[list[Instant], set[Instant]]:
        dues = [self.due]
        if plan.timing is not None:
            wish = self.spec["range"]
            compiled = compile_timing(plan.timing, seed=self.schedule)
            dues = [*compiled.between(read_instant(wish["from"]), read_instant(wish["to"]))]
        return dues, {due for number, due in enumerate(dues) if has_bit(plan.bits, number)}

    def has_passed(self, due: Instant, status: Json) -> bool:
        """Whether the mark of this status has passed a due time: it has begun, and may have
        ended."""
        mark = ((status.get("plan") or {}).get("mark")) or ""
        assert self.planned is not None
        order = sorted(self.planned[2], reverse=self.spec.get("order") == "NewestFirst")
        passed = order[: order.index(read_instant(mark)) + 1] if mark else []
        return due in passed

    @property
    def due(self) -> Instant:
        """Of a single run."""
        return read_instant(self.spec.get("at") or self.item["metadata"]["creationTimestamp"])


def all_asked(outcome: Outcome) -> Iterator[Asked]:
    """Every request there ever was."""
    for uid in outcome.requests:
        yield Asked(outcome, uid)


def plan_of(status: Json) -> Plan | None:
    """`status.plan`, where there is one."""
    return parse_request(status).plan


def has_bit(bits: bytes, number: int) -> bool:
    """The first is the highest bit of the first byte."""
    return bool(bits[number // 8] & 0x80 >> number % 8)


def final_of(status: Json) -> list[str]:
    """The final conditions that are True."""
    return [kind for kind in FINAL if condition_of(status, kind).get("status") == "True"]


def why_ended(status: Json) -> str:
    """The reason of its final condition."""
    return next((condition_of(status, kind)["reason"] for kind in final_of(status)), "")


def ended_at(asked: Asked) -> float | None:
    """When a status with its end was stored first."""
    return next((at for at, status in asked.stored if final_of(status)), None)


def under_way(status: Json) -> set[Instant]:
    """Due times of `status.active`."""
    return {read_instant(row["due"]) for row in status.get("active") or ()}


def held_throughout(
    changes: Sequence[tuple[float, Any]], begin: float, end: float, holds: Callable[[Any], bool]
) -> bool:
    """Whether it held from `begin` to `end`. `changes`: since when there is which value."""
    first = bisect.bisect_right(changes, begin, key=lambda each: each[0]) - 1
    within = [value for at, value in changes[max(first, 0) :] if at <= end]
    return first >= 0 and all(holds(value) for value in within)


def specs_of(outcome: Outcome, uid: str) -> list[tuple[float, Json]]:
    """Each spec of a schedule or request, and since when."""
    items = outcome.specs.get(uid, [])
    return [(at, item["spec"]) for at, item in zip(outcome.edited.get(uid, []), items, strict=True)]
