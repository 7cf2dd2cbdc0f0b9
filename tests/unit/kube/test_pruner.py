"""Lists of all schedules, where one of the namespaces cannot be listed."""

from tests.unit.kube.scripted import Desk, ScriptedApi, for_a, listing, status, virtually

from evenkeel.core.messages import SchedulesListed
from evenkeel.kube.pruner import Pruner


def lists(answer, *, ready):
    desk = Desk()

    async def scenario(clock):
        pruner = Pruner(
            ScriptedApi(answer),
            desk.inbox,
            now=clock.now,
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


def test_where_none_can_be_listed_nothing_is_said():
    assert lists(lambda call: status(403, "Forbidden"), ready=True) == []
