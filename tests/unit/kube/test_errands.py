"""Small calls that follow a decision, judged by the API server's real words."""

import asyncio
from dataclasses import replace

import orjson
import pytest
from tests.builders import edited, every, instant, job
from tests.unit.kube.scripted import (
    CREATED,
    NO_ANSWER,
    NOBODY_THERE,
    OK,
    PAGES,
    Desk,
    ScriptedApi,
    listing,
    status,
    virtually,
)

from evenkeel.core.effects import CheckTemplate, ConfirmTime, DeleteJob, FindJob, LookAtPods
from evenkeel.core.messages import JobGone, JobSeen, PodsLookedAt, TimeConfirmed
from evenkeel.kube.api import Reply
from evenkeel.kube.errands import Errands, judge
from evenkeel.model import Cause, JobRef, JobState
from evenkeel.resource.job import render

DRY_RUN = "report-68374080"
STRICT = (
    'Job in version "v1" cannot be handled as a Job: strict decoding error: unknown field '
    '"spec.backofLimit"'
)
RESTART_POLICY = (
    f'Job.batch "{DRY_RUN}" is invalid: spec.template.spec.restartPolicy: Required value: valid '
    'values: "OnFailure"'
)
WARNING = '299 - "would violate PodSecurity \\"restricted:latest\\""'
BY_POLICY = f'admission webhook "x" denied the request: Job shop/{DRY_RUN} has no owner'

DRY_RUNS = {
    "it is accepted": (CREATED, True, "Accepted", ""),
    "it is accepted with a warning": (
        Reply(201, b'{"kind": "Job"}', {"Warning": WARNING}),
        True,
        "Accepted",
        'would violate PodSecurity "restricted:latest"',
    ),
    "an unknown field": (
        status(400, "BadRequest", STRICT),
        False,
        "Refused",
        'unknown field "spec.jobTemplate.spec.backofLimit"',
    ),
    "a missing restartPolicy": (
        status(422, "Invalid", RESTART_POLICY),
        False,
        "Refused",
        "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "
        '"OnFailure"',
    ),
    "a policy names the schedule, and not the dry run": (
        status(400, "BadRequest", BY_POLICY),
        None,
        "NotProven",
        'admission webhook "x" denied the request: Job shop/report has no owner',
    ),
    "a quota says nothing of the template": (
        status(403, "Forbidden", "exceeded quota: q"),
        None,
        "NotProven",
        "exceeded quota: q",
    ),
    "RBAC says nothing of it": (
        status(403, "Forbidden", "cannot create resource"),
        None,
        "NotProven",
        "cannot create resource",
    ),
    "429 says nothing of it": (status(429, "", "slow down"), None, "NotProven", "slow down"),
    "a broken server says nothing of it": (status(500, "", "oops"), None, "NotProven", "oops"),
    "a webhook that is down says nothing of it": (
        status(400, "BadRequest", 'admission webhook "x" is down'),
        None,
        "NotProven",
        'admission webhook "x" is down',
    ),
    "a terminating namespace says nothing of it": (
        status(403, "Forbidden", "because it is being terminated"),
        None,
        "NotProven",
        "because it is being terminated",
    ),
    "no answer says nothing of it": (None, None, "NoAnswer", "the dry run got no answer"),
}


@pytest.mark.parametrize(
    ("reply", "accepted", "reason", "message"), DRY_RUNS.values(), ids=DRY_RUNS
)
def test_what_a_dry_run_proves_of_a_template(reply, accepted, reason, message):
    assert judge(reply, job=DRY_RUN, schedule="report") == (accepted, reason, message)


# --- calls ------------------------------------------------------------------------------------

SEEN = every(60)
FACT = job(SEEN, "10:01")
REF = JobRef("shop", "report-x", "uid-job")


def run(answers, *effects, seconds=300.0, busy=lambda: False):
    desk, api = Desk(), ScriptedApi(answers)

    async def scenario(clock):
        errands = Errands(api, desk.inbox, clock, busy=busy)
        for effect in effects:
            {
                DeleteJob: errands.delete_job,
                FindJob: errands.find_job,
                LookAtPods: errands.look_at_pods,
                CheckTemplate: errands.check_template,
                ConfirmTime: errands.confirm_time,
            }[type(effect)](effect)
        await asyncio.sleep(seconds)
        await errands.finish(within_s=0.01)

    virtually(scenario)
    return api, desk.reports()


