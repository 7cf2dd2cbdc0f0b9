"""Statuses are written behind: coalesced, one a second, creates first, never out of order."""

import asyncio

import pytest
from tests.unit.kube.scripted import (
    NO_ANSWER,
    NOBODY_THERE,
    Desk,
    ScriptedApi,
    for_a,
    status,
    virtually,
)

from evenkeel.core.messages import RequestGone, RequestWritten, ScheduleGone, StatusWritten
from evenkeel.kube.api import Reply
from evenkeel.kube.resources import REQUESTS
from evenkeel.kube.status_sync import StatusSync
from evenkeel.kube.write_turns import LAG_LIMIT_S

UID = "uid-report"
GONE_UID = status(
    409,
    "Conflict",
    'Operation cannot be fulfilled on scheduledjobs.evenkeel.dev "report": Precondition failed: '
    "UID in precondition: uid-report, UID in object meta: uid-other",
)


def written(version: int = 9) -> Reply:
    return Reply(200, b'{"metadata":{"resourceVersion":"%d"}}' % version)


class Documents:
    """Statuses that change whenever they are asked to."""

    def __init__(self) -> None:
        self.revisions = {UID: 1}

    def __call__(self, uid):
        revision = self.revisions.get(uid)
        ns = namespace(uid)
        return (ns, uid.rpartition("/")[2][4:], {"n": revision}, revision) if revision else None


def namespace(uid):
    """`bank/uid-report` is of the bank, `uid-report` of the shop."""
    return uid.rpartition("/")[0] or "shop"


def status_sync(api, desk, clock, documents, *, in_flight=2, busy=lambda: False):
    return StatusSync(
        api, desk.inbox, clock, documents, in_flight=in_flight, busy=busy, namespace=namespace
    )


def sync(api, scenario, *, busy=lambda: False, in_flight=2):
    """Run `scenario(sync, documents)` beside the writers; what was reported."""
    desk = Desk()

    async def whole(clock):
        documents = Documents()
        it = status_sync(api, desk, clock, documents, in_flight=in_flight, busy=busy)
        play = asyncio.create_task(scenario(it, documents))
        await for_a(300, it.run())
        await play

    virtually(whole)
    return desk.reports()


def change(it, documents, uid=UID) -> None:
    documents.revisions[uid] = documents.revisions.get(uid, 0) + 1
    it.dirty(uid)


def test_a_status_is_patched_with_its_uid_as_precondition():
    api = ScriptedApi([written()])

    async def scenario(it, documents):
        it.dirty(UID)

    reports = sync(api, scenario)
    (call,) = api.calls
    assert call.verb == "PATCH"
    assert call.path == "/apis/evenkeel.dev/v1alpha1/namespaces/shop/scheduledjobs/report/status"
    assert call.body["metadata"]["uid"] == UID
    assert reports == [StatusWritten(UID, 1)]


def test_changes_within_a_second_are_one_patch():
    api = ScriptedApi([written()])

    async def scenario(it, documents):
        for _ in range(50):
            change(it, documents)
            await asyncio.sleep(0.1)

    sync(api, scenario)
    assert 5 <= len(api.calls) <= 7
    gaps = [b.at - a.at for a, b in zip(api.calls, api.calls[1:], strict=False)]
    assert min(gaps) >= 0.999
    assert api.calls[-1].body["status"] == {"n": 51}


def test_a_write_on_its_way_is_never_overtaken():
    api = ScriptedApi([5.0, written(), written()])

    async def scenario(it, documents):
        it.dirty(UID)
        await asyncio.sleep(1.5)
        change(it, documents)
        assert await it.write_now(UID, 2)

    sync(api, scenario)
    ends = [call.body["status"]["n"] for call in api.calls]
    assert ends == [1, 2]
    assert api.calls[1].at >= 5.0


def test_creates_go_first_but_not_for_ever():
    api = ScriptedApi([written()])

    async def scenario(it, documents):
        it.dirty(UID)

    sync(api, scenario, busy=lambda: True)
    (call,) = api.calls
    assert LAG_LIMIT_S <= call.at <= LAG_LIMIT_S + 1


