"""Small calls that follow a decision: delete a Job, find one, look at its Pods, prove a template,
ask the time. No launch waits for one of them.

Most are tried until they are answered or no longer wanted. A deletion is given up after
DELETE_TRIES, and the scheduler itself asks for the time again. Namespaces take turns. Templates are
proven in places of their own: a webhook that lets dry runs hang must not keep Jobs from being
deleted.
"""

import asyncio
from contextlib import suppress
from typing import Any

import orjson

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.effects import (
    CheckTemplate,
    ConfirmTime,
    DeleteJob,
    FindJob,
    LookAtPods,
    ReadSchedule,
)
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import (
    JobGone,
    JobSeen,
    Message,
    PodsLookedAt,
    ScheduleRead,
    ScheduleSeen,
    TemplateChecked,
    TimeConfirmed,
)
from evenkeel.kube.api import (
    Api,
    Reply,
    field_validation,
    jobs_path,
    schedules_path,
)
from evenkeel.kube.calls import PATIENCE_S, Calls
from evenkeel.kube.gate import Gate
from evenkeel.kube.places import Places
from evenkeel.kube.tasks import Busy, Fail, Tasks, reraise
from evenkeel.log import log
from evenkeel.model import JobFact, JobState, RunId, Schedule
from evenkeel.reasons import ConditionReason, Reason
from evenkeel.resource.job import LABEL_UID, is_watched, job_name, read_job, render
from evenkeel.resource.pods import NO_POD, Look, clean, look
from evenkeel.resource.read import read
from evenkeel.resource.refusal import refusal, warnings
from evenkeel.resource.status import parse

TEMPLATE_CHECKS_A_SECOND = 10
"""After an upgrade ten thousand schedules must not become ten thousand dry runs at once."""

TEMPLATE_AGAIN_S = 60.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

DELETE_TRIES = 20
"""Tries for some eight minutes. After that something keeps the Job, and a person must look."""

DELETE_PATIENCE_S = 1.0
"""So long a deletion waits that history does not ask for: what Replace has cancelled runs beside
its successor until then."""

HISTORY = "history"
"""`DeleteJob.why` of a Job that is only kept no longer."""

PAGE = 500
"""Jobs a page, when those of one schedule are listed."""

WHAT = "errands"

DRY_RUNS, OLD_DRY_RUNS = 2, 8
"""See `Places`: of dry runs, and one at a time of a namespace."""

UNREADABLE = (
    "the operator may not list Pods, so it cannot tell why a Job waits or failed: it needs the "
    "right to list pods in this namespace"
)

_FAR = 4_102_444_800
"""A due time for dry runs, in 2100: no Job has its name."""