def test_a_job_is_deleted_with_its_uid_in_the_background():
    api, _ = run([OK], DeleteJob(REF, "history"))
    (call,) = api.calls
    assert call.path == "/apis/batch/v1/namespaces/shop/jobs/report-x"
    assert call.body["preconditions"] == {"uid": "uid-job"}
    assert call.body["propagationPolicy"] == "Background"


@pytest.mark.parametrize("answer", [OK, status(404, "NotFound"), status(409, "Conflict")])
def test_gone_or_another_ones_is_as_good_as_deleted(answer):
    api, _ = run([answer], DeleteJob(REF, "history"))
    assert len(api.calls) == 1


def test_a_deletion_is_tried_until_it_is_answered_less_and_less_often():
    api, _ = run([NOBODY_THERE, NO_ANSWER, status(500), OK], DeleteJob(REF, "history"))
    assert len(api.calls) == 4
    api, _ = run([status(500)], DeleteJob(REF, "history"), seconds=600)
    assert 10 < len(api.calls) < 60


def stored(**changes) -> Reply:
    """A Job of SEEN's run as the API server shows it; its labels may be gone."""
    body = orjson.loads(render(SEEN, FACT.run))
    body["metadata"] |= {"uid": FACT.ref.uid} | changes.pop("metadata", {})
    return Reply(200, orjson.dumps(body | {"status": changes}))


COMPLETE = {
    "conditions": [{"type": "Complete", "status": "True"}],
    "completionTime": "2026-03-02T10:02:00Z",
}


def test_a_job_that_is_not_there_by_name_is_gone_and_that_is_proven():
    _, reports = run([NO_ANSWER, status(404, "NotFound")], FindJob(FACT.run, 1, FACT.ref))
    (gone,) = reports
    assert isinstance(gone, JobGone)
    assert (gone.proven, gone.fact.run) == (True, FACT.run)


def test_a_job_that_its_watch_shows_is_looked_at_once():
    api, reports = run([stored()], FindJob(FACT.run, 1, FACT.ref))
    assert len(api.calls) == 1
    assert [type(report) for report in reports] == [JobSeen]


def test_a_job_that_no_watch_shows_is_looked_at_until_its_end():
    bare = {"metadata": {"labels": {}}}
    answers = [stored(**bare), stored(**bare), stored(**bare), stored(**bare, **COMPLETE)]
    api, reports = run(answers, FindJob(FACT.run, 1, FACT.ref), FindJob(FACT.run, 1, FACT.ref))
    assert len(api.calls) == 4  # asked for twice, it is looked at by one
    assert reports[-1].fact.state == "succeeded"


DISOWNED = FindJob(FACT.run, 1, FACT.ref, disowned=True)


@pytest.mark.parametrize("labels", [{}, {"labels": {}}], ids=["with its label", "without any"])
def test_a_job_that_was_stored_without_its_owner_is_looked_at_until_its_end(labels):
    """Whose it is, the uid says that the answer to its create has shown."""
    bare = {"metadata": {"ownerReferences": [], **labels}}
    api, reports = run([stored(**bare), stored(**bare), stored(**bare, **COMPLETE)], DISOWNED)
    assert len(api.calls) == 3
    assert {report.fact.run for report in reports} == {FACT.run}
    assert reports[-1].fact.state == "succeeded"


def test_a_job_of_the_same_name_is_not_the_one_that_was_stored_without_its_owner():
    _, reports = run([stored(metadata={"ownerReferences": [], "uid": "another"})], DISOWNED)
    assert [type(report) for report in reports] == [JobGone]


def test_a_job_that_lost_its_owner_is_as_good_as_gone():
    orphan = stored(metadata={"ownerReferences": []})
    a_proxys_page = Reply(200, b"<html>")
    api, reports = run([a_proxys_page, orphan], FindJob(FACT.run, 1, FACT.ref))
    assert [type(report) for report in reports] == [JobGone]
    assert len(api.calls) == 2


