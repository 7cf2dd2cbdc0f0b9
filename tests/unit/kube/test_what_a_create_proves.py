"""What a create proves, by the API server's real words: its verdict, and what is read by name."""

import asyncio

import orjson
import pytest
from tests.builders import every, instant
from tests.unit.kube.scripted import (
    CREATED,
    NO_ANSWER,
    NOBODY_THERE,
    PAGES,
    Desk,
    ScriptedApi,
    launcher,
    status,
    virtually,
)

from evenkeel.core.effects import Launch
from evenkeel.core.messages import Unanswered
from evenkeel.kube.api import Reply
from evenkeel.kube.launcher import READ_AGAIN_S, classify, uid_of
from evenkeel.model import RunId, Verdict
from evenkeel.resource.job import LABEL_UID, OWNER, render

TABLE = {
    "it was created": (CREATED, Verdict.CREATED, None),
    "a Job of that name exists": (
        status(409, "AlreadyExists", 'jobs.batch "report-x" already exists'),
        Verdict.ADOPTED,
        None,
    ),
    "another conflict": (
        status(409, "Conflict", "object was being deleted"),
        Verdict.HELD,
        "Conflict",
    ),
    "a field that does not decode": (
        status(400, "BadRequest", "json: cannot unmarshal string into Go struct field PodSpec"),
        Verdict.REFUSED,
        "Invalid",
    ),
    "a field that the API server does not know": (
        status(
            400,
            "BadRequest",
            'Job in version "v1" cannot be handled as a Job: strict decoding error: unknown field '
            '"spec.template.spec.containers[0].comand"',
        ),
        Verdict.REFUSED,
        "UnknownField",
    ),
    "restartPolicy is missing": (
        status(
            422,
            "Invalid",
            'Job.batch "x" is invalid: spec.template.spec.restartPolicy: Required value: '
            'valid values: "OnFailure", "Never"',
        ),
        Verdict.REFUSED,
        "Invalid",
    ),
    "larger than a request may be": (
        status(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
        Verdict.REFUSED,
        "Invalid",
    ),
    "a webhook said no": (
        status(403, "", 'admission webhook "jobs.example.com" denied the request: no'),
        Verdict.REFUSED,
        "DeniedByAdmission",
    ),
    "an admission policy said no": (
        status(
            422,
            "Invalid",
            "jobs.batch \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' "
            "denied request: no",
        ),
        Verdict.REFUSED,
        "DeniedByAdmission",
    ),
    "a quota is used up": (
        status(
            403,
            "Forbidden",
            'jobs.batch "x" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, '
            "used: count/jobs.batch=1, limited: count/jobs.batch=1",
        ),
        Verdict.HELD,
        "QuotaExceeded",
    ),
    "RBAC forbids": (
        status(
            403,
            "Forbidden",
            'jobs.batch is forbidden: User "x" cannot create resource "jobs" in API group "batch"',
        ),
        Verdict.HELD,
        "Forbidden",
    ),
    "the namespace is terminating": (
        status(
            403,
            "Forbidden",
            'jobs.batch "x" is forbidden: unable to create new content in namespace shop because '
            "it is being terminated",
        ),
        Verdict.HELD,
        "Forbidden",
    ),
    "the namespace is gone": (
        status(404, "NotFound", 'namespaces "shop" not found'),
        Verdict.HELD,
        "NamespaceGone",
    ),
    "the token is not good": (
        status(401, "Unauthorized", "Unauthorized"),
        Verdict.HELD,
        "Unauthorized",
    ),
    "too many requests": (
        status(429, "TooManyRequests", "Too many requests, please try again later."),
        Verdict.HELD,
        "TooManyRequests",
    ),
    "a webhook is down": (
        status(500, "InternalError", 'failed calling webhook "jobs.example.com"'),
        Verdict.UNKNOWN,
        "ServerError",
    ),
    "the server timed out": (
        status(504, "Timeout", "request did not complete within requested timeout"),
        Verdict.UNKNOWN,
        "ServerError",
    ),
    "a proxy has no server": (
        Reply(502, b"<html>Bad Gateway</html>"),
        Verdict.UNKNOWN,
        "ServerError",
    ),
}


@pytest.mark.parametrize(("reply", "verdict", "reason"), TABLE.values(), ids=TABLE)
def test_what_an_answer_to_a_create_proves(reply, verdict, reason):
    assert classify(reply, uid_of(reply.json() if reply.ok else {})) == (verdict, reason)


# --- one create -------------------------------------------------------------------------------

SEEN = every(60)
RUN = RunId(SEEN.uid, instant("10:01"))
BODY = orjson.loads(render(SEEN, RUN))
NAME = BODY["metadata"]["name"]
EXISTS = status(409, "AlreadyExists")


def as_stored(body=BODY, **status_fields) -> Reply:
    stored = body | {"metadata": body["metadata"] | {"uid": "uid-job"}, "status": status_fields}
    return Reply(200, orjson.dumps(stored))


def launch(answers, *, announced=0, mark=True, seconds=120.0):
    """Launch one run; what was reported, and the API it was launched on."""
    desk, api = Desk(), ScriptedApi(answers)

    async def scenario(clock):
        it = launcher(api, clock, desk, mark=mark)
        it.launch(Launch(RUN, 1, SEEN, announced))
        await asyncio.sleep(seconds)

    virtually(scenario)
    reports = [report for report in desk.reports() if not isinstance(report, Unanswered)]
    return (reports[0] if reports else None), api


def test_a_job_that_was_stored_as_it_was_sent_lost_nothing():
    report, _ = launch([as_stored()])
    assert (report.verdict, report.marks_lost) == (Verdict.CREATED, ())


def test_a_create_tells_what_the_job_was_stored_without():
    metadata = BODY["metadata"] | {"labels": {}, "ownerReferences": []}
    report, _ = launch([as_stored(BODY | {"metadata": metadata})])
    assert (report.verdict, report.marks_lost) == (Verdict.CREATED, (OWNER, f"label {LABEL_UID}"))


def verbs(api) -> list[str]:
    return [call.verb for call in api.calls]


def test_created_is_reported_with_the_name_that_is_the_lock():
    report, api = launch([CREATED])
    assert (report.verdict, report.ref.name) == (Verdict.CREATED, NAME)
    assert api.calls[0].body == BODY
    assert api.calls[0].path == "/apis/batch/v1/namespaces/shop/jobs"


def test_a_job_of_ours_under_the_name_is_adopted():
    report, api = launch([EXISTS, as_stored(active=1)])
    assert (report.verdict, report.ref.uid) == (Verdict.ADOPTED, "uid-job")
    assert report.found.state == "waiting"
    assert verbs(api) == ["POST", "GET"]


def test_a_job_of_ours_that_has_ended_is_adopted_with_its_end():
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    report, _ = launch([EXISTS, as_stored(**done)])
    assert report.found.state == "succeeded"


OTHERS = {
    "without an owner": {"ownerReferences": []},
    "of the schedule that had the name before": {
        "ownerReferences": [BODY["metadata"]["ownerReferences"][0] | {"uid": "uid-older"}]
    },
}


@pytest.mark.parametrize("metadata", OTHERS.values(), ids=OTHERS)
def test_a_job_under_the_name_is_not_ours(metadata):
    other = BODY | {"metadata": BODY["metadata"] | metadata}
    report, api = launch([EXISTS, as_stored(other)])
    assert (report.verdict, report.reason) == (Verdict.TAKEN, "NameTaken")
    assert "DELETE" not in verbs(api)


CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "name": SEEN.name,
    "uid": "uid-cronjob",
    "controller": True,
}