@pytest.mark.parametrize("answer", [NO_ANSWER, status(500), status(429), status(403)])
def test_a_write_that_fails_is_tried_again_less_and_less_often(answer):
    api = ScriptedApi([answer])

    async def scenario(it, documents):
        it.dirty(UID)

    assert sync(api, scenario) == []
    assert 8 < len(api.calls) < 40


def test_an_api_server_that_is_not_there_is_looked_for_by_few_and_found_soon():
    api = ScriptedApi([NOBODY_THERE])
    back_at: list[float] = []

    async def scenario(it, documents):
        for number in range(100):
            change(it, documents, f"uid-{number}")
        await asyncio.sleep(120)
        assert len(api.calls) < 2 * 120 / 3  # two writers, every few seconds, for all hundred
        assert it.failing
        api.answers = [written()]
        back_at.append(asyncio.get_running_loop().time())

    reports = sync(api, scenario)
    assert {report.uid for report in reports} == {f"uid-{number}" for number in range(100)}
    written_at = [call.at for call in api.calls][-100:]
    assert max(written_at) - back_at[0] < 8


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_asks_for_a_pause_has_it_for_all_statuses(code):
    busy = status(code, "", "slow down", **{"Retry-After": "30"})
    api = ScriptedApi([written(), busy, written()])

    async def scenario(it, documents):
        for number in range(100):
            change(it, documents, f"uid-{number}")

    reports = sync(api, scenario)
    assert {report.uid for report in reports} == {f"uid-{number}" for number in range(100)}
    # What was under way beside it is answered, and does not end the pause.
    assert len([call for call in api.calls if call.at < 30]) <= 3


def test_a_429_that_does_not_say_how_long_is_a_second():
    api = ScriptedApi([status(429), written()])

    async def scenario(it, documents):
        for number in range(100):
            change(it, documents, f"uid-{number}")

    sync(api, scenario)
    assert [call.at for call in api.calls if 0 < call.at < 1] == []
    assert len({call.path for call in api.calls if call.at < 1.1}) == 100


def test_a_write_that_fails_at_first_is_done_in_the_end_with_the_newest_document():
    api = ScriptedApi([NO_ANSWER, status(503), written()])

    async def scenario(it, documents):
        it.dirty(UID)
        await asyncio.sleep(0.2)
        change(it, documents)

    assert sync(api, scenario)[-1] == StatusWritten(UID, 2)


@pytest.mark.parametrize("answer", [status(404, "NotFound"), GONE_UID])
def test_a_schedule_that_is_gone_or_another_one_is_reported_gone(answer):
    api = ScriptedApi([answer])

    async def scenario(it, documents):
        it.dirty(UID)

    assert sync(api, scenario) == [ScheduleGone(UID)]
    assert len(api.calls) == 1


def test_a_conflict_on_a_schedule_whose_name_holds_uid_does_not_make_it_gone():
    conflict = status(
        409, "Conflict", 'Operation cannot be fulfilled on scheduledjobs "fluid-sync": modified'
    )
    api = ScriptedApi([conflict, written(12), written(13)])

    async def scenario(it, documents):
        it.dirty(UID)

    assert sync(api, scenario) == [StatusWritten(UID, 1)]


def test_after_somebody_elses_write_it_goes_on_from_theirs():
    conflict = status(409, "Conflict", "the object has been modified")
    api = ScriptedApi([conflict, written(12), written(13)])

    async def scenario(it, documents):
        it.dirty(UID)

    sync(api, scenario)
    assert [call.verb for call in api.calls] == ["PATCH", "GET", "PATCH"]
    assert api.calls[2].body["metadata"] == {"uid": UID, "resourceVersion": "12"}


def test_after_somebody_elses_write_the_status_is_sent_as_it_stands_by_then():
    """The first write may hang for seconds: its document may announce a run that was withdrawn
    since."""
    conflict = status(409, "Conflict", "the object has been modified")
    api = ScriptedApi([5.0, conflict, written(12), written(13)])

    async def scenario(it, documents):
        it.dirty(UID)
        await asyncio.sleep(1.0)
        documents.revisions[UID] = 2

    assert sync(api, scenario) == [StatusWritten(UID, 2)]
    assert [call.body["status"] for call in api.calls if call.verb == "PATCH"] == [
        {"n": 1},
        {"n": 2},
    ]


