"""Orchestrators, one for each attempt of a run: each renders its Job before the due second, creates
it when the scheduler says so, and reports what the create proved.

The scheduler decides when; the launcher only does it. Creates in flight are bounded, and
namespaces take turns: see `Places` for a namespace whose creates hang, and `Gate` for a 429.
Requested runs go behind scheduled ones. The Job's name is the lock: a create that got no answer is
read by name before anything else.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.effects import Launch, Prepare, Withdraw
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import CreateResult, PutBack, Unanswered
from evenkeel.kube.api import Api, NoAnswer, NotSent, Reply, field_validation, jobs_path
from evenkeel.kube.gate import Gate
from evenkeel.kube.launch_queue import FEW, WHAT, LaunchQueue
from evenkeel.kube.places import Place
from evenkeel.kube.tasks import Fail, Tasks, reraise
from evenkeel.model import JobFact, JobRef, RunId, Schedule, Verdict
from evenkeel.reasons import ConditionReason as Why
from evenkeel.resource.job import is_cron_jobs, job_name, marks_lost, read_job, render
from evenkeel.resource.refusal import is_strict, refusal

READ_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses between readings by name. The last one repeats: nothing else tells if there is a Job."""

UNCOUNTED = (Why.UNREACHABLE, Why.STATUS_NOT_WRITTEN, Why.NOT_CREATED)
"""Reasons of verdicts that are not the answer to a create."""

KEEP_WARM_S = 30.0
"""Connections that were used within this time are still open; see client.KEEP_ALIVE_S."""

RENDERED_AT_ONCE = 20
"""Bodies rendered before other tasks may run: ten thousand at once would take 0.4 s."""

WARM_PATH = "/version"
"""Every authenticated caller may read it."""