class Errands:
    """Runs on the scheduler's loop."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        clock: Clock,
        *,
        busy: Busy,
        gate: Gate | None = None,
        min_interval_s: int = 10,
        strict: bool = True,
        fail: Fail = reraise,
    ) -> None:
        self._calls = Calls(api, clock, what=WHAT, busy=busy, gate=gate)
        self._min_interval_s = min_interval_s
        self._validation = field_validation(strict)
        self._inbox = inbox
        self._clock = clock
        self._decided = Tasks(fail)
        """Calls that end something: a shutdown waits for them."""
        self._checks = Tasks(fail)
        self._dry_runs = Places(DRY_RUNS, kept=0, stuck=1, each=1, old_in_all=OLD_DRY_RUNS)
        self._finding: set[FindJob] = set()
        self._wanted_template: dict[str, str] = {}
        self._proofs: dict[tuple[str, str], dict[str, Schedule]] = {}
        """The schedules that wait for the proof of a template in a namespace, by uid."""
        self._next_check = 0.0

    def delete_job(self, effect: DeleteJob) -> None:
        """Delete a Job. One that is gone counts as deleted, and one with another uid under the same
        name is left alone."""
        self._decided.spawn(self._delete(effect))

    def find_job(self, effect: FindJob) -> None:
        """Find out whether a Job is still there."""
        if effect not in self._finding:
            self._finding.add(effect)
            self._checks.spawn(self._find(effect))

    def look_at_pods(self, effect: LookAtPods) -> None:
        """Find out whether a Job has started, and if not, why."""
        self._decided.spawn(self._look(effect))

    def check_template(self, effect: CheckTemplate) -> None:
        """Prove the newest template of a schedule; an older check is given up. Schedules with the
        same template in a namespace share a dry run: ten thousand dry runs take 17 minutes."""
        schedule = effect.schedule
        self._wanted_template[schedule.uid] = schedule.template_hash
        proof = (schedule.ns, schedule.template_hash)
        if proof in self._proofs:
            self._proofs[proof][schedule.uid] = schedule
            return
        self._proofs[proof] = {schedule.uid: schedule}
        self._checks.spawn(self._check(*proof))

    def forget(self, uid: str) -> None:
        """The schedule is gone: its template need not be proven."""
        self._wanted_template.pop(uid, None)

    def read_schedule(self, effect: ReadSchedule) -> None:
        """A schedule whose handler raised is read as at a restart: the object, then its Jobs."""
        self._checks.spawn(self._read(effect))

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {
            "templates to prove": len(self._wanted_template),
            "dry runs": len(self._proofs),
            "Jobs to find": len(self._finding),
        }

    def confirm_time(self, effect: ConfirmTime) -> None:
        """Ask the API server for its clock."""
        self._checks.spawn(self._ask_time())

    async def finish(self, *, within_s: float) -> None:
        """Wait for deletions and looks at Pods under way; give up the other calls."""
        self._checks.cancel()
        await self._decided.finish(within_s=within_s)

    async def _delete(self, effect: DeleteJob) -> None:
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if effect.ref.uid:
            options["preconditions"] = {"uid": effect.ref.uid}
        path, body = jobs_path(effect.ref.ns, effect.ref.name), orjson.dumps(options)
        patience_s = PATIENCE_S if effect.why == HISTORY else DELETE_PATIENCE_S
        async for _ in clock.tries(FIRST_PAUSE_S, LONGEST_PAUSE_S, count=DELETE_TRIES):
            reply = await self._calls.call(
                effect.ref.ns, "DELETE", path, body=body, patience_s=patience_s
            )
            done = reply is not None and (reply.ok or reply.status == 409 or reply.absent)
            if reply is not None and done and reply.from_api_server:
                return
        log("job not deleted", level="warning", ns=effect.ref.ns, job=effect.ref.name)

    async def _find(self, effect: FindJob) -> None:
        try:
            await self._find_out(effect)
        finally:
            self._finding.discard(effect)

    async def _find_out(self, effect: FindJob) -> None:
        path = jobs_path(effect.ref.ns, effect.ref.name)
        async for _ in clock.tries(FIRST_PAUSE_S, LONGEST_PAUSE_S):
            reply = await self._calls.call(effect.ref.ns, "GET", path)
            fact = _read(effect, reply.json()) if reply is not None and reply.ok else None
            if reply is not None and fact is not None and fact.run == effect.run:
                # Not under the Job's uid: what the watch has just told may be newer, and would be
                # replaced in the inbox.
                self._inbox.hint(("found", effect.run, effect.attempt), JobSeen(fact))
                if fact.finished or (is_watched(reply.json()) and not effect.disowned):
                    return
                continue  # without label or owner the watch does not tell of it: read it again
            # A Job that is not ours any more: the watch will not tell how it ends.
            disowned = reply is not None and reply.ok and reply.from_api_server
            if reply is not None and (reply.absent or disowned):
                gone = JobFact(effect.ref, effect.run, effect.attempt, JobState.WAITING)
                # Not under the Job's uid: it is not known where no watch has told of the Job.
                self._inbox.hint(("not found", effect.run, effect.attempt), JobGone(gone, True))
                return

    async def _look(self, effect: LookAtPods) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(effect.within_s):
                await self._report(await self._seen(effect))

    async def _seen(self, effect: LookAtPods) -> PodsLookedAt:
        found = await self._pods(effect)
        if found is None:
            return PodsLookedAt(effect.run, effect.attempt, False, None, UNREADABLE)
        seen, reason, message = found, found.reason, found.message
        # No Pods: they are refused, or the Job controller is late. An Event of its own tells.
        wanted = message == NO_POD and not effect.of_failure
        if wanted and (refusal := await self._refusal_of_pods(effect)):
            reason, message = Reason.POD_REFUSED, refusal
        run, attempt = effect.run, effect.attempt
        return PodsLookedAt(run, attempt, seen.started, reason, message, seen.cause)

    async def _pods(self, effect: LookAtPods) -> Look | None:
        """As many pages as it takes to find a Pod that has started; of a Job that failed, one.
        None: they may not be read."""
        path = f"/api/v1/namespaces/{effect.ref.ns}/pods"
        selector = {"labelSelector": f"batch.kubernetes.io/job-name={effect.ref.name}"}
        found: list[dict[str, Any]] = []
        params = {**selector, "limit": "50"}
        async for _ in clock.tries(FIRST_PAUSE_S, LONGEST_PAUSE_S):
            while (
                reply := await self._calls.call(effect.ref.ns, "GET", path, params=params)
            ) and reply.ok:
                page = reply.json()
                metadata = page.get("metadata") or {}
                if not metadata.get("resourceVersion"):
                    break  # a proxy's page: as an empty list it would fail the attempt
                found += page.get("items") or []
                token, seen = metadata.get("continue"), look(found)
                if not token or seen.started or effect.of_failure:
                    return seen
                params["continue"] = token
            if reply is not None and reply.status == 403 and reply.from_api_server:
                return None
            if reply is not None and reply.status == 410:
                found, params = [], {**selector, "limit": "50"}
        raise AssertionError("tries end only with an answer")

    async def _refusal_of_pods(self, effect: LookAtPods) -> str:
        """The Job controller's own sentence: quota, Pod Security, a missing ServiceAccount."""
        reply = await self._calls.call(
            effect.ref.ns,
            "GET",
            f"/api/v1/namespaces/{effect.ref.ns}/events",
            params={
                "fieldSelector": f"involvedObject.uid={effect.ref.uid},reason=FailedCreate",
                "limit": "20",
            },
        )
        events = reply.json().get("items") or [] if reply is not None and reply.ok else []
        return clean(str(events[-1].get("message") or "no Pod may be created")) if events else ""

    # --- a schedule that is read again ---------------------------------------------------------

    async def _read(self, effect: ReadSchedule) -> None:
        async for _ in clock.tries(FIRST_PAUSE_S, LONGEST_PAUSE_S):
            path = schedules_path(effect.ns, effect.name)
            found = await self._calls.call(effect.ns, "GET", path)
            if found is None or not (found.ok or found.absent) or not found.from_api_server:
                continue
            raw = found.json() if found.ok else {}
            metadata = raw.get("metadata") or {}
            if metadata.get("uid") != effect.uid or metadata.get("deletionTimestamp"):
                await self._report(ScheduleRead(effect.uid, None, ()))
                return
            facts = await self._jobs_of(effect)
            if facts is None:
                continue
            memory = parse(raw.get("status"), version=str(metadata.get("resourceVersion", "")))
            seen = ScheduleSeen(read(raw, min_interval_s=self._min_interval_s), memory)
            await self._report(ScheduleRead(effect.uid, seen, facts))
            return

    async def _jobs_of(self, effect: ReadSchedule) -> tuple[JobFact, ...] | None:
        """None: they could not be listed, and another try is needed."""
        params = {"labelSelector": f"{LABEL_UID}={effect.uid}", "limit": str(PAGE)}
        facts: list[JobFact] = []
        while True:
            reply = await self._calls.call(effect.ns, "GET", jobs_path(effect.ns), params=params)
            if reply is None or not reply.ok:
                return None
            page = reply.json()
            metadata = page.get("metadata") or {}
            if not metadata.get("resourceVersion"):
                return None  # taken for an empty list, a proxy's page would lose every run
            facts += [fact for item in page.get("items") or () if (fact := read_job(item))]
            if not metadata.get("continue"):
                return tuple(facts)
            params["continue"] = metadata["continue"]

    # --- templates --------------------------------------------------------------------------------

    async def _check(self, ns: str, template_hash: str) -> None:
        while waiting := self._waiting_for(ns, template_hash):
            await self._my_turn()
            run = RunId(waiting[0].uid, _FAR)
            reply = await self._calls.call(
                ns,
                "POST",
                jobs_path(ns),
                places=self._dry_runs,
                body=render(waiting[0], run),
                params={"dryRun": "All", **self._validation},
            )
            job = job_name(waiting[0].name, run)
            for schedule in self._waiting_for(ns, template_hash):
                accepted, reason, message = judge(reply, job=job, schedule=schedule.name)
                # A hint: there may be thousands, and the inbox must have room for creates' results.
                self._inbox.hint(
                    ("template", schedule.uid),
                    TemplateChecked(schedule.uid, template_hash, accepted, reason, message),
                )
                if accepted is not None:
                    del self._wanted_template[schedule.uid]
            if self._waiting_for(ns, template_hash):
                await clock.sleep(clock.jitter(TEMPLATE_AGAIN_S))
        del self._proofs[ns, template_hash]

    def _waiting_for(self, ns: str, template_hash: str) -> list[Schedule]:
        """The schedules that still have this template to be proven."""
        proof = self._proofs[ns, template_hash]
        for uid in [uid for uid in proof if self._wanted_template.get(uid) != template_hash]:
            del proof[uid]
        return list(proof.values())

    async def _my_turn(self) -> None:
        now = self._clock.monotonic()
        turn = max(now, self._next_check)
        self._next_check = turn + 1 / TEMPLATE_CHECKS_A_SECOND
        await clock.sleep(turn - now)

    async def _ask_time(self) -> None:
        reply = await self._calls.call("", "GET", "/version")
        said = reply.server_time if reply is not None else None
        if said is not None:  # else it is asked again in a few seconds
            await self._report(TimeConfirmed(said))

    async def _report(self, message: Message) -> None:
        while not self._inbox.offer(message):
            await clock.sleep(0.01)