def test_write_now_says_whether_it_is_stored():
    async def stored(it, documents):
        assert await it.write_now(UID, 1)

    async def not_stored(it, documents):
        assert not await it.write_now(UID, 1)

    sync(ScriptedApi([written()]), stored)
    sync(ScriptedApi([NO_ANSWER]), not_stored)
    sync(ScriptedApi([status(403)]), not_stored)


def test_one_write_serves_all_creates_that_need_it():
    api = ScriptedApi([written()])

    async def scenario(it, documents):
        change(it, documents)
        assert all(await asyncio.gather(*(it.write_now(UID, 2) for _ in range(100))))

    sync(api, scenario)
    assert [call.body["status"]["n"] for call in api.calls] == [2]


def test_a_write_serves_no_create_of_a_later_revision():
    api = ScriptedApi([written()])

    async def scenario(it, documents):
        assert await it.write_now(UID, 1)
        change(it, documents)
        assert await it.write_now(UID, 2)

    sync(api, scenario)
    assert [call.body["status"]["n"] for call in api.calls] == [1, 2]


def test_what_was_announced_seconds_before_needs_no_write_at_the_due_second():
    api = ScriptedApi([written()])

    async def scenario(it, documents):
        change(it, documents)
        await asyncio.sleep(10)
        before = asyncio.get_running_loop().time()
        assert await it.write_now(UID, 2)
        assert asyncio.get_running_loop().time() == before

    sync(api, scenario)
    assert [call.body["status"]["n"] for call in api.calls] == [2]


@pytest.mark.parametrize(("seen", "writes"), [(0, 1), (8, 1), (9, 1), (10, 2)])
def test_what_somebody_else_may_have_taken_back_is_written_again(seen, writes):
    """Ours was version 9; the watch shows what it shows."""
    api = ScriptedApi([written(9)])

    async def scenario(it, documents):
        it.seen_version = lambda uid: seen
        change(it, documents)
        await asyncio.sleep(10)
        assert await it.write_now(UID, 2)

    sync(api, scenario)
    assert [call.body["status"]["n"] for call in api.calls] == [2] * writes


def test_a_write_that_fails_serves_all_creates_that_wait_for_it():
    api = ScriptedApi([10.0, NO_ANSWER, 10.0, NO_ANSWER, 10.0, NO_ANSWER, 10.0, NO_ANSWER])

    async def scenario(it, documents):
        change(it, documents)
        await asyncio.sleep(5)  # the older document is on its way
        change(it, documents)
        began = asyncio.get_running_loop().time()
        stored = await asyncio.gather(*(it.write_now(UID, 3) for _ in range(20)))
        assert not any(stored)
        assert asyncio.get_running_loop().time() - began < 16

    sync(api, scenario)


def test_a_schedule_that_is_gone_from_the_scheduler_is_not_written():
    api = ScriptedApi([written()])

    async def scenario(it, documents):
        documents.revisions.clear()
        it.dirty(UID)

    sync(api, scenario)
    assert api.calls == []


def test_nothing_is_kept_of_a_schedule_that_went_while_it_was_written():
    api, left = ScriptedApi([1.0, written()]), []

    async def scenario(it, documents):
        it.dirty(UID)
        await asyncio.sleep(0.5)
        documents.revisions.clear()
        it.forget(UID)
        await asyncio.sleep(5)
        left.extend(what for what, number in it.sizes().items() if number)

    assert sync(api, scenario) == []
    assert left == []


def test_a_flush_writes_what_waits_without_pauses():
    api, desk = ScriptedApi([written()]), Desk()

    async def scenario(clock):
        documents = Documents()
        it = status_sync(api, desk, clock, documents)
        for n in range(20):
            change(it, documents, f"uid-{n}")
        await it.flush(within_s=5)
        assert it.waiting == 0
        assert clock.monotonic() < 1001

    virtually(scenario)
    assert len(api.calls) == 20


