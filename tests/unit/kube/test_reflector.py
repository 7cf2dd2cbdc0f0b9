"""List and watch: 410 both ways, empty closes, hangs, half lines, and never a hot loop."""

import itertools

import orjson
import pytest
from tests.builders import every, instant, job
from tests.unit.kube.scripted import (
    NO_ANSWER,
    NOBODY_THERE,
    Desk,
    ScriptedApi,
    for_a,
    listing,
    status,
    virtually,
)

from evenkeel import clock as clocks
from evenkeel.core.messages import JobGone, JobSeen, JobsListed
from evenkeel.kube.api import SILENCE_S, Reply
from evenkeel.kube.jobs import JobsListener
from evenkeel.kube.pruner import Pruner
from evenkeel.kube.reflector import Reflector
from evenkeel.resource.job import render


class Listener:
    def __init__(self) -> None:
        self.lists: list[list[str]] = []
        self.changes: list[tuple[str, str]] = []

    def read(self, item):
        return item["metadata"]["name"]

    def listed(self, found, listed_at):
        self.lists.append(found)

    def changed(self, kind, item):
        self.changes.append((kind, item["metadata"]["name"]))


def thing(name: str, version: str = "8") -> dict:
    return {"metadata": {"name": name, "resourceVersion": version}}


def event(kind: str, name: str = "a", version: str = "8") -> dict:
    return {"type": kind, "object": thing(name, version)}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


def follow(answers, watches=(), *, seconds=30.0):
    api, listener, restarts = ScriptedApi(answers, list(watches)), Listener(), []

    async def scenario(clock):
        reflector = Reflector(
            api, "/things", listener, now=clock.now, on_restart=lambda why, _: restarts.append(why)
        )
        await for_a(seconds, reflector.run())

    virtually(scenario)
    return api, listener, restarts


def lists(api) -> int:
    return len(api.calls)


def test_it_lists_then_watches_from_there():
    api, listener, _ = follow([listing(thing("a"), version="41")], [[event("ADDED", "b"), 99.0]])
    assert listener.lists == [["a"]]
    assert listener.changes == [("ADDED", "b")]
    assert api.opened[0].params["resourceVersion"] == "41"
    assert api.opened[0].params["allowWatchBookmarks"] == "true"


def test_a_list_comes_in_pages_and_is_told_as_one():
    pages = [listing(thing("a"), more="next"), listing(thing("b"))]
    api, listener, _ = follow(pages)
    assert listener.lists == [["a", "b"]]
    assert api.calls[1].params["continue"] == "next"


def test_a_watch_that_closes_goes_on_from_the_last_version_without_a_list():
    watches = [[event("ADDED", "b", "50")], [event("BOOKMARK", "", "60")], [99.0]]
    api, listener, _ = follow([listing()], watches)
    assert [call.params["resourceVersion"] for call in api.opened] == ["7", "50", "60"]
    assert lists(api) == 1
    assert listener.changes == [("ADDED", "b")]


@pytest.mark.parametrize(
    "watch", [[status(410, "Expired")], [GONE]], ids=["as an HTTP status", "in the stream"]
)
def test_a_410_leads_to_a_list(watch):
    api, listener, restarts = follow([listing(thing("a"))], [watch, [99.0]])
    assert lists(api) == 2
    assert len(listener.lists) == 2
    assert restarts == ["gone"]


def test_a_410_in_the_middle_of_a_list_starts_it_again():
    answers = [listing(thing("a"), more="x"), status(410, "Expired"), listing(thing("b"))]
    _, listener, _ = follow(answers)
    assert listener.lists == [["b"]]


def test_an_error_in_the_stream_leads_to_a_list():
    error = {"type": "ERROR", "object": {"code": 500, "message": "etcdserver: no leader"}}
    api, _, restarts = follow([listing()], [[error], [99.0]])
    assert lists(api) == 2
    assert restarts == ["broken"]


@pytest.mark.parametrize(
    ("told", "listed"), [([], 2), ([event("ADDED", version="9")], 1)], ids=["nothing", "something"]
)
def test_a_watch_that_falls_silent_is_given_up_whatever_its_client_notices(told, listed):
    """aiohttp does not notice when it closes the connection itself. After one that never told
    anything only a list is to be trusted."""
    after = [event("DELETED", "b", version="10"), 3600.0]
    api, listener, restarts = follow([listing()], [[*told, 3600.0], after], seconds=SILENCE_S + 5)
    assert ("DELETED", "b") in listener.changes
    assert lists(api) == listed
    assert restarts == ["broken"]


