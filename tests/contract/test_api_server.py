"""What the operator takes for granted of an API server, asked of the real one and of the one in
memory that the simulator uses: one suite, so that the fake is proven and not believed.

Not asked here, because it would take minutes on a real server: compaction of a page's list.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import orjson
import pytest
from tests.cluster.harness import Cluster
from tests.sim.controllers import Controllers, Fate
from tests.sim.network import Connection, Weather
from tests.sim.server import Server
from tests.unit.resource.cases import TEMPLATE

from evenkeel.kube import credentials
from evenkeel.kube.api import MERGE_PATCH, Api, Reply, jobs_path, schedules_path
from evenkeel.kube.client import KubeClient
from evenkeel.kube.crd_schema import CrdSchema
from evenkeel.kube.pruner import METADATA_ONLY
from evenkeel.resource.definitions import NOT_SEEN_YET
from evenkeel.resource.job import LABEL_UID
from evenkeel.resource.names import API_VERSION, KIND
from evenkeel.resource.schema_hash import SCHEMA_HASHES

Json = dict[str, Any]
NOBODY = "00000000-0000-0000-0000-000000000000"


class Contract:
    """The questions. `api` and `ns` come from the two classes below."""

    api: Api
    ns: str

    # --- words ------------------------------------------------------------------------------------

    @property
    def jobs(self) -> str:
        return jobs_path(self.ns)

    @property
    def schedules(self) -> str:
        return schedules_path(self.ns)

    async def post(self, path: str, body: Json, **params: str) -> Reply:
        return await self.api.call("POST", path, body=orjson.dumps(body), params=params)

    async def get(self, path: str, **params: str) -> Reply:
        return await self.api.call("GET", path, params=params)

    async def patch(self, path: str, body: Json) -> Reply:
        raw = orjson.dumps(body)
        return await self.api.call("PATCH", path, body=raw, content_type=MERGE_PATCH)

    async def delete(self, path: str, uid: str = "") -> Reply:
        options: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if uid:
            options["preconditions"] = {"uid": uid}
        return await self.api.call("DELETE", path, body=orjson.dumps(options))

    async def new_job(self, name: str = "", **labels: str) -> Json:
        reply = await self.post(self.jobs, job(name or f"job-{secrets.token_hex(4)}", **labels))
        assert reply.status == 201, reply.message
        return reply.json()

    async def new_schedule(self, name: str = "") -> Json:
        name = name or f"schedule-{secrets.token_hex(4)}"
        reply = await self.post(self.schedules, schedule(name))
        assert reply.status == 201, reply.message
        return reply.json()

    async def watched(
        self, path: str, since: str, *, until: int, within_s: int = 20, **params: str
    ) -> list[Json]:
        """The first `until` events after a version."""
        events: list[Json] = []
        wish = {"resourceVersion": since, "timeoutSeconds": str(within_s), **params}
        async with self.api.watch(path, wish) as stream:
            assert stream.status == 200
            async for line in stream.lines():
                events.append(orjson.loads(line))
                if len(events) == until:
                    break
        return events

    # --- creating ---------------------------------------------------------------------------------

    async def test_a_created_job_gets_an_identity(self) -> None:
        created = await self.new_job("one")

        metadata = created["metadata"]
        assert metadata["uid"] and metadata["creationTimestamp"]
        assert int(metadata["resourceVersion"]) > 0
        assert metadata["generation"] == 1
        assert created["status"] == {}
        assert (await self.get(f"{self.jobs}/one")).json()["metadata"]["uid"] == metadata["uid"]

    async def test_a_new_schedule_waits_for_the_operators_first_word(self) -> None:
        created = await self.new_schedule("new")

        read = (await self.get(f"{self.schedules}/new")).json()
        assert created["status"] == read["status"] == NOT_SEEN_YET

    async def test_a_name_is_given_once(self) -> None:
        await self.new_job("twice")

        reply = await self.post(self.jobs, job("twice"))

        assert (reply.status, reply.reason) == (409, "AlreadyExists")
        assert reply.message == 'jobs.batch "twice" already exists'

    async def test_a_deleted_name_is_free_again(self) -> None:
        first = await self.new_job("again")
        assert (await self.delete(f"{self.jobs}/again")).ok

        assert (await self.new_job("again"))["metadata"]["uid"] != first["metadata"]["uid"]

    async def test_a_namespace_that_is_not_there_is_not_found(self) -> None:
        reply = await self.post(jobs_path("nowhere"), job("lost"))

        assert (reply.status, reply.reason) == (404, "NotFound")
        assert reply.message == 'namespaces "nowhere" not found'

    async def test_a_template_without_a_restart_policy_is_invalid(self) -> None:
        wrong = job("wrong")
        del wrong["spec"]["template"]["spec"]["restartPolicy"]

        reply = await self.post(self.jobs, wrong)

        assert (reply.status, reply.reason) == (422, "Invalid")
        assert 'Job.batch "wrong" is invalid: spec.template.spec.restartPolicy' in reply.message

    async def test_a_dry_run_answers_and_writes_nothing(self) -> None:
        reply = await self.post(self.jobs, job("dry"), dryRun="All", fieldValidation="Strict")

        assert reply.status == 201
        assert (await self.get(f"{self.jobs}/dry")).status == 404

    async def test_a_dry_run_meets_the_name_that_is_taken(self) -> None:
        await self.new_job("here")

        reply = await self.post(self.jobs, job("here"), dryRun="All")

        assert (reply.status, reply.reason) == (409, "AlreadyExists")

    async def test_what_is_not_there_is_not_found(self) -> None:
        reply = await self.get(f"{self.jobs}/nobody")

        assert (reply.status, reply.reason) == (404, "NotFound")
        assert reply.message == 'jobs.batch "nobody" not found'

    async def test_every_answer_tells_the_time(self) -> None:
        assert (await self.get("/version")).headers.get("Date")

    # --- patching ---------------------------------------------------------------------------------

    async def test_every_answer_that_proves_something_has_a_kind(self) -> None:
        """By it the operator tells the server's word from a proxy's page."""
        created = await self.new_job("kind")
        wrong = job("none") | {"spec": {"template": {"spec": {"containers": []}}}}
        answers = [
            await self.get(f"{self.jobs}/kind"),
            await self.post(self.jobs, job("dry"), dryRun="All", fieldValidation="Strict"),
            await self.post(self.jobs, job("kind")),
            await self.post(self.jobs, wrong),
            await self.delete(f"{self.jobs}/kind", NOBODY),
            await self.delete(f"{self.jobs}/kind", created["metadata"]["uid"]),
            await self.delete(f"{self.jobs}/nothing"),
        ]

        assert [reply.status for reply in answers] == [200, 201, 409, 422, 409, 200, 404]
        assert [reply.from_api_server for reply in answers] == [True] * 7

    async def test_a_status_patch_writes_the_status_and_nothing_else(self) -> None:
        old = await self.new_schedule("status")

        reply = await self.patch(
            f"{self.schedules}/status/status",
            {"metadata": {"uid": old["metadata"]["uid"]}, "spec": {"suspend": True}}
            | {"status": {"activeCount": 3}},
        )

        new = reply.json()
        assert reply.status == 200
        assert new["status"] == {**NOT_SEEN_YET, "activeCount": 3}
        assert new["spec"] == old["spec"]
        assert new["metadata"]["generation"] == 1
        assert newer(new, old)

    async def test_a_status_that_the_schema_does_not_take_is_refused_and_not_stored(self) -> None:
        old = await self.new_schedule("invalid")
        path = f"{self.schedules}/invalid/status"
        condition = {
            "status": "True",
            "reason": "Foreign",
            "message": "",
            "lastTransitionTime": "2026-03-02T10:00:00Z",
        }

        answers = [
            await self.patch(path, {"status": status})
            for status in (
                {"conditions": [condition | {"type": f"X{number}"} for number in range(17)]},
                {"conditions": [condition | {"type": "X", "status": "Perhaps"}]},
                {"conditions": [{"type": "X", "status": "True"}]},
                {"consecutiveFailures": 2**63},
                {"consecutiveFailures": "5"},
                {"recent": {"due": "2026-03-02T10:00:00Z"}},
                {"recent": [{"state": "failed"}]},
            )
        ]

        assert [(reply.status, reply.reason) for reply in answers] == [(422, "Invalid")] * 7
        now = (await self.get(f"{self.schedules}/invalid")).json()
        assert now.get("status") == old.get("status")

    async def test_a_status_at_the_edge_of_its_schema_is_stored(self) -> None:
        await self.new_schedule("edge")

        reply = await self.patch(
            f"{self.schedules}/edge/status",
            {"status": {"consecutiveFailures": 2**63 - 1, "pause": None, "unknown": [1]}},
        )

        assert reply.status == 200
        edge = {"consecutiveFailures": 2**63 - 1, "unknown": [1]}
        assert reply.json()["status"] == NOT_SEEN_YET | edge

    async def test_an_answer_carries_the_version_that_was_written(self) -> None:
        await self.new_schedule("version")

        reply = await self.patch(f"{self.schedules}/version/status", {"status": {"activeCount": 1}})

        now = (await self.get(f"{self.schedules}/version")).json()
        assert reply.json()["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]

    async def test_a_spec_patch_raises_the_generation_and_leaves_the_status(self) -> None:
        await self.new_schedule("spec")
        await self.patch(f"{self.schedules}/spec/status", {"status": {"activeCount": 3}})

        reply = await self.patch(
            f"{self.schedules}/spec", {"spec": {"suspend": True}, "status": {"activeCount": 9}}
        )

        assert reply.json()["metadata"]["generation"] == 2
        assert reply.json()["status"] == {**NOT_SEEN_YET, "activeCount": 3}

    async def test_a_patch_that_changes_nothing_writes_nothing(self) -> None:
        await self.new_schedule("same")
        body: Json = {"status": {"activeCount": 3}}
        first = (await self.patch(f"{self.schedules}/same/status", body)).json()

        second = (await self.patch(f"{self.schedules}/same/status", body)).json()

        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

    async def test_a_null_removes_and_what_is_not_named_stays(self) -> None:
        """Inside objects too: an old timing's fields go only when they are named."""
        await self.new_schedule("null")
        path = f"{self.schedules}/null/status"
        hourly = timing("a", {"hourly": {"minute": 1}})
        interval = timing("b", {"interval": {"every": "25s"}})
        await self.patch(path, {"status": hourly | {"lastResult": "failed"}})

        mixed = (await self.patch(path, {"status": interval | {"lastResult": None}})).json()
        gone: Json = {"internal": {"timing": {"fields": {"hourly": None}}}}
        clean = (await self.patch(path, {"status": gone})).json()

        both = {"hourly": {"minute": 1}, "interval": {"every": "25s"}}
        assert mixed["status"] == NOT_SEEN_YET | timing("b", both)
        assert clean["status"]["internal"]["timing"]["fields"] == {"interval": {"every": "25s"}}

    async def test_a_list_is_replaced_as_a_whole(self) -> None:
        await self.new_schedule("list")
        path = f"{self.schedules}/list/status"
        first, second = ({"due": f"2027-01-01T00:0{minute}:00Z"} for minute in (0, 1))
        await self.patch(path, {"status": {"internal": {"waiting": [first, second]}}})

        reply = await self.patch(path, {"status": {"internal": {"waiting": [second]}}})

        assert reply.json()["status"]["internal"]["waiting"] == [second]

    async def test_a_uid_is_no_precondition_of_a_status_patch(self) -> None:
        """It is passed over in silence: only the version keeps a status from another object."""
        old = await self.new_schedule("uid")

        reply = await self.patch(
            f"{self.schedules}/uid/status",
            {"metadata": {"uid": NOBODY}, "status": {"activeCount": 1}},
        )

        assert reply.status == 200
        assert reply.json()["metadata"]["uid"] == old["metadata"]["uid"]

    async def test_the_version_of_a_deleted_object_is_none_of_the_next_of_its_name(self) -> None:
        old = (await self.new_schedule("anew"))["metadata"]
        await self.delete(f"{self.schedules}/anew")
        await self.new_schedule("anew")

        reply = await self.patch(
            f"{self.schedules}/anew/status",
            {"metadata": {"resourceVersion": old["resourceVersion"]}} | {"status": {}},
        )

        assert (reply.status, reply.reason) == (409, "Conflict")

    async def test_a_version_is_a_precondition_of_a_patch(self) -> None:
        old = (await self.new_schedule("stale"))["metadata"]
        path = f"{self.schedules}/stale/status"
        body: Json = {"metadata": {"resourceVersion": old["resourceVersion"]}}

        first = await self.patch(path, body | {"status": {"activeCount": 1}})
        second = await self.patch(path, body | {"status": {"activeCount": 2}})

        assert first.status == 200
        assert (second.status, second.reason) == (409, "Conflict")
        assert "the object has been modified" in second.message
        assert "UID in precondition" not in second.message

    async def test_a_patch_of_what_is_gone_is_not_found(self) -> None:
        reply = await self.patch(f"{self.schedules}/gone/status", {"status": {"activeCount": 1}})

        assert (reply.status, reply.reason) == (404, "NotFound")
        assert reply.message == 'scheduledjobs.evenkeel.dev "gone" not found'

    # --- deleting ---------------------------------------------------------------------------------

    async def test_a_uid_is_a_precondition_of_a_deletion(self) -> None:
        created = await self.new_job("mine")

        wrong = await self.delete(f"{self.jobs}/mine", uid=NOBODY)
        right = await self.delete(f"{self.jobs}/mine", uid=created["metadata"]["uid"])
        again = await self.delete(f"{self.jobs}/mine")

        assert (wrong.status, wrong.reason) == (409, "Conflict")
        assert right.status == 200
        assert again.status == 404

    async def test_jobs_go_with_their_schedule(self) -> None:
        owner = (await self.new_schedule("owner"))["metadata"]
        owned = job("owned")
        owned["metadata"]["ownerReferences"] = [
            {"apiVersion": API_VERSION, "kind": KIND, "name": "owner", "uid": owner["uid"]}
            | {"controller": True, "blockOwnerDeletion": True}
        ]
        assert (await self.post(self.jobs, owned)).status == 201

        assert (await self.delete(f"{self.schedules}/owner")).ok

        until = time.monotonic() + 60
        while (await self.get(f"{self.jobs}/owned")).status != 404:
            assert time.monotonic() < until, "the Job outlived its schedule"
            await asyncio.sleep(0.2)

    # --- listing ----------------------------------------------------------------------------------

    async def test_a_list_comes_in_pages_of_one_moment(self) -> None:
        names = [f"page-{number}" for number in range(5)]
        for name in names:
            await self.new_job(name, page="yes")
        params = {"labelSelector": "page=yes", "limit": "2"}

        pages = [(await self.get(self.jobs, **params)).json()]
        await self.new_job("page-late", page="yes")
        while token := pages[-1]["metadata"].get("continue"):
            pages.append((await self.get(self.jobs, **params, **{"continue": token})).json())

        assert [[item["metadata"]["name"] for item in page["items"]] for page in pages] == [
            names[:2],
            names[2:4],
            names[4:],
        ]
        assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1

    async def test_a_selector_chooses(self) -> None:
        await self.new_job("with", **{LABEL_UID: "some"})
        await self.new_job("without")

        there = (await self.get(self.jobs, labelSelector=LABEL_UID)).json()
        other = (await self.get(self.jobs, labelSelector=f"{LABEL_UID}=other")).json()

        assert [item["metadata"]["name"] for item in there["items"]] == ["with"]
        assert other["items"] == []

    async def test_items_of_custom_resources_alone_name_their_kind(self) -> None:
        await self.new_job("kindless")
        await self.new_schedule("kind")

        jobs = (await self.get(self.jobs)).json()
        schedules = (await self.get(self.schedules)).json()

        assert jobs["kind"] == "JobList" and "kind" not in jobs["items"][0]
        assert {item["kind"] for item in schedules["items"]} == {KIND}

    async def test_a_list_of_metadata_has_no_spec(self) -> None:
        created = await self.new_schedule("brief")

        reply = await self.api.call("GET", self.schedules, accept=METADATA_ONLY)

        (item,) = (item for item in reply.json()["items"] if item["metadata"]["name"] == "brief")
        assert item["metadata"]["uid"] == created["metadata"]["uid"]
        assert "spec" not in item

    # --- watching ---------------------------------------------------------------------------------

    async def test_a_watch_tells_every_change_in_order(self) -> None:
        since = (await self.get(self.schedules)).json()["metadata"]["resourceVersion"]
        await self.new_schedule("story")
        await self.patch(f"{self.schedules}/story", {"spec": {"suspend": True}})
        await self.patch(f"{self.schedules}/story/status", {"status": {"activeCount": 1}})
        await self.delete(f"{self.schedules}/story")

        events = await self.watched(self.schedules, since, until=4)

        assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
        assert [event["object"]["metadata"]["generation"] for event in events[:3]] == [1, 2, 2]
        assert events[-1]["object"]["status"] == {**NOT_SEEN_YET, "activeCount": 1}
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(set(versions)) and versions[0] > int(since)

    async def test_a_watch_from_a_version_does_not_tell_it_again(self) -> None:
        await self.new_job("before", watched="yes")
        listed = (await self.get(self.jobs, labelSelector="watched=yes")).json()
        since = listed["metadata"]["resourceVersion"]
        await self.new_job("unseen")
        await self.new_job("after", watched="yes")

        events = await self.watched(
            self.jobs, since, until=99, within_s=4, labelSelector="watched=yes"
        )

        added = [event["object"] for event in events if event["type"] == "ADDED"]
        assert [(item["metadata"]["name"], item["kind"]) for item in added] == [("after", "Job")]

    async def test_a_watch_tells_how_far_it_is_before_it_ends(self) -> None:
        listed = (await self.get(self.schedules)).json()
        since = listed["metadata"]["resourceVersion"]
        wish = {"labelSelector": "watched=yes", "allowWatchBookmarks": "true"}

        for _ in range(3):  # a bookmark is due 2 s before the end; a server that stalls sends none
            watching = asyncio.create_task(
                self.watched(self.schedules, since, until=1, within_s=6, **wish)
            )
            await asyncio.sleep(1)
            # Without anything new since the watch began, it has nothing to tell and says nothing.
            await self.new_schedule()
            if events := await watching:
                break

        assert [event["type"] for event in events] == ["BOOKMARK"]
        assert int(events[0]["object"]["metadata"]["resourceVersion"]) > int(since)

    async def test_a_watch_ends_when_its_time_is_over(self) -> None:
        listed = (await self.get(self.jobs)).json()
        since = listed["metadata"]["resourceVersion"]

        assert await self.watched(self.jobs, since, until=1, within_s=1) == []

    async def test_a_version_that_is_too_old_is_an_error_in_the_stream(self) -> None:
        await self.new_schedule("recent")
        await self.make_version_1_too_old()

        (event,) = await self.watched(self.schedules, "1", until=1)

        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version")

    async def make_version_1_too_old(self) -> None:
        """On a real server it is."""

    # --- Events -----------------------------------------------------------------------------------

    async def test_an_event_is_counted_up_by_a_patch(self) -> None:
        path = f"/api/v1/namespaces/{self.ns}/events"
        about = {"apiVersion": API_VERSION, "kind": KIND, "namespace": self.ns, "name": "x"}
        event = {
            "metadata": {"name": "x.1", "namespace": self.ns},
            "involvedObject": about | {"uid": "u"},
            "type": "Warning",
            "reason": "RunSkipped",
            "count": 1,
        }
        assert (await self.post(path, event)).status == 201

        assert (await self.patch(f"{path}/x.1", {"count": 2})).status == 200

        chosen = await self.get(path, fieldSelector="involvedObject.uid=u,type=Warning")
        assert [item["count"] for item in chosen.json()["items"]] == [2]


