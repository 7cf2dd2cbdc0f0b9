"""Lists of all schedules: where a namespace cannot be listed, and what they tell of clocks."""

import email.utils
from dataclasses import replace

import pytest
from tests.unit.kube.scripted import PAGES, Desk, ScriptedApi, for_a, listing, status, virtually

from evenkeel.core.messages import SchedulesListed
from evenkeel.kube.pruner import Pruner


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
