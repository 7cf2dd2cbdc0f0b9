"""Small calls that follow a decision: delete a Job, look at its Pods, prove a template, ask the
time. Each tries until it is answered or no longer wanted; none is on the way of a launch."""

import asyncio
import email.utils
from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.effects import CheckTemplate, ConfirmTime, DeleteJob, LookAtPods
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Message, PodsLookedAt, TemplateChecked, TimeConfirmed
from evenkeel.kube.api import Api, NoAnswer, NotSent, Reply, jobs_path
from evenkeel.model import RunId, Schedule
from evenkeel.resource.job import render

TEMPLATE_CHECKS_A_SECOND = 10
"""Ten thousand schedules after an upgrade must not become ten thousand dry runs at once."""

TEMPLATE_AGAIN_S = 60.0
LONGEST_PAUSE_S = 30.0
IN_FLIGHT = 8

_FAR = 4_102_444_800
"""A due time for dry runs, in 2100: its Job's name is nobody's."""


class Errands:
    """Runs on the scheduler's loop; at most IN_FLIGHT calls at a time, in order of arrival."""

    def __init__(self, api: Api, inbox: Inbox, clock: Clock, *, busy: Callable[[], bool]) -> None:
        self._api = api
        self._inbox = inbox
        self._clock = clock
        self._busy = busy
        self._tasks: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(IN_FLIGHT)
        self._wanted_template: dict[str, str] = {}
        self._next_check = 0.0

    def delete_job(self, effect: DeleteJob) -> None:
        """Gone is as good as deleted; another uid under the name is not ours to touch."""
        self._spawn(self._delete(effect))

    def look_at_pods(self, effect: LookAtPods) -> None:
        """Has it started? If not, why."""
        self._spawn(self._look(effect))

    def check_template(self, effect: CheckTemplate) -> None:
        """The newest template of a schedule is proven; an older check is given up."""
        self._wanted_template[effect.schedule.uid] = effect.schedule.template_hash
        self._spawn(self._check(effect.schedule))

    def forget(self, uid: str) -> None:
        """The schedule is gone: its template need not be proven."""
        self._wanted_template.pop(uid, None)

    def confirm_time(self, effect: ConfirmTime) -> None:
        """What does the API server's clock say?"""
        self._spawn(self._ask_time())

    async def finish(self, *, within_s: float) -> None:
        """Let deletions that were decided happen; give the rest up."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=within_s)
        for task in self._tasks:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()

    async def _call(self, verb: str, path: str, **more: Any) -> Reply | None:
        """One call, when nothing more urgent waits; None: no answer."""
        while self._busy():
            await clock.sleep(0.05)
        async with self._places:
            try:
                return await self._api.call(verb, path, **more)
            except (NotSent, NoAnswer):
                return None

    async def _delete(self, effect: DeleteJob) -> None:
        options: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if effect.ref.uid:
            options["preconditions"] = {"uid": effect.ref.uid}
        path, body, pause_s = jobs_path(effect.ref.ns, effect.ref.name), orjson.dumps(options), 0.5
        while True:
            reply = await self._call("DELETE", path, body=body)
            if reply is not None and (reply.ok or reply.status in (404, 409)):
                return
            await clock.sleep(clock.jitter(pause_s))
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _look(self, effect: LookAtPods) -> None:
        pods = await self._pods(effect)
        if pods is None:
            return
        started, reason, message = explain(pods)
        if not pods:
            message = await self._event_of_job(effect) or message
        await self._report(PodsLookedAt(effect.run, effect.attempt, started, reason, message))

    async def _pods(self, effect: LookAtPods) -> list[dict[str, Any]] | None:
        path = f"/api/v1/namespaces/{effect.ref.ns}/pods"
        selector = {"labelSelector": f"batch.kubernetes.io/job-name={effect.ref.name}"}
        pause_s = 0.5
        while True:
            reply = await self._call("GET", path, params={**selector, "limit": "50"})
            if reply is not None and reply.ok:
                return reply.json().get("items") or []
            if reply is not None and reply.status in (403, 404):
                return []
            await clock.sleep(clock.jitter(pause_s))
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _event_of_job(self, effect: LookAtPods) -> str:
        """The Job controller's own words: quota, Pod Security, a missing ServiceAccount."""
        reply = await self._call(
            "GET",
            f"/api/v1/namespaces/{effect.ref.ns}/events",
            params={
                "fieldSelector": f"involvedObject.uid={effect.ref.uid},type=Warning",
                "limit": "20",
            },
        )
        events = reply.json().get("items") or [] if reply is not None and reply.ok else []
        return str(events[-1].get("message", ""))[:512] if events else ""

    # --- templates --------------------------------------------------------------------------------

    async def _check(self, schedule: Schedule) -> None:
        body = render(schedule, RunId(schedule.uid, _FAR))
        while self._wanted_template.get(schedule.uid) == schedule.template_hash:
            await self._my_turn()
            reply = await self._call(
                "POST",
                jobs_path(schedule.ns),
                body=body,
                params={"dryRun": "All", "fieldValidation": "Strict"},
            )
            accepted, reason, message = judge(reply)
            await self._report(
                TemplateChecked(schedule.uid, schedule.template_hash, accepted, reason, message)
            )
            if accepted is not None:
                self._wanted_template.pop(schedule.uid, None)
                return
            await clock.sleep(clock.jitter(TEMPLATE_AGAIN_S))

    async def _my_turn(self) -> None:
        now = self._clock.monotonic()
        turn = max(now, self._next_check)
        self._next_check = turn + 1 / TEMPLATE_CHECKS_A_SECOND
        await clock.sleep(turn - now)

    async def _ask_time(self) -> None:
        reply = await self._call("GET", "/version")
        moment = reply.headers.get("Date") if reply is not None else None
        if moment:
            said = email.utils.parsedate_to_datetime(moment).timestamp()
            await self._report(TimeConfirmed(said))

    async def _report(self, message: Message) -> None:
        while not self._inbox.offer(message):
            await clock.sleep(0.01)


def judge(reply: Reply | None) -> tuple[bool | None, str, str]:
    """What a dry run proves of a template. Only 400 and 422 speak of the template itself."""
    if reply is None:
        return None, "NoAnswer", "the dry run got no answer"
    if reply.ok:
        warnings = reply.headers.get("Warning", "")
        return True, "Accepted", warnings[:512]
    if reply.status in (400, 422) and "admission webhook" not in reply.message:
        return False, "Refused", reply.message
    return None, "NotProven", reply.message


def explain(pods: list[dict[str, Any]]) -> tuple[bool, str, str]:
    """Whether any Pod has started; if none, why: pod_refused, unschedulable, image or pending."""
    reason, message = "pod_refused", "no Pod was created"
    for pod in pods:
        status = pod.get("status") or {}
        states = [
            container.get("state") or {} for container in status.get("containerStatuses") or ()
        ]
        if any("running" in state or "terminated" in state for state in states):
            return True, "", ""
        reason, message = "pending", f"pod {pod['metadata']['name']} is {status.get('phase')}"
        for state in states:
            waiting = state.get("waiting") or {}
            if "Image" in str(waiting.get("reason", "")) or "ErrImage" in str(waiting):
                return False, "image", str(waiting.get("message") or waiting.get("reason"))[:512]
        for condition in status.get("conditions") or ():
            if condition.get("reason") == "Unschedulable":
                return False, "unschedulable", str(condition.get("message", ""))[:512]
    return False, reason, message