def owned_by(owner) -> Reply:
    return as_stored(BODY | {"metadata": BODY["metadata"] | {"ownerReferences": [owner]}})


@pytest.mark.parametrize("answer", [EXISTS, NO_ANSWER])
def test_a_job_under_the_name_is_a_cronjobs_of_the_same_name(answer):
    report, api = launch([answer, owned_by(CRON_JOB)])
    assert (report.verdict, report.reason) == (Verdict.TAKEN, "CronJob")
    assert verbs(api) == ["POST", "GET"]


def test_a_job_under_the_name_is_another_cronjobs():
    report, _ = launch([EXISTS, owned_by(CRON_JOB | {"name": "backup"})])
    assert (report.verdict, report.reason) == (Verdict.TAKEN, "NameTaken")


def test_a_create_without_an_answer_is_read_by_name_before_anything_else():
    report, api = launch([NO_ANSWER, as_stored()])
    assert report.verdict is Verdict.ADOPTED
    assert verbs(api) == ["POST", "GET"]


def test_a_create_without_an_answer_that_came_to_nothing_is_held():
    report, api = launch([NO_ANSWER, status(404, "NotFound")])
    assert (report.verdict, report.reason) == (Verdict.HELD, "NotCreated")
    assert verbs(api) == ["POST", "GET"]


