"""What is looked at before the start, and what is said of it."""

import pytest
from tests.unit.kube.scripted import Call, ScriptedApi, listing, status, virtually

from evenkeel.errors import CannotStart
from evenkeel.kube.api import Reply
from evenkeel.kube.surroundings import check_surroundings

GROUPS = Reply(200, b'{"kind":"APIGroupList","groups":[{"name":"evenkeel.dev"}]}')
RESOURCES = Reply(200, b'{"kind":"APIResourceList","resources":[{"name":"scheduledjobs"}]}')
ALLOWED = Reply(201, b'{"status":{"allowed":true}}')


def in_order(call: Call) -> Reply:
    """Where all is as it should be."""
    if call.verb == "POST":
        return ALLOWED
    if call.path == "/apis":
        return GROUPS
    return RESOURCES if call.path == "/apis/evenkeel.dev/v1alpha1" else listing()


def check(answers, *namespaces: str) -> tuple[ScriptedApi, tuple[str, ...]]:
    """The API that was asked, and which namespaces are served."""
    api, served = ScriptedApi(answers), []

    async def scenario(clock):
        served.extend(await check_surroundings(api, namespaces))

    virtually(scenario)
    return api, tuple(served)


def test_where_all_is_there_nothing_is_waited_for():
    api, served = check(in_order)
    assert max(call.at for call in api.calls) == 0
    assert served == ()


@pytest.mark.parametrize(
    ("verb", "resource", "said"),
    [
        ("watch", "runrequests", "watch runrequests"),
        ("create", "runrequests", "create runrequests"),
        ("patch", "runrequests", "patch runrequests/status"),
        ("create", "jobs", "create jobs"),
    ],
    ids=str,
)
def test_a_right_that_is_missing_is_named(verb, resource, said):
    def without(call: Call) -> Reply:
        asked = call.body["spec"]["resourceAttributes"] if call.verb == "POST" else {}
        missing = (asked.get("verb"), asked.get("resource")) == (verb, resource)
        return DENIED if missing else in_order(call)

    with pytest.raises(CannotStart, match=f"not allowed to {said}; see Rights"):
        check(without)


# --- several namespaces ---------------------------------------------------------------------------

DENIED = Reply(201, b'{"status":{"allowed":false}}')


def may_not_list(call: Call) -> Reply:
    return status(403, "Forbidden", "no Role") if "/bank/" in call.path else in_order(call)


def may_not_create(call: Call) -> Reply:
    if call.verb == "POST" and call.body["spec"]["resourceAttributes"]["namespace"] == "bank":
        return DENIED
    return in_order(call)


bank_is_forbidden = pytest.mark.parametrize("answers", [may_not_list, may_not_create])


@bank_is_forbidden
def test_one_that_is_forbidden_does_not_keep_the_others_from_being_served(answers, caplog):
    assert check(answers, "shop", "bank", "web")[1] == ("shop", "web")
    (said,) = caplog.records
    assert said.levelname == "ERROR"
    assert said.fields["ns"] == "bank"


@bank_is_forbidden
def test_where_none_can_be_served_it_does_not_start(answers):
    with pytest.raises(CannotStart, match="not allowed to"):
        check(answers, "bank")


@pytest.mark.parametrize("answer", [status(401), status(404), status(500)])
def test_what_concerns_all_of_them_keeps_it_from_starting(answer):
    with pytest.raises(CannotStart):
        check(lambda call: answer if "/bank/" in call.path else in_order(call), "shop", "bank")


# --- discovery ------------------------------------------------------------------------------------


LAGGING = {
    "/apis": Reply(200, b'{"kind":"APIGroupList","groups":[]}'),
    "/apis/evenkeel.dev/v1alpha1": status(404, "NotFound"),
}


@pytest.mark.parametrize("path", LAGGING)
def test_discovery_that_lags_behind_the_resource_is_waited_for(path):
    """Kopf asks it once: what it does not name then is never watched."""
    asked = []

    def answer(call):
        asked.append(call.path)
        return LAGGING[path] if call.path == path and asked.count(path) < 3 else in_order(call)

    check(answer)
    assert asked.count(path) == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [(LAGGING["/apis"], "in a moment"), (status(403, "Forbidden", "not for you"), "not for you")],
)
def test_discovery_that_never_names_the_resource_is_told(answer, words):
    with pytest.raises(CannotStart, match=words):
        check(lambda call: answer if call.path == "/apis" else in_order(call))