def test_a_job_that_has_another_owner_now_is_as_good_as_gone():
    owner = orjson.loads(stored().body)["metadata"]["ownerReferences"][0]
    anothers = stored(metadata={"ownerReferences": [owner | {"uid": "uid-other"}]})
    api, reports = run([anothers], FindJob(FACT.run, 1, FACT.ref))
    assert [type(report) for report in reports] == [JobGone]
    assert reports[0].fact.run == FACT.run
    assert len(api.calls) == 1


def test_a_job_whose_pods_are_refused_is_explained_by_its_last_event():
    said = {"message": 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'}
    run_id = job(SEEN, "10:01").run
    api, (report,) = run([listing(), listing(said)], LookAtPods(run_id, 1, REF))
    assert report == PodsLookedAt(run_id, 1, False, "pod_refused", said["message"])
    assert api.calls[0].params["labelSelector"] == "batch.kubernetes.io/job-name=report-x"
    selector = api.calls[1].params["fieldSelector"]
    assert selector == "involvedObject.uid=uid-job,reason=FailedCreate"


@pytest.mark.parametrize("events", [listing(), status(403, "Forbidden")])
def test_a_job_without_pods_is_not_said_to_be_refused_by_a_late_job_controller(events):
    run_id = job(SEEN, "10:01").run
    _, (report,) = run([listing(), events], LookAtPods(run_id, 1, REF))
    assert report == PodsLookedAt(run_id, 1, False, "pending", "no Pod was created")


def test_pods_that_may_not_be_read_prove_nothing():
    _, (report,) = run([status(403, "Forbidden")], LookAtPods(job(SEEN, "10:01").run, 1, REF))
    assert (report.started, report.reason) == (False, None)


def test_a_template_is_proven_by_the_body_that_will_be_sent():
    api, (report,) = run([CREATED], CheckTemplate(SEEN))
    (call,) = api.calls
    assert call.params == {"dryRun": "All", "fieldValidation": "Strict"}
    assert call.body["metadata"]["ownerReferences"][0]["uid"] == SEEN.uid
    assert (report.template_hash, report.accepted) == ("first", True)


def test_a_template_that_could_not_be_judged_is_tried_again():
    api, reports = run([status(500), status(500), CREATED], CheckTemplate(SEEN))
    assert [report.accepted for report in reports] == [True]  # the last one outdates the others
    assert len(api.calls) == 3


def test_only_the_newest_template_is_proven_to_the_end():
    new = edited(SEEN, template_hash="second")
    _, reports = run([status(500)], CheckTemplate(SEEN), CheckTemplate(new), seconds=200)
    assert [report.template_hash for report in reports[2:]].count("first") == 0


def test_ten_thousand_templates_are_not_proven_at_once():
    many = [CheckTemplate(every(60, name=f"s{n}")) for n in range(50)]
    api, _ = run([CREATED], *many, seconds=2.05)
    assert len(api.calls) <= 22


def test_errands_wait_for_creates_but_not_for_ever():
    api, _ = run([OK], DeleteJob(REF, "history"), busy=lambda: True, seconds=19)
    assert api.calls == []
    api, _ = run([OK], DeleteJob(REF, "history"), busy=lambda: True, seconds=21)
    assert len(api.calls) == 1


def test_the_time_is_asked_of_the_api_server():
    date = "Mon, 02 Mar 2026 10:00:05 GMT"
    _, reports = run([Reply(200, b"{}", {"Date": date})], ConfirmTime())
    assert reports == [TimeConfirmed(float(instant("10:00:05")))]


@pytest.mark.parametrize("answer", [NO_ANSWER, OK, Reply(200, b"{}", {"Date": "yesterday"})])
def test_a_server_that_does_not_tell_the_time_confirms_nothing(answer):
    _, reports = run([answer], ConfirmTime())
    assert reports == []


def test_deletions_that_were_decided_are_carried_out_at_the_end_of_a_process():
    desk, api = Desk(), ScriptedApi([OK])

    async def scenario(clock):
        began = clock.monotonic()
        errands = Errands(api, desk.inbox, clock, busy=lambda: clock.monotonic() < began + 1)
        errands.delete_job(DeleteJob(REF, "history"))
        await asyncio.sleep(0.5)  # it still gives way to creates
        await errands.finish(within_s=5)

    virtually(scenario)
    assert [call.verb for call in api.calls] == ["DELETE"]


def test_pods_are_asked_for_until_the_server_says():
    run_id = job(SEEN, "10:01").run
    answers = [status(500), NO_ANSWER, _pods(1, running={})]
    _, (report,) = run(answers, LookAtPods(run_id, 1, REF))
    assert report.started


# --- answers that are not the API server's, or not its last ---------------------------------------

a_proxys_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)