class Launcher:
    """Runs on the scheduler's loop. `announce` stores the status that announces a launch. `count`
    is told each verdict with its duration. `strict`: a Job with a field that the API server does
    not know is refused, and not created without it."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        clock: Clock,
        *,
        in_flight: int,
        announce: Callable[[Launch], Awaitable[bool]],
        strict: bool = True,
        gate: Gate | None = None,
        count: Callable[[Verdict, float | None], None] = lambda verdict, took_s: None,
        fail: Fail = reraise,
    ) -> None:
        self._api = api
        self._inbox = inbox
        self._clock = clock
        self._in_flight = in_flight
        self._announce = announce
        self._validation = field_validation(strict)
        self._count = count
        self._to_render: dict[tuple[RunId, int], Schedule] = {}
        self._rendering = False
        self._bodies: dict[tuple[RunId, int], tuple[str, bytes]] = {}
        self._queued: set[tuple[RunId, int]] = set()
        """No create of these was sent: they wait for their turn, for the status that announces
        them, or for the end of this step."""
        self._unwanted: set[tuple[RunId, int]] = set()
        """Of these, those that were withdrawn."""
        self._gate = gate or Gate(clock)
        self._queue = LaunchQueue(in_flight, self._gate, freed=self._pump)
        self._opening: asyncio.TimerHandle | None = None
        self._creates = Tasks(fail)
        self._aside = Tasks(fail)
        """What takes no create's place: rendering, warming, reading by name."""
        self._readings = asyncio.Semaphore(in_flight)
        """A herd whose creates got no answer must not read by name all at once."""
        self._warmed_at = float("-inf")
        self._stopping = False

    @property
    def busy(self) -> bool:
        """See `LaunchQueue`."""
        return self._queue.busy

    @property
    def creating(self) -> int:
        """Creates in flight."""
        return len(self._creates)

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {
            "bodies": len(self._bodies) + len(self._to_render),
            "creates that wait": len(self._queue),
            "creates in flight": len(self._creates),
            "withdrawn creates": len(self._unwanted),
        }

    # --- what the scheduler says ------------------------------------------------------------------

    def prepare(self, effect: Prepare) -> None:
        """The run is due in a few seconds."""
        self._to_render[effect.run, effect.attempt] = effect.schedule
        if not self._rendering:
            self._rendering = True
            self._aside.spawn(self._render_ahead())
        if self._clock.monotonic() - self._warmed_at > KEEP_WARM_S:
            self._warmed_at = self._clock.monotonic()
            self._aside.spawn(self._warm(min(self._in_flight, FEW)))
        elif len(self._to_render) in (16, 64):  # it will be a herd: warm what that will need
            self._aside.spawn(self._warm(min(self._in_flight, len(self._to_render))))

    def launch(self, effect: Launch) -> None:
        """The instant has come."""
        if self._stopping:
            self._put_back(effect.run, effect.attempt)
            return
        self._unwanted.discard((effect.run, effect.attempt))  # withdrawn once, and wanted again
        self._queued.add((effect.run, effect.attempt))
        self._queue.push(effect)
        self._pump()

    def withdraw(self, effect: Withdraw) -> None:
        """The run is not wanted any more. A create under way cannot be called back: the scheduler
        has its Job deleted."""
        self._drop_body((effect.run, effect.attempt))
        if (effect.run, effect.attempt) in self._queued:
            self._unwanted.add((effect.run, effect.attempt))

    async def stop(self, *, within_s: float) -> None:
        """Put back the runs whose create has not begun, and let creates in flight finish."""
        self._stopping = True
        if self._opening is not None:
            self._opening.cancel()
        for effect in self._queue.take_all():
            self._put_back(effect.run, effect.attempt)
        await self._creates.finish(within_s=within_s)
        self._aside.cancel()

    def _put_back(self, run: RunId, attempt: int) -> None:
        # A hint, for there may be ten thousand: results of creates must find room beside them.
        self._inbox.hint(("put back", run, attempt), PutBack(run, attempt))

    # --- rendering --------------------------------------------------------------------------------

    async def _render_ahead(self) -> None:
        while self._to_render:
            for key in list(itertools.islice(self._to_render, RENDERED_AT_ONCE)):
                run, attempt = key
                schedule = self._to_render.pop(key)
                name = job_name(schedule.name, run, attempt)
                self._bodies[key] = name, render(schedule, run, attempt)
            await clock.sleep(0)
        self._rendering = False

    def _rendered(self, effect: Launch) -> tuple[str, bytes]:
        """Name and body. A body is not sent where a newer template waits to be rendered."""
        run, attempt, schedule = effect.run, effect.attempt, effect.schedule
        known = self._bodies.pop((run, attempt), None)
        if known is not None and (run, attempt) not in self._to_render:
            return known
        self._drop_body((run, attempt))
        body = render(schedule, run, attempt, effect.request)
        return job_name(schedule.name, run, attempt), body

    def _drop_body(self, key: tuple[RunId, int]) -> None:
        self._to_render.pop(key, None)
        self._bodies.pop(key, None)

    # --- creating ---------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Begin those that may be in flight."""
        if self._opening is not None:
            self._opening.cancel()
        while not self._stopping:
            effect = self._queue.take()
            if effect is None:
                break
            if not self._is_put_back(effect):
                self._creates.spawn(self._orchestrate(effect, self._queue.places(effect)))
        if self._queue.opens_s is not None:
            loop = asyncio.get_running_loop()
            self._opening = loop.call_later(self._queue.opens_s, self._pump)

    def _is_put_back(self, effect: Launch) -> bool:
        """Whether nothing is sent for it: it was withdrawn, or its time is over. A lane may be
        closed, or its status not be stored, for longer than the run may wait."""
        key = (effect.run, effect.attempt)
        too_late = effect.latest is not None and int(self._clock.now()) > effect.latest
        if not too_late and key not in self._unwanted:
            return False
        self._queued.discard(key)
        self._unwanted.discard(key)
        self._drop_body(key)
        self._put_back(*key)
        return True

    async def _orchestrate(self, effect: Launch, places: list[Place]) -> None:
        answered = await self._create(effect)
        # Only here: creates are cancelled at the end of the process, when no other may begin.
        for place in places:
            place.give_back(answered=answered)

    async def _create(self, effect: Launch) -> bool:
        """Whether the create was answered."""
        schedule = effect.schedule
        name, body = self._rendered(effect)
        ref = JobRef(schedule.ns, name)
        stored = not effect.announced or await self._announce(effect)
        if stored and self._is_put_back(effect):
            return False
        self._queued.discard((effect.run, effect.attempt))
        self._unwanted.discard((effect.run, effect.attempt))
        if not stored:
            message = (
                "the status that announces this Job could not be stored, and its ttl may end it"
            )
            why = Why.STATUS_NOT_WRITTEN
            await self._tell(effect, ref, Verdict.HELD, reason=why, message=message)
            return False
        sent_at, began = self._clock.now(), self._clock.monotonic()
        try:
            reply = await self._api.call(
                "POST", jobs_path(ref.ns), body=body, params=self._validation
            )
        except NotSent as error:
            await self._tell(
                effect, ref, Verdict.HELD, sent_at, Why.UNREACHABLE, f"API server: {error}"
            )
            return False
        except NoAnswer:
            self._count(Verdict.UNKNOWN, self._clock.monotonic() - began)
            self._say_unanswered(effect)
            self._aside.spawn(self._read_by_name(effect, ref, sent_at, seen=False))
            return False
        job = reply.json() if reply.ok else {}
        uid = uid_of(job)
        verdict, reason = classify(reply, uid)
        if verdict is not Verdict.ADOPTED:  # whether it is or is taken, its reading will say
            self._count(verdict, self._clock.monotonic() - began)
        self._gate.heed(WHAT, ref.ns, reply)
        if verdict in (Verdict.UNKNOWN, Verdict.ADOPTED):
            # Not in the create's place: a namespace whose Jobs cannot be read must not keep it.
            seen = verdict is Verdict.ADOPTED
            if not seen:
                self._say_unanswered(effect)
            self._aside.spawn(self._read_by_name(effect, ref, sent_at, seen=seen))
            return True
        if reply.ok:
            ref = JobRef(ref.ns, ref.name, uid)
        message = "" if reply.ok else reply.message  # the answer to a create is the whole Job
        if verdict is Verdict.REFUSED:
            message = refusal(reply.json(), message)
        lost = marks_lost(job, schedule.uid) if verdict is Verdict.CREATED else ()
        await self._tell(effect, ref, verdict, sent_at, reason, message, marks_lost=lost)
        return True

    async def _read_by_name(
        self, effect: Launch, ref: JobRef, sent_at: float, *, seen: bool
    ) -> None:
        """Find out whether the Job exists, however long that takes. `seen`: it existed a moment
        ago."""
        tries = 0
        while True:
            while closed_s := self._gate.closed_s(WHAT, ref.ns):
                await clock.sleep(closed_s)
            async with self._readings:
                try:
                    reply = await self._api.call("GET", jobs_path(ref.ns, ref.name))
                except (NotSent, NoAnswer):
                    reply = Reply(0)
            self._gate.heed(WHAT, ref.ns, reply)
            if reply.ok and uid_of(reply.json()):  # a proxy's page shows no Job of anybody's
                fact = read_job(reply.json())
                if is_cron_jobs(reply.json(), effect.schedule.name):
                    message = f"the CronJob of the same name has created the Job {ref.name}"
                    await self._tell(effect, ref, Verdict.TAKEN, sent_at, Why.CRONJOB, message)
                elif fact is None or fact.run != effect.run or fact.attempt != effect.attempt:
                    message = f"a Job named {ref.name} exists and is not this schedule's"
                    await self._tell(effect, ref, Verdict.TAKEN, sent_at, Why.NAME_TAKEN, message)
                else:
                    await self._tell(effect, fact.ref, Verdict.ADOPTED, sent_at, found=fact)
                return
            if reply.absent and seen:
                message = "the Job existed and vanished before it could be read"
                await self._tell(effect, ref, Verdict.UNKNOWN, sent_at, Why.VANISHED, message)
                return
            if reply.absent:
                message = "the create got no answer, and the Job does not exist"
                await self._tell(effect, ref, Verdict.HELD, sent_at, Why.NOT_CREATED, message)
                return
            await clock.sleep(clock.jitter(READ_AGAIN_S[min(tries, len(READ_AGAIN_S) - 1)]))
            tries += 1

    def _say_unanswered(self, effect: Launch) -> None:
        key = ("unanswered", effect.run, effect.attempt)
        self._inbox.hint(key, Unanswered(effect.run, effect.attempt))

    async def _tell(
        self,
        effect: Launch,
        ref: JobRef,
        verdict: Verdict,
        sent_at: float = 0.0,
        reason: Why | None = None,
        message: str = "",
        found: JobFact | None = None,
        marks_lost: tuple[str, ...] = (),
    ) -> None:
        if verdict in (Verdict.ADOPTED, Verdict.TAKEN) or reason in UNCOUNTED:
            self._count(verdict, None)
        await self._report(
            CreateResult(
                run=effect.run,
                attempt=effect.attempt,
                verdict=verdict,
                ref=ref,
                sent_at=sent_at,
                message=message,
                reason=reason,
                found=found,
                marks_lost=marks_lost,
            )
        )

    async def _report(self, message: CreateResult) -> None:
        """Wait while the inbox is full: no result is lost, and this is the back-pressure."""
        while not self._inbox.offer(message):
            await clock.sleep(0.01)

    async def _warm(self, connections: int) -> None:
        """Open connections, so that TLS handshakes come before the due second and not in it."""

        async def one() -> None:
            try:
                await self._api.call("GET", WARM_PATH)
            except (NotSent, NoAnswer):
                return  # the create will find out, and say so

        await asyncio.gather(*(one() for _ in range(connections)))


