"""The operator tells whether the cluster's CRD is the one it was built with."""

import orjson
import pytest
from tests.unit.kube.scripted import NOBODY_THERE, PAGES, ScriptedApi, for_a, status, virtually

from evenkeel.kube.api import Reply
from evenkeel.kube.crd_schema import EVERY_S, CrdSchema

OURS, THEIRS = "059b6775ec6e", "0123456789ab"


def served(hash_: str) -> Reply:
    """The published schema of a CRD, as an API server shows it."""
    described = {"description": f"Creates Jobs. Schema {hash_}.", "type": "object"}
    document = {"components": {"schemas": {"dev.evenkeel.v1alpha1.ScheduledJob": described}}}
    return Reply(200, orjson.dumps(document))


def looked(*answers, for_s: float = 60.0):
    """Whether the schema matches after so long, and what was asked."""
    api = ScriptedApi(list(answers))
    schema = CrdSchema(api, ours=OURS)

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
    ],
)
def test_what_cannot_be_told_is_neither(answer):
    assert looked(answer, answer)[0] is None