ODD_LINES = {
    "half a line": b'{"type":"MODIFIED","object":{"metad',
    "no JSON": b"<html>",
    "JSON of another kind": b'{"kind":"Status","code":503}',
    "a list": b"[]",
    "a number": b"12",
    "an event without an object": b'{"type":"ADDED"}',
    "an object without metadata": b'{"type":"ADDED","object":{}}',
    "an object that is none": b'{"type":"ADDED","object":"x"}',
    "an error that is none": b'{"type":"ERROR","object":"x"}',
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
def test_odd_lines_break_the_watch_and_nothing_else(line):
    _, listener, restarts = follow([listing()], [[line], [event("ADDED", "b"), 99.0]])
    assert listener.changes == [("ADDED", "b")]
    assert restarts == ["broken"]


def test_a_connection_that_breaks_is_taken_up_again():
    _, listener, _ = follow([listing()], [[event("ADDED"), NO_ANSWER], [event("DELETED"), 99.0]])
    assert [kind for kind, _ in listener.changes] == ["ADDED", "DELETED"]


def test_watches_that_worked_and_were_cut_are_taken_up_again_soon():
    """A proxy may cut each after 50 s; only failures in a row are a reason to ask less."""
    watches = [[event("ADDED", "a", str(n)), 50.0, NO_ANSWER] for n in range(10, 60)]
    api, _, _ = follow([listing()], watches, seconds=50 * 51)
    began = [call.at for call in api.opened]
    away = [after - before - 50 for before, after in itertools.pairwise(began)]
    assert len(away) > 40
    assert max(away) < 2


def test_a_silent_watch_ends_by_its_client_and_is_taken_up_again():
    _, listener, restarts = follow(
        [listing()], [[90.0, NO_ANSWER], [event("ADDED"), 999.0]], seconds=120
    )
    assert listener.changes == [("ADDED", "a")]
    assert restarts == ["broken"]


def test_watches_that_close_empty_at_once_are_no_hot_loop():
    api, _, _ = follow([listing()], [[] for _ in range(10_000)], seconds=60)
    assert len(api.opened) < 60 / 0.1 + 1


@pytest.mark.parametrize(
    "answer", [NOBODY_THERE, NO_ANSWER, status(500), status(403, "Forbidden"), status(429)]
)
def test_a_server_that_fails_is_asked_less_and_less(answer):
    api, _, _ = follow([answer], seconds=600)
    assert 15 < lists(api) < 60


def test_a_410_for_ever_is_no_hot_loop():
    api, _, _ = follow([listing()], [[GONE] for _ in range(10_000)], seconds=60)
    assert lists(api) < 130


NO_LISTS = {
    "a proxy's page": Reply(200, b"<html>sign in</html>"),
    "an empty object": Reply(200, b"{}"),
    "a list without a version": Reply(200, b'{"items":[]}'),
}


@pytest.mark.parametrize("answer", NO_LISTS.values(), ids=NO_LISTS)
def test_what_is_no_list_is_not_taken_for_an_empty_one(answer):
    _, listener, _ = follow([answer, listing(thing("a"))])
    assert listener.lists == [["a"]]


@pytest.mark.parametrize("answer", NO_LISTS.values(), ids=NO_LISTS)
def test_what_is_no_list_prunes_nothing(answer):
    desk, api = Desk(), ScriptedApi([answer])

    async def scenario(clock):
        pruner = Pruner(api, desk.inbox, clock=clock, known=bool, namespaces=(), every_s=600)
        await for_a(30, pruner.run())

    virtually(scenario)
    assert desk.reports() == []
    assert 1 < lists(api) < 20


def test_the_pruner_tells_of_all_pages_and_when_they_were_asked_for():
    desk = Desk()
    items = [{"metadata": {"uid": uid}} for uid in ("a", "b")]
    api = ScriptedApi([listing(items[0], more="x"), 5.0, listing(items[1]), listing()])

    began_m: list[float] = []

    async def scenario(clock):
        began_m.append(clock.monotonic())
        pruner = Pruner(api, desk.inbox, clock=clock, known=bool, namespaces=(), every_s=600)
        await for_a(60, pruner.run())

    virtually(scenario)
    (listed,) = desk.reports()
    assert listed.uids == {"a", "b"}
    assert [listed.listed_m] == began_m


@pytest.mark.parametrize(("has", "shown"), [(0, 1), (1, 1), (2, 0)])
def test_what_two_lists_show_and_no_watch_is_fetched_and_shown(has, shown):
    """A schedule that is not known, or only by an older generation."""
    desk, seen, complaints = Desk(), [], []
    metadata = {"uid": "a", "namespace": "shop", "name": "report", "generation": 2}
    whole = Reply(200, orjson.dumps({"metadata": metadata, "spec": {}}))
    api = ScriptedApi([listing({"metadata": metadata}), listing({"metadata": metadata}), whole])

    async def scenario(clock):
        pruner = Pruner(
            api,
            desk.inbox,
            clock=clock,
            known=lambda uid: has,
            namespaces=(),
            every_s=600,
            complain=lambda what, sentence: complaints.append((what, sentence)),
        )
        pruner.see = lambda kind, raw: seen.append((kind, raw["metadata"]["uid"]))
        await pruner.list_once()
        assert seen == []
        await clocks.sleep(600)
        await pruner.list_once()
        assert clock.now() == pruner.heard_at

    virtually(scenario)
    assert seen == [(None, "a")] * shown
    assert [what for what, _ in complaints] == ["schedule not shown by its watch"] * shown


def test_only_the_namespaces_that_are_served_are_listed():
    desk, api = Desk(), ScriptedApi([listing(), listing()])

    async def scenario(clock):
        served = ("shop", "bank")
        await Pruner(
            api, desk.inbox, clock=clock, known=bool, namespaces=served, every_s=600
        ).list_once()

    virtually(scenario)
    assert [call.path.split("/")[-2] for call in api.calls] == ["shop", "bank"]


# --- Jobs -------------------------------------------------------------------------------------

SEEN = every(60)
FACT = job(SEEN, "10:01")


def raw_job(**changes):
    body = orjson.loads(render(SEEN, FACT.run))
    body["metadata"] |= {"uid": "uid-job", "resourceVersion": "9"} | changes.pop("metadata", {})
    return body | {"status": changes}


def test_jobs_become_facts_and_others_are_not_passed_on():
    desk = Desk()
    listener = JobsListener(desk.inbox, "")
    assert listener.read({"metadata": {"name": "theirs"}}) is None
    listener.listed([listener.read(raw_job())], 5.0)
    (listed,) = desk.reports()
    assert isinstance(listed, JobsListed)
    assert [fact.run for fact in listed.facts] == [FACT.run]


def test_a_change_that_says_nothing_new_is_not_passed_on():
    desk = Desk()
    listener = JobsListener(desk.inbox, "")
    listener.changed("ADDED", raw_job(active=1))
    listener.changed("MODIFIED", raw_job(active=1, metadata={"resourceVersion": "10"}))
    assert [type(report) for report in desk.reports()] == [JobSeen]
    listener.changed("MODIFIED", raw_job(ready=1))
    assert [report.fact.state for report in desk.reports()] == ["started"]


def test_a_deleted_job_is_told_with_the_end_that_was_seen():
    desk = Desk()
    listener = JobsListener(desk.inbox, "")
    complete = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": None}
    done = raw_job(**complete | {"completionTime": "2026-03-02T10:01:30Z"})
    listener.changed("ADDED", done)
    listener.changed("DELETED", raw_job())  # a last state from before its end
    (gone,) = [report for report in desk.reports() if isinstance(report, JobGone)]
    assert gone.fact.state == "succeeded"


ANOTHER = {"apiVersion": "evenkeel.dev/v1alpha1", "kind": "ScheduledJob", "controller": True}


@pytest.mark.parametrize("owners", [[], [ANOTHER | {"name": "other", "uid": "uid-other"}]])
@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED"])
def test_a_job_that_loses_its_owner_is_told_gone(kind, owners):
    desk = Desk()
    listener = JobsListener(desk.inbox, "")
    orphan = raw_job(metadata={"ownerReferences": owners})
    if not owners:
        listener.changed("MODIFIED", orphan)
    assert desk.reports() == []
    listener.changed("ADDED", raw_job())
    listener.changed(kind, orphan)
    (gone,) = desk.reports()
    assert isinstance(gone, JobGone) and not gone.proven
    assert gone.fact.run == FACT.run


@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED"])
def test_a_job_whose_notes_are_edited_stays_its_runs(kind):
    """Else its run would never end, and keep its place for ever."""
    desk = Desk()
    listener = JobsListener(desk.inbox, "")
    listener.changed("ADDED", raw_job())
    theirs = {"evenkeel.dev/due": "2026-03-02T09:00:00Z", "evenkeel.dev/attempt": "7"}
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    done |= {"completionTime": "2026-03-02T10:01:30Z"}
    listener.changed(kind, raw_job(metadata={"annotations": theirs, "labels": {}}, **done))
    told = desk.reports()[-1].fact
    assert (told.run, told.attempt, told.state) == (FACT.run, 1, "succeeded")


def test_staleness_is_told_by_when_the_server_was_last_heard():
    async def scenario(clock):
        api = ScriptedApi([listing()], [[event("BOOKMARK"), 500.0]])
        reflector = Reflector(api, "/things", Listener(), now=clock.now)
        await for_a(100, reflector.run())
        assert reflector.silence_s == pytest.approx(100, abs=2)

    virtually(scenario)


def test_a_refusal_is_an_answer_that_tells_nothing():
    async def scenario(clock):
        api = ScriptedApi([status(403, "Forbidden")])
        reflector = Reflector(api, "/things", Listener(), now=clock.now)
        await for_a(400, reflector.run())
        assert reflector.silence_s == pytest.approx(400, abs=2)
        assert reflector.unanswered_s < 60

    virtually(scenario)


def test_no_answer_is_no_answer():
    async def scenario(clock):
        reflector = Reflector(ScriptedApi([NO_ANSWER]), "/things", Listener(), now=clock.now)
        await for_a(400, reflector.run())
        assert reflector.unanswered_s == pytest.approx(400, abs=2)

    virtually(scenario)


def test_a_list_is_told_with_the_time_at_which_it_was_asked_for():
    desk = Desk()
    api = ScriptedApi([5.0, listing(raw_job()), listing()])

    async def scenario(clock):
        reflector = Reflector(api, "/jobs", JobsListener(desk.inbox, ""), now=clock.now)
        await for_a(10, reflector.run())

    virtually(scenario)
    (listed,) = desk.reports()
    assert listed.listed_at == instant("10:00")