def uid_of(job: dict[str, Any]) -> str:
    """The uid of the Job that a success shows; empty: it shows none."""
    return str((job.get("metadata") or {}).get("uid", ""))


def classify(reply: Reply, uid: str) -> tuple[Verdict, Why | None]:
    """What an answer to a create proves; `uid` is that of the Job it shows. ADOPTED here means:
    exists, to be read by name."""
    if reply.ok and uid:
        return Verdict.CREATED, None
    if reply.ok:
        return Verdict.UNKNOWN, Why.NO_JOB_IN_ANSWER  # a proxy's page, not the API server's word
    if reply.status in (400, 413, 415, 422) and not reply.from_api_server:
        return Verdict.UNKNOWN, Why.NO_WORD_OF_SERVER  # or a proxy's page would fail the run
    if reply.status == 409 and reply.reason == "AlreadyExists":
        return Verdict.ADOPTED, None
    message = reply.message
    if reply.status in (400, 403, 422) and "denied" in message and "admission" in message.lower():
        return Verdict.REFUSED, Why.DENIED_BY_ADMISSION
    if reply.status == 400 and is_strict(message):
        return Verdict.REFUSED, Why.UNKNOWN_FIELD
    if reply.status in (400, 413, 415, 422):
        return Verdict.REFUSED, Why.INVALID
    if reply.status == 403:
        quota = "exceeded quota" in message or "failed quota" in message
        return Verdict.HELD, Why.QUOTA_EXCEEDED if quota else Why.FORBIDDEN
    if reply.status in (401, 404, 409, 429):
        reasons = {
            401: Why.UNAUTHORIZED,
            404: Why.NAMESPACE_GONE,
            409: Why.CONFLICT,
            429: Why.TOO_MANY_REQUESTS,
        }
        return Verdict.HELD, reasons[reply.status]
    return Verdict.UNKNOWN, Why.SERVER_ERROR
