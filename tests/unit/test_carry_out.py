"""What the scheduler wants is done by the part that does it."""

import asyncio
import logging
import re
from pathlib import Path
from typing import get_args

import pytest
from tests.builders import every, instant
from tests.sim.virtual import SimulatedClock
from tests.unit.kube.scripted import CREATED, ScriptedApi, listing, status, virtually

import evenkeel.carry_out
from evenkeel import run_lines
from evenkeel.app import Operator
from evenkeel.core import effects
from evenkeel.core.effects import Launch, RequestEnded, RunBegan, RunEnded, ToldBy
from evenkeel.kube.api import Reply
from evenkeel.loop import OFFLOADED
from evenkeel.model import Request, RequestState, RunId, RunState, kind_of_request
from evenkeel.reasons import RequestReason
from evenkeel.settings import Settings

SEEN = every(60)
RUN = RunId(SEEN.uid, instant("10:01"), kind_of_request("uid-again"))
WISH = Request("uid-again", "shop", "again", instant("10:00"), 1, "report")
WRITTEN = Reply(200, b'{"metadata": {"resourceVersion": "9"}}')
TOLD_BY = ToldBy("uid-again", "again", "ana")


def test_every_effect_is_carried_out_by_somebody():
    code = Path(evenkeel.carry_out.__file__).read_text(encoding="utf-8")
    carried_out = set(re.findall(r"effects\.(\w+)\(", code))
    away = {kind.__name__ for kind in OFFLOADED}
    known = {kind.__name__ for kind in get_args(effects.Effect)}
    assert carried_out | away | {"Stopped"} == known  # the loop itself heeds `Stopped`
    assert not carried_out & away


def test_the_status_of_its_request_announces_a_requested_run():
    """That of the schedule does not tell of it."""
    asked = []

    async def scenario(clock: SimulatedClock):
        operator = Operator(ScriptedApi([CREATED]), clock, Settings(store_url="none"))

        def documents(which):
            def document(uid):
                asked.append((which, uid))

            return document

        operator.status_sync._documents = documents("schedule")
        operator.request_sync._documents = documents("request")
        operator.launcher.launch(Launch(RUN, 1, SEEN, announced=3, request=WISH))
        await asyncio.sleep(1)
        operator.launcher.launch(Launch(RunId(SEEN.uid, RUN.due), 1, SEEN, announced=3))
        await asyncio.sleep(1)

    virtually(scenario)
    assert asked == [("request", "uid-again"), ("schedule", SEEN.uid)]


def test_a_shutdown_writes_the_statuses_of_requests_too():
    api = ScriptedApi(lambda call: listing() if call.verb == "GET" else WRITTEN)

    async def scenario(clock: SimulatedClock):
        operator = Operator(api, clock, Settings(store_url="none"))
        running = asyncio.create_task(operator.run())
        await asyncio.sleep(1)
        for writer, uid in ((operator.status_sync, SEEN.uid), (operator.request_sync, WISH.uid)):
            writer._documents = lambda uid: ("shop", uid.removeprefix("uid-"), {}, 1)
            writer._turns.close(3600)  # but for a shutdown
            writer.dirty(uid)
        await asyncio.sleep(1)
        assert not paths(api)
        operator.stop()
        await running

    virtually(scenario)
    ours = "/apis/evenkeel.dev/v1alpha1/namespaces/shop"
    assert paths(api) == {
        f"{ours}/scheduledjobs/report/status",
        f"{ours}/runrequests/again/status",
    }


def paths(api):
    """Of the statuses that were written."""
    return {call.path for call in api.calls if call.verb == "PATCH"}


def ended(told_by):
    return RunEnded(
        run=RUN,
        key=SEEN.key,
        state=RunState.FAILED,
        reason=None,
        attempt=1,
        job="report-x",
        started=None,
        finished=instant("10:02"),
        told_by=told_by,
    )


@pytest.mark.parametrize("told_by", [None, TOLD_BY], ids=["by schedule", "requested"])
def test_requested_runs_are_counted_apart(told_by):
    """An alert on failed runs of schedules must not hear of a backfill."""

    async def scenario(clock: SimulatedClock):
        operator = Operator(ScriptedApi([status(500)]), clock, Settings(store_url="none"))
        metrics = operator.metrics
        metrics.counts.was_scraped()
        await asyncio.sleep(60)
        operator._carry_out(ended(told_by))
        ends = RequestReason.RUNS_FAILED
        counts = {"failed": 1}
        operator._carry_out(
            RequestEnded(
                "shop", "again", "report", RequestState.FAILED, ends, 1, counts, "uid-again"
            )
        )

        def shown(name, **labels):
            return metrics.registry.get_sample_value(name, labels)

        requested = told_by is not None
        assert shown("evenkeel_runs_total", state="failed") == (not requested)
        assert shown("evenkeel_requested_runs_total", state="failed") == requested
        assert shown("evenkeel_requests_ended_total", reason="RunsFailed") == 1
        assert metrics.counts.keys("namespace") == (
            set() if requested else {("namespace", "shop", "failed")}
        )

    virtually(scenario)


@pytest.mark.parametrize("told_by", [None, TOLD_BY], ids=["by schedule", "requested"])
def test_log_lines_of_requested_runs_name_the_request(told_by, caplog):
    caplog.set_level(logging.DEBUG, logger="evenkeel")
    run_lines.began(RunBegan(RUN, SEEN.key, 1, "report-x", told_by=told_by))
    run_lines.ended(ended(told_by))
    assert [record.message for record in caplog.records] == ["run began", "run failed"]
    named = [record.fields.get("request") for record in caplog.records]
    assert named == [None if told_by is None else "shop/again"] * 2
