"""`python -m tests.ways [-o json]`: the functions and modules that run on three ways.

A way is what a newcomer must read to follow one thing from its beginning to its end. Counted are
the distinct functions of the package `evenkeel` that run, and the modules they stand in; lambdas,
comprehensions and methods that a dataclass generates are not. The world is that of the core's unit
tests: no loop, no network.

It uses nothing but the builders and the world of the tree that it runs on, so that two trees can be
compared: `cd ANOTHER && PYTHONPATH=.:operator python PATH/OF/THIS/ways.py`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType

from tests.builders import cron, every, instant
from tests.unit.core.world import World

import evenkeel
from evenkeel.core.messages import PreviewRebalance, Rebalance
from evenkeel.model import JobState
from evenkeel.resource.read import read
from evenkeel.resource.record import EMPTY, Placed
from evenkeel.resource.status import parse
from evenkeel.settings import Settings

PACKAGE = str(Path(evenkeel.__file__ or "").parent)

Counting = Callable[[], AbstractContextManager[None]]
"""What runs inside is counted."""


def apply_to_status(counting: Counting) -> None:
    """A manifest is applied: from the raw object to the stored status."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work:1"}]}
    raw = {
        "metadata": {
            "name": "report",
            "namespace": "default",
            "uid": "uid-report",
            "generation": 1,
            "resourceVersion": "7",
            "creationTimestamp": "2026-03-02T10:00:00Z",
        },
        "spec": {
            "schedule": "*/5 * * * *",
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    }
    world = World()
    with counting():
        schedule = read(raw)
        world.see(schedule, parse(raw.get("status"), version="7"))  # type: ignore[arg-type]
    assert world.status("report")["nextRunTime"] == "2026-03-02T10:05:00Z"


def restart_with_missed_runs(counting: Counting) -> None:
    """Nobody runs for half an hour while a Job succeeds: from the start to the stored status that
    tells of its end, of what was missed, and of the run that is caught up with."""
    world = World()
    seen = cron("*/5 * * * *")
    world.see(seen).run_until("10:06")
    job = world.job(seen, "10:05")
    finished = int(world.now) + 60  # and nobody tells
    world.jobs[job.ref.name] = replace(job, state=JobState.SUCCEEDED, finished=finished)
    with counting():
        world.crash(for_s=1_800)
    assert world.counts() == {"succeeded": 1, "missed": 5}
    assert world.started() == ["10:05:00", "10:35:00"]


def rebalance(counting: Counting) -> None:
    """A rebalance is shown and confirmed: from the question to the last stored phase."""
    every_s, count = 4 * 3600, 50
    world = World(Settings(loop_interval_s=10))
    began = instant("10:00") - 2 * every_s
    for number in range(count):
        seen = replace(every(every_s, offset_s=None, name=f"job-{number:02}"), created=began)
        crowded = Placed(began + number, every_s, began, slot=40, reason="placed", load=count)
        world.see(seen, replace(EMPTY, placed=crowded, mark=instant("10:00") - 1))
    world.at("10:01")
    for job in list(world.jobs.values()):
        world.change(job, state=JobState.SUCCEEDED, finished=int(world.now))
    world.stall_until("12:05")
    with counting():
        plan = world.ask(PreviewRebalance)
        done = world.ask(lambda asked: Rebalance(asked, plan.plan_id))
    assert done.moves == plan.moves != ()
    for move in done.moves:
        stored = world.status(move.key.split("/")[1])["placement"]["anchor"]
        assert instant(stored) == move.new_anchor


WAYS: dict[str, Callable[[Counting], None]] = {
    "apply to status": apply_to_status,
    "restart with missed runs": restart_with_missed_runs,
    "rebalance": rebalance,
}


def count(name: str) -> dict[str, list[str]]:
    """The functions that run on a way, by module."""
    ran: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code)

    @contextmanager
    def counting() -> Iterator[None]:
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(None)

    WAYS[name](counting)
    found: dict[str, list[str]] = {}
    for code in ran:
        if code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            path = Path(code.co_filename).relative_to(PACKAGE).with_suffix("")
            found.setdefault(".".join(path.parts), []).append(code.co_qualname)
    return {module: sorted(names) for module, names in sorted(found.items())}


def main(arguments: list[str]) -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.ways", description=__doc__)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    wish = parser.parse_args(arguments)
    # Each in a process of its own: what one way has cached, the next would not call.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as processes:
        found = dict(zip(WAYS, processes.map(count, WAYS), strict=True))
    if wish.output == "json":
        print(json.dumps(found, indent=1))
        return
    print(f"{'way':26} {'functions':>9} {'modules':>8}   {'of the core':>11} {'modules':>8}")
    for name, modules in found.items():
        core = {module: names for module, names in modules.items() if module.startswith("core.")}
        columns = [n for part in (modules, core) for n in (sum(map(len, part.values())), len(part))]
        print("{:26} {:9} {:8}   {:11} {:8}".format(name, *columns))


if __name__ == "__main__":
    main(sys.argv[1:])
