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


def check(answers, *namespaces: str):
    api = ScriptedApi(answers)
    virtually(lambda clock: check_surroundings(api, namespaces))
    return api


def test_where_all_is_there_nothing_is_waited_for():
    assert max(call.at for call in check(in_order).calls) == 0


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