def judge(
    reply: Reply | None, *, job: str, schedule: str
) -> tuple[bool | None, ConditionReason, str]:
    """What a dry run proves of a schedule's template. Only 400 and 422 say something about the
    template. `job` is the name of the dry run, which no reader is to see: no Job has it."""
    if reply is None:
        return None, ConditionReason.NO_ANSWER, "the dry run got no answer"
    if not reply.from_api_server:
        message = f"the dry run got no answer of the API server: {reply.message}"
        return None, ConditionReason.NO_ANSWER, message
    if reply.ok:
        warned = warnings(reply.headers.get("Warning", ""))
        return True, ConditionReason.ACCEPTED, warned.replace(job, schedule)
    message = refusal(reply.json(), reply.message).replace(job, schedule)
    if reply.status in (400, 422) and "admission webhook" not in reply.message:
        return False, ConditionReason.REFUSED, message
    return None, ConditionReason.NOT_PROVEN, message


def _read(effect: FindJob, raw: dict[str, Any]) -> JobFact | None:
    """The Job as a fact. One that was stored without its owner is known by its uid, which the
    answer to its create has shown."""
    known = effect.disowned and (raw.get("metadata") or {}).get("uid") == effect.ref.uid
    return read_job(raw, owned_by=effect.run.uid if known else "")