@a_proxys_page
def test_a_proxys_page_does_not_make_a_job_lost(page):
    _, reports = run([page, stored()], FindJob(FACT.run, 1, FACT.ref))
    assert [type(report) for report in reports] == [JobSeen]


@a_proxys_page
def test_a_proxys_page_is_no_deletion(page):
    api, _ = run([page, OK], DeleteJob(REF, "replaced"))
    assert len(api.calls) == 2


@a_proxys_page
def test_a_proxys_page_is_no_list_of_pods(page):
    """Taken for an empty one it would fail an attempt whose Pod runs."""
    _, (report,) = run([page, _pods(1, running={})], LookAtPods(FACT.run, 1, FACT.ref))
    assert report.started


@a_proxys_page
def test_a_proxys_page_proves_no_template(page):
    api, reports = run([page, CREATED], CheckTemplate(SEEN))
    assert judge(page, job=DRY_RUN, schedule="report")[0] is None
    assert [report.accepted for report in reports] == [True]
    assert len(api.calls) == 2


def test_a_reading_by_name_does_not_take_the_place_of_what_the_watch_told_since():
    desk, api = Desk(), ScriptedApi([stored()])
    ended = replace(FACT, state=JobState.SUCCEEDED, finished=instant("10:02"))

    async def scenario(clock):
        desk.inbox.hint(FACT.ref.uid, JobSeen(ended))
        errands = Errands(api, desk.inbox, clock, busy=lambda: False)
        errands.find_job(FindJob(FACT.run, 1, FACT.ref))
        await asyncio.sleep(1)

    virtually(scenario)
    assert JobSeen(ended) in desk.reports()


def _pods(count, *, more="", **state):
    status = {"phase": "Pending", "containerStatuses": [{"state": state}]}
    return listing(*[{"metadata": {"name": "p"}, "status": status}] * count, more=more)


def test_pods_beyond_the_first_page_have_started_too():
    pages = [_pods(50, waiting={}, more="x"), _pods(1, running={})]
    api, reports = run(pages, LookAtPods(FACT.run, 1, FACT.ref))
    assert reports[-1].started
    assert [call.params.get("continue") for call in api.calls] == [None, "x"]


def test_pages_of_pods_that_are_too_old_are_asked_for_anew():
    pages = [_pods(50, waiting={}, more="x"), status(410, "Expired"), _pods(1, running={})]
    _, reports = run(pages, LookAtPods(FACT.run, 1, FACT.ref))
    assert reports[-1].started


# --- namespaces whose webhooks hang, and creates that wait ----------------------------------------


def ref_of(ns, name="report-x"):
    return JobRef(ns, name, f"uid-{name}")


class Hanging:
    """What changes something in namespace `hangs` gets no answer within ten seconds."""

    def __init__(self) -> None:
        self.begun: list[tuple[float, str, str]] = []
        self.dry_runs = 0
        self.most_dry_runs = 0

    async def call(self, verb, path, **_):
        self.begun.append((asyncio.get_running_loop().time(), verb, path))
        if "/hangs" not in path:
            return OK if verb == "DELETE" else CREATED
        self.dry_runs += verb == "POST"
        self.most_dry_runs = max(self.dry_runs, self.most_dry_runs)
        await asyncio.sleep(10)
        self.dry_runs -= verb == "POST"
        raise NO_ANSWER

    def watch(self, path, params):
        raise AssertionError

    def first(self, verb, ns):
        return next(at for at, *call in self.begun if call[0] == verb and f"/{ns}/" in call[1])