class TestTheServerInMemory(Contract):
    """The simulator's, on the machine's own time."""

    @pytest.fixture(autouse=True)
    async def _connected(self) -> None:
        self.ns = "test"
        self.server = Server(now=time.time, namespaces={self.ns})
        Controllers(self.server, lambda _: Fate(start_s=3600))
        self.api = Connection(self.server, Weather(), who="test")

    async def make_version_1_too_old(self) -> None:
        self.server.compact()

    async def test_a_page_of_a_list_that_was_compacted_is_gone(self) -> None:
        for _ in range(3):
            await self.new_job()
        token = (await self.get(self.jobs, limit="1")).json()["metadata"]["continue"]
        await self.new_job()
        self.server.compact()

        reply = await self.get(self.jobs, limit="1", **{"continue": token})

        assert (reply.status, reply.reason) == (410, "Expired")


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Cluster:
    cluster.install_crd()
    return cluster


class TestARealServer(Contract):
    """Whichever the harness gives."""

    @pytest.fixture(autouse=True)
    async def _connected(self, server: Cluster, namespace: str) -> AsyncIterator[None]:
        self.ns = namespace
        load = partial(credentials.load, server.kubeconfig)
        async with KubeClient(load, timeout_s=10, connections=8) as client:
            self.api = client
            yield

    async def test_the_schemas_that_are_served_name_their_hashes(self) -> None:
        """An API server publishes the schema of a CRD some seconds after it has taken the CRD."""
        schema = CrdSchema(self.api)
        until = time.monotonic() + 60
        while await schema.look() != SCHEMA_HASHES and time.monotonic() < until:
            await asyncio.sleep(0.5)
        assert await schema.look() == SCHEMA_HASHES


def job(name: str, **labels: str) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": orjson.loads(orjson.dumps(TEMPLATE["spec"])),
    }


def timing(text: str, fields: Json) -> Json:
    """A status that keeps a timing."""
    return {"internal": {"timing": {"hash": text, "fields": fields}}}


def schedule(name: str) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"hourly": {"minute": 17}, "jobTemplate": TEMPLATE},
    }


def newer(one: Json, other: Json) -> bool:
    versions = [int(item["metadata"]["resourceVersion"]) for item in (one, other)]
    return versions[0] > versions[1]