def test_a_flush_against_a_dead_server_ends_in_time():
    api, desk = ScriptedApi([1.0, NO_ANSWER] * 1000), Desk()

    async def scenario(clock):
        documents = Documents()
        it = status_sync(api, desk, clock, documents)
        for n in range(1000):
            change(it, documents, f"uid-{n}")
        await it.flush(within_s=5)
        assert clock.monotonic() < 1008

    virtually(scenario)


def test_each_write_goes_on_from_the_version_that_the_last_one_answered():
    api = ScriptedApi([written(12), written(13), written(14)])

    async def scenario(it, documents):
        for _ in range(3):
            change(it, documents)
            await asyncio.sleep(5)

    sync(api, scenario)
    versions = [call.body["metadata"].get("resourceVersion") for call in api.calls]
    assert versions == [None, "12", "13"]


def test_a_page_of_a_proxy_that_says_404_does_not_make_a_schedule_gone():
    api = ScriptedApi([Reply(404, b"<html>no such page</html>"), written()])

    async def scenario(it, documents):
        it.dirty(UID)

    assert sync(api, scenario) == [StatusWritten(UID, 1)]


def test_a_conflict_with_a_schedule_made_anew_under_the_name_is_not_written_over_it():
    another = Reply(200, b'{"metadata":{"uid":"uid-other","resourceVersion":"12"}}')
    api = ScriptedApi([status(409, "Conflict", "the object has been modified"), another])

    async def scenario(it, documents):
        it.dirty(UID)

    assert sync(api, scenario) == [ScheduleGone(UID)]
    assert [call.verb for call in api.calls] == ["PATCH", "GET"]


def test_a_proxys_page_is_no_stored_status():
    api = ScriptedApi([Reply(200, b"<html>welcome</html>"), written()])

    async def scenario(it, documents):
        it.dirty(UID)
        await asyncio.sleep(60)

    reports = sync(api, scenario)
    assert [call.verb for call in api.calls] == ["PATCH", "PATCH"]
    assert [type(report) for report in reports] == [StatusWritten]


def test_a_conflict_that_is_answered_by_a_page_overwrites_nothing():
    """Without a version the patch would have no precondition."""
    api = ScriptedApi([status(409, "Conflict"), Reply(200, b"<html>"), written()])

    async def scenario(it, documents):
        it.dirty(UID)
        await asyncio.sleep(0.5)
        assert [call.verb for call in api.calls] == ["PATCH", "GET"]
        await asyncio.sleep(60)

    sync(api, scenario)
    assert [call.verb for call in api.calls] == ["PATCH", "GET", "PATCH"]


# --- namespaces that hang, or that are told to pause ----------------------------------------------


class Hanging:
    """A webhook of namespace `hangs` lets every write hang; the others are written at once."""

    def __init__(self) -> None:
        self.begun: list[tuple[float, str]] = []
        self.hanging = 0
        self.most: list[tuple[float, int]] = []

    async def call(self, verb, path, **_):
        now = asyncio.get_running_loop().time()
        self.begun.append((now, path))
        if "/hangs/" not in path:
            return written()
        self.hanging += 1
        self.most.append((now, self.hanging))
        await asyncio.sleep(10)
        self.hanging -= 1
        raise NO_ANSWER

    def watch(self, path, params):
        raise AssertionError


def test_a_namespace_whose_writes_hang_delays_nobody_else():
    api = Hanging()
    lags: list[float] = []

    async def scenario(it, documents):
        for number in range(300):
            change(it, documents, f"hangs/uid-{number}")
        for _ in range(100):
            await asyncio.sleep(2)
            changed_at = asyncio.get_running_loop().time()
            change(it, documents, "quiet/uid-report")
            await asyncio.sleep(0.9)
            lags.append(max(at for at, path in api.begun if "/quiet/" in path) - changed_at)
        assert it.behind(60) == {"hangs"}

    sync(api, scenario, in_flight=4)
    assert len(lags) == 100
    assert 0 <= min(lags) <= max(lags) < 0.2
    assert max(count for at, count in api.most if at < 1) <= 4
    assert max(count for at, count in api.most if at > 11) <= 2


