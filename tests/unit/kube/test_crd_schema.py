"""The operator tells whether the cluster's CRD is the one it was built with."""

import orjson
import pytest
from tests.unit.kube.scripted import NOBODY_THERE, PAGES, ScriptedApi, for_a, status, virtually

from evenkeel.kube.api import Reply
from evenkeel.kube.crd_schema import EVERY_S, CrdSchema

OURS, THEIRS = "059b6775ec6e", "0123456789ab"
REQUESTS = "feedfeedfeed"


def served(hash_: str | None, *, requests: str | None = REQUESTS) -> Reply:
    """The published schemas of the CRDs, as an API server shows them."""
    schemas = {
        f"dev.evenkeel.v1alpha1.{kind}": {"description": f"Does it. Schema {each}."}
        for kind, each in (("ScheduledJob", hash_), ("RunRequest", requests))
        if each is not None
    }
    return Reply(200, orjson.dumps({"components": {"schemas": schemas}}))


def looked(*answers, for_s: float = 60.0):
    """Whether the schemas match after so long, and what was asked."""
    api = ScriptedApi(list(answers))
    schema = CrdSchema(api, ours={"ScheduledJob": OURS, "RunRequest": REQUESTS})

    async def scenario(clock):
        await for_a(for_s, schema.run())

    virtually(scenario)
    return schema.matches, [call.path for call in api.calls]


def test_the_same_schema_matches():
    matches, asked = looked(served(OURS))
    assert matches is True
    assert asked == ["/openapi/v3/apis/evenkeel.dev/v1alpha1"]


def test_another_schema_is_told_once_and_names_both(caplog):
    matches, asked = looked(*[served(THEIRS)] * 5, for_s=3.5 * EVERY_S)
    assert matches is False
    assert len(asked) == 5
    (told,) = [each for each in caplog.records if each.message == "crd schema differs"]
    sentence = told.fields["sentence"]
    assert OURS in sentence
    assert THEIRS in sentence


def test_each_kind_that_differs_is_told(caplog):
    answer = served(THEIRS, requests=THEIRS)
    assert looked(answer, answer)[0] is False
    told = [each for each in caplog.records if each.message == "crd schema differs"]
    assert [each.fields["kind"] for each in told] == ["ScheduledJob", "RunRequest"]


def test_a_crd_that_is_missing_is_told_by_its_kind(caplog):
    answer = served(OURS, requests=None)
    assert looked(answer, answer)[0] is None
    (told,) = [each for each in caplog.records if each.message == "crd schema unknown"]
    assert told.fields["sentence"].endswith("which schema the CRD has of RunRequest")


def test_a_crd_that_is_published_a_moment_late_is_no_other_one(caplog):
    matches, _ = looked(served(THEIRS), served(OURS))
    assert matches is True
    assert "crd schema differs" not in [each.message for each in caplog.records]


def test_a_crd_that_is_upgraded_later_is_noticed():
    assert looked(served(OURS), served(THEIRS), served(THEIRS), for_s=EVERY_S + 60)[0] is False


@pytest.mark.parametrize(
    "answer",
    [
        NOBODY_THERE,
        status(403, "Forbidden"),
        status(404, "NotFound"),
        PAGES["sign in"],
        Reply(200, b'{"components": {"schemas": {}}}'),
        Reply(200, b'{"components": null}'),
        served(None),
        served(OURS, requests=None),
    ],
)
def test_what_cannot_be_told_is_neither(answer):
    assert looked(answer, answer)[0] is None