def replace_beside(*effects, seconds=120.0):
    """Every second a Job that Replace has cancelled, beside these; how long each waited."""
    api, desk, waited = Hanging(), Desk(size=10_000), []

    async def scenario(clock):
        errands = Errands(api, desk.inbox, clock, busy=lambda: False)
        for effect in effects:
            (errands.delete_job if isinstance(effect, DeleteJob) else errands.check_template)(
                effect
            )
        for number in range(int(seconds)):
            errands.delete_job(DeleteJob(ref_of("quiet", f"run-{number}"), "replaced"))
            decided_at = asyncio.get_running_loop().time()
            await asyncio.sleep(1)
            done = [at for at, _, path in api.begun if path.endswith(f"/run-{number}")]
            waited.append(done[0] - decided_at if done else 99)
        await errands.finish(within_s=0.01)

    virtually(scenario)
    return api, waited


def test_what_is_replaced_is_deleted_at_once_though_dry_runs_of_a_namespace_hang():
    dry_runs = [
        CheckTemplate(every(60, name=f"s{n}", ns="hangs", template_hash=f"h{n}"))
        for n in range(200)
    ]
    api, waited = replace_beside(*dry_runs)
    assert max(waited) < 0.1
    assert api.most_dry_runs == 1


def test_what_is_replaced_is_deleted_at_once_though_deletions_of_a_namespace_hang():
    deletions = [DeleteJob(ref_of("hangs", f"old-{n}"), "history") for n in range(100)]
    _, waited = replace_beside(*deletions)
    assert max(waited) < 0.1


def test_other_namespaces_templates_are_proven_while_dry_runs_of_one_hang():
    hanging = [
        CheckTemplate(every(60, name=f"s{n}", ns=f"hangs-{n % 2}", template_hash=f"h{n}"))
        for n in range(50)
    ]
    api, desk = Hanging(), Desk(size=10_000)

    async def scenario(clock):
        errands = Errands(api, desk.inbox, clock, busy=lambda: False)
        for effect in hanging:
            errands.check_template(effect)
        await asyncio.sleep(10)
        asked_at = asyncio.get_running_loop().time()
        errands.check_template(CheckTemplate(every(60, ns="quiet")))
        await asyncio.sleep(5)
        assert api.first("POST", "quiet") - asked_at < 2
        await errands.finish(within_s=0.01)

    virtually(scenario)


def test_what_is_replaced_waits_for_a_herd_a_second_at_most():
    api, _ = run([OK], DeleteJob(REF, "replaced"), busy=lambda: True, seconds=2)
    assert [round(call.at) for call in api.calls] == [1]


def test_an_api_server_that_asks_for_a_pause_has_it_from_errands_too():
    busy = Reply(429, b"Too many requests", {"Retry-After": "30"})
    other = JobRef("bank", "report-y", "uid-other")
    api, _ = run([busy, OK], DeleteJob(REF, "history"), DeleteJob(other, "history"))
    assert len([call for call in api.calls if call.at < 29]) <= 2
    assert {call.path.split("/")[-1] for call in api.calls if call.at > 29} >= {"report-x"}


# --- why a Job failed -----------------------------------------------------------------------------

FAILED = LookAtPods(FACT.run, 1, REF, of_failure=True, within_s=10.0)


def test_of_a_failed_job_one_page_of_pods_tells_the_cause():
    ended = {"exitCode": 3, "reason": "Error"}
    api, (report,) = run([_pods(50, terminated=ended, more="x")], FAILED)
    assert report.cause == Cause("Error", exit_code=3)
    (call,) = api.calls
    assert call.params["limit"] == "50"


def test_a_failed_job_without_pods_is_asked_for_nothing_else():
    api, (report,) = run([listing()], FAILED)
    assert report.cause is None
    assert not report.unreadable
    assert len(api.calls) == 1


def test_nobody_asks_for_the_cause_of_a_failure_for_longer_than_it_is_awaited():
    api, reports = run([status(500)], FAILED, seconds=100)
    assert reports == []
    assert max(call.at for call in api.calls) <= 10
