"""Lists of all schedules: where a namespace cannot be listed, and what they tell of clocks."""

import email.utils
from dataclasses import replace
from functools import partial

import orjson
import pytest
from tests.unit.kube.scripted import PAGES, Desk, ScriptedApi, for_a, listing, status, virtually

from evenkeel.core.messages import RequestsListed, SchedulesListed
from evenkeel.kube.api import Reply
from evenkeel.kube.pruner import Pruner
from evenkeel.kube.resources import REQUESTS


def lists(answer, *, ready):
    desk = Desk()

    async def scenario(clock):
        pruner = Pruner(
            ScriptedApi(answer),
            desk.inbox,
            clock=clock,
            known=lambda uid: 1,
            namespaces=("shop", "bank"),
            every_s=600,
            ready=lambda: ready,
        )
        await for_a(30, pruner.run())

    virtually(scenario)
    return [report for report in desk.reports() if isinstance(report, SchedulesListed)]


def bank_is_gone(call):
    if "/bank/" in call.path:
        return status(403, "Forbidden")
    return listing({"metadata": {"uid": "a", "namespace": "shop", "name": "x"}})


def test_a_namespace_that_is_gone_does_not_stop_pruning_in_the_others():
    last = lists(bank_is_gone, ready=True)[-1]
    assert last.uids == {"a"}
    assert last.unlisted == {"bank"}


def test_at_the_start_all_of_them_are_waited_for():
    assert lists(bank_is_gone, ready=False) == []


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_proxys_page_is_no_schedule(page):
    seen = []
    metadata = {"uid": "a", "namespace": "shop", "name": "report", "generation": 2}
    listed = listing({"metadata": metadata})

    async def scenario(clock):
        api = ScriptedApi([listed, listed, page])
        known = lambda uid: 1  # noqa: E731 - by an older generation than the lists show
        pruner = Pruner(api, Desk().inbox, clock=clock, known=known, namespaces=(), every_s=600)
        pruner.see = lambda kind, raw: seen.append(raw)
        await pruner.list_once()
        await pruner.list_once()
        assert len(api.calls) == 3

    virtually(scenario)
    assert seen == []


def test_where_none_can_be_listed_nothing_is_said():
    assert lists(lambda call: status(403, "Forbidden"), ready=True) == []


# --- clocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead_s", "skew_s"), [(0.0, 0), (0.7, 0), (-0.7, 0), (6.5, 6), (-7.5, -7), (3600.0, 3600)]
)
def test_how_far_the_servers_clock_is_from_ours(ahead_s, skew_s):
    sentences = []

    async def scenario(clock):
        def dated(call):
            moment = email.utils.formatdate(int(clock.now() + ahead_s), usegmt=True)
            return replace(listing(), headers={"Date": moment})

        pruner = Pruner(
            ScriptedApi(dated),
            Desk().inbox,
            clock=clock,
            known=lambda uid: 1,
            namespaces=(),
            every_s=600,
            complain=lambda what, sentence: sentences.append(f"{what} {sentence}"),
        )
        await pruner.list_once()
        assert abs(pruner.clock_skew_s - skew_s) <= 1
        assert (pruner.clock_skew_s == 0) is (skew_s == 0)

    virtually(scenario)
    assert bool(sentences) is (abs(skew_s) > 5)


def test_an_answer_without_a_date_says_nothing_of_clocks():
    async def scenario(clock):
        pruner = Pruner(
            ScriptedApi(lambda call: listing()),
            Desk().inbox,
            clock=clock,
            known=lambda uid: 1,
            namespaces=(),
            every_s=600,
        )
        await pruner.list_once()
        assert pruner.clock_skew_s == 0

    virtually(scenario)


# --- requests -----------------------------------------------------------------------------------

GROUPS = Reply(200, b'{"kind": "APIGroupList", "groups": [{"name": "evenkeel.dev"}]}')
NOT_THERE = Reply(404, b"404 page not found")


def named(*plurals):
    """What discovery tells."""
    rows = [{"name": plural} for plural in plurals]
    return Reply(200, orjson.dumps({"kind": "APIResourceList", "resources": rows}))


def requests_of(answer, *, seconds=1.0, ready=True):
    """The lists of requests that are told, and the API that was asked."""
    desk, api = Desk(), ScriptedApi(answer)

    async def scenario(clock):
        pruner = Pruner(
            api,
            desk.inbox,
            resource=REQUESTS,
            clock=clock,
            known=lambda uid: 1,
            namespaces=(),
            every_s=600,
            ready=lambda: ready,
        )
        await for_a(seconds, pruner.run())

    virtually(scenario)
    return desk.reports(), api


def without_requests(call, *, discovery):
    if call.path == "/apis":
        return GROUPS
    return discovery if call.path == "/apis/evenkeel.dev/v1alpha1" else NOT_THERE


def test_requests_are_listed_as_schedules_are():
    found = listing({"metadata": {"uid": "a", "namespace": "shop", "name": "again"}})
    (told,), api = requests_of(lambda call: found)
    assert isinstance(told, RequestsListed)
    assert told.uids == {"a"}
    assert api.calls[-1].path == "/apis/evenkeel.dev/v1alpha1/runrequests"


def test_where_there_is_no_such_resource_there_are_no_requests():
    """The operator does all else without it, and must not wait for a list."""
    discovery = named("scheduledjobs")
    reports, api = requests_of(partial(without_requests, discovery=discovery), seconds=30)
    (told,) = reports
    assert told.uids == frozenset()
    assert len({call.at for call in api.calls}) == 3  # as often it must not be there


NO_PROOF = {
    "a proxy's 404": named("scheduledjobs", "runrequests"),
    "discovery does not answer": status(503),
}


@pytest.mark.parametrize("discovery", NO_PROOF.values(), ids=NO_PROOF)
def test_a_404_alone_removes_no_request(discovery):
    """All that has not begun would be stopped."""
    reports, _ = requests_of(partial(without_requests, discovery=discovery), seconds=600)
    assert reports == []


def test_a_resource_that_is_there_at_the_second_look_removes_no_request():
    looks = iter([NOT_THERE, *[listing()] * 9])

    def answer(call):
        if call.path in ("/apis", "/apis/evenkeel.dev/v1alpha1"):
            return without_requests(call, discovery=named("scheduledjobs"))
        return next(looks)

    (told,), api = requests_of(answer, seconds=30)
    assert told.uids == frozenset()
    assert sum(call.path.endswith("/runrequests") for call in api.calls) == 3


def test_what_no_watch_has_shown_yet_is_counted():
    found = listing({"metadata": {"uid": "a", "name": "again", "generation": 2}})

    async def scenario(clock):
        known = {"a": 0}
        pruner = Pruner(
            ScriptedApi(lambda call: found),
            Desk().inbox,
            resource=REQUESTS,
            clock=clock,
            known=known.__getitem__,
            namespaces=(),
            every_s=600,
        )
        pruner.see = lambda kind, raw: None
        await pruner.list_once()
        assert pruner.unseen == 1
        known["a"] = 2
        await pruner.list_once()
        assert pruner.unseen == 0

    virtually(scenario)