def test_a_job_that_existed_and_vanished_before_it_could_be_read_stays_unknown():
    report, _ = launch([EXISTS, status(404, "NotFound")])
    assert (report.verdict, report.reason) == (Verdict.UNKNOWN, "Vanished")


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("answer", [NO_ANSWER, EXISTS])
def test_a_proxys_page_proves_nothing_of_a_job(page, answer):
    report, api = launch([answer, page, as_stored()])
    assert report.verdict is Verdict.ADOPTED
    assert verbs(api) == ["POST", "GET", "GET"]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_proxys_page_for_a_create_ends_no_run(page):
    """It is read by name, or created again under the same name."""
    report, _ = launch([page, as_stored()])
    assert report.verdict in (Verdict.ADOPTED, Verdict.HELD)


def test_reading_by_name_goes_on_until_the_server_says():
    report, api = launch([NO_ANSWER, NOBODY_THERE, NO_ANSWER, status(503), as_stored()])
    assert report.verdict is Verdict.ADOPTED
    assert verbs(api) == ["POST"] + ["GET"] * 4
    pauses = [b.at - a.at for a, b in zip(api.calls[1:], api.calls[2:], strict=False)]
    for pause_s, meant_s in zip(pauses, READ_AGAIN_S, strict=False):
        assert 0.5 * meant_s <= pause_s <= 1.5 * meant_s


def test_reading_by_name_is_never_hot():
    report, api = launch([NO_ANSWER, status(500)], seconds=600)
    assert report is None
    assert len(api.calls) < 150


def test_a_server_that_nobody_reaches_holds_the_run():
    report, api = launch([NOBODY_THERE])
    assert (report.verdict, report.reason) == (Verdict.HELD, "Unreachable")
    assert verbs(api) == ["POST"]


def test_the_mark_is_written_before_a_create_that_asks_for_it():
    report, api = launch([CREATED], announced=1, mark=False)
    assert (report.verdict, report.reason) == (Verdict.HELD, "StatusNotWritten")
    assert api.calls == []


COUNTED = {
    "created": ([CREATED], [Verdict.CREATED]),
    "adopted": ([EXISTS, as_stored()], [Verdict.ADOPTED]),
    "taken": (
        [EXISTS, as_stored(BODY | {"metadata": {"name": NAME}})],
        [Verdict.TAKEN],
    ),
    "a CronJob's": ([EXISTS, owned_by(CRON_JOB)], [Verdict.TAKEN]),
    "refused": ([status(422, "Invalid")], [Verdict.REFUSED]),
    "held": ([status(429, "TooManyRequests")], [Verdict.HELD]),
    "nobody there": ([NOBODY_THERE], [Verdict.HELD]),
    "no answer, and its Job is there": (
        [NO_ANSWER, as_stored()],
        [Verdict.UNKNOWN, Verdict.ADOPTED],
    ),
}


@pytest.mark.parametrize(("answers", "verdicts"), COUNTED.values(), ids=COUNTED)
def test_each_verdict_is_counted_once(answers, verdicts):
    counted = []
    desk, api = Desk(), ScriptedApi(list(answers))

    async def scenario(clock):
        launcher(api, clock, desk, counted=counted).launch(Launch(RUN, 1, SEEN))
        await asyncio.sleep(1)

    virtually(scenario)
    assert counted == verdicts


def test_a_created_job_is_reported_with_the_uid_that_a_deletion_will_need():
    report, _ = launch([CREATED])
    assert report.ref.uid == "uid-created"


@pytest.mark.parametrize(
    ("answers", "silent"),
    [([NO_ANSWER, as_stored()], True), ([status(500), as_stored()], True), ([CREATED], False)],
    ids=["none", "of no use", "created"],
)
def test_the_scheduler_is_told_while_nobody_knows(answers, silent):
    desk = Desk()

    async def scenario(clock):
        launcher(ScriptedApi(answers), clock, desk).launch(Launch(RUN, 1, SEEN, False))
        await asyncio.sleep(60)

    virtually(scenario)
    first = desk.reports()[0]
    assert (first == Unanswered(RUN, 1)) is silent