def test_a_create_that_needs_its_status_does_not_wait_for_writes_that_hang():
    async def scenario(it, documents):
        for number in range(40):
            change(it, documents, f"hangs/uid-{number}")
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        assert await it.write_now(UID, 1)
        assert asyncio.get_running_loop().time() - began < 0.1

    sync(Hanging(), scenario, in_flight=4)


def test_at_the_end_a_namespace_whose_writes_hang_keeps_nobody_elses_from_being_stored():
    api, desk = Hanging(), Desk()

    async def scenario(clock):
        documents = Documents()
        it = status_sync(api, desk, clock, documents, in_flight=4)
        for number in range(100):
            change(it, documents, f"hangs/uid-{number}")
        for number in range(100):
            change(it, documents, f"quiet/uid-{number}")
        assert await it.flush(within_s=5) == 100

    virtually(scenario)
    assert len({path for _, path in api.begun if "/quiet/" in path}) == 100


def answers(refusal, *namespaces):
    """These namespaces hear the refusal, all others are written."""
    return lambda call: refusal if any(f"/{ns}/" in call.path for ns in namespaces) else written()


DENIED = 'admission webhook "tenant.example" denied the request: slow down'
PAUSES = {
    "a webhook's 429": (status(429, "", DENIED, **{"Retry-After": "60"}), ["one"], False),
    "a webhook's 503": (status(503, "", DENIED, **{"Retry-After": "60"}), ["one"], False),
    "webhooks of two": (status(429, "", DENIED, **{"Retry-After": "60"}), ["one", "two"], False),
    "a 429 of nobody known": (status(429, "", "busy", **{"Retry-After": "60"}), ["one"], False),
    "a 429 that two hear": (status(429, "", "busy", **{"Retry-After": "60"}), ["one", "two"], True),
    "a 503 that two hear": (status(503, "", "busy", **{"Retry-After": "60"}), ["one", "two"], True),
    "the API server's own limit": (
        Reply(429, b"Too many requests, please try again later.\n", {"Retry-After": "60"}),
        ["one"],
        True,
    ),
}


@pytest.mark.parametrize(("refusal", "hear_it", "all_wait"), PAUSES.values(), ids=PAUSES)
def test_whom_a_pause_holds_back(refusal, hear_it, all_wait):
    api = ScriptedApi(answers(refusal, *hear_it))

    async def scenario(it, documents):
        for ns in hear_it:
            change(it, documents, f"{ns}/uid-report")
        await asyncio.sleep(5)
        change(it, documents, "quiet/uid-report")

    sync(api, scenario)
    (quiet,) = [call.at for call in api.calls if "/quiet/" in call.path]
    assert (quiet > 59.9) == all_wait
    refused = [call.at for call in api.calls if "/one/" in call.path]
    assert min(refused[1:]) > 59.9


# --- requests -----------------------------------------------------------------------------------


def request_sync(answers, seconds=30.0):
    """One request whose status has changed; the API that was asked, and what was reported."""
    desk, api = Desk(), ScriptedApi(answers)

    async def whole(clock):
        it = StatusSync(
            api,
            desk.inbox,
            clock,
            Documents(),
            resource=REQUESTS,
            in_flight=2,
            busy=lambda: False,
            namespace=namespace,
        )
        it.dirty(UID)
        await for_a(seconds, it.run())

    virtually(whole)
    return api, desk.reports()


def test_the_status_of_a_request_is_written_to_the_request():
    api, reports = request_sync([written()])
    (call,) = api.calls
    assert call.path == "/apis/evenkeel.dev/v1alpha1/namespaces/shop/runrequests/report/status"
    assert reports == [RequestWritten(UID, 1)]


def test_a_request_that_is_gone_is_told():
    _, reports = request_sync([status(404, "NotFound")])
    assert reports == [RequestGone(UID)]


def test_a_conflict_reads_the_request_again():
    api, reports = request_sync([status(409, "Conflict"), written(12), written(13)])
    assert [call.verb for call in api.calls] == ["PATCH", "GET", "PATCH"]
    assert all("/runrequests/report" in call.path for call in api.calls)
    assert reports == [RequestWritten(UID, 1)]
