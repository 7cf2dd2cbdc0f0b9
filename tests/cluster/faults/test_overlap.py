"""What a due time does while a run of the same schedule is there, on a real API server."""

from __future__ import annotations

from itertools import pairwise

from tests.cluster.faults.stage import MANY, scene, times
from tests.cluster.world import Json, World, due, eventually, seconds, template


def status_with(world: World, ns: str, *rows: tuple[str, str | None]) -> Json:
    """The status, once `recent` has these states and reasons. A run has its row when its Job is
    known to exist, and a status may be written before that."""

    def look() -> Json | None:
        status = world.status(ns, "it")
        found = [(row["state"], row.get("reason")) for row in status.get("recent") or ()]
        assert found == list(rows), f"{found}, counts {status.get('counts')}"
        return status

    found = eventually(look, f"the rows {rows}")
    assert found is not None
    return found


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(3),
        concurrencyPolicy="Forbid",
        jobTemplate=template(fate="hang"),
    )
)
def test_forbid_skips_what_comes_while_a_run_is_there(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"skipped": 2}, "two are skipped")

    status = status_with(
        world, ns, ("skipped", "overlap"), ("skipped", "overlap"), ("running", None)
    )
    assert len(world.jobs(ns)) == 1
    assert status["activeCount"] == 1


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(3),
        concurrencyPolicy="Replace",
        jobTemplate=template(fate="hang"),
    )
)
def test_replace_cancels_the_one_before_and_keeps_its_record(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"cancelled": 2}, "two were replaced")

    status = status_with(
        world, ns, ("running", None), ("cancelled", "replaced"), ("cancelled", "replaced")
    )
    assert world.counts(ns, "it") == {"cancelled": 2}
    newest = status["recent"][0]["due"]
    eventually(
        lambda: [due(job) for job in world.jobs(ns)] == [newest],
        "their Jobs are gone, and no other",
    )


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(3),
        **MANY,
        concurrencyPolicy="Queue",
        jobTemplate=template(runs_for="1500ms"),
    )
)
def test_queue_runs_them_all_one_after_the_other(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"succeeded": 3}, "all ran", within_s=150)

    jobs = world.jobs(ns)
    assert [due(job) for job in jobs] == sorted({due(job) for job in jobs})
    for one, following in pairwise(jobs):
        ended = seconds(one["status"]["completionTime"])
        assert seconds(following["metadata"]["creationTimestamp"]) >= ended


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(4),
        concurrencyPolicy="Queue",
        maxQueued=1,
        jobTemplate=template(fate="hang"),
    )
)
def test_a_full_queue_skips(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"skipped": 2}, "two found the queue full")

    status = status_with(
        world,
        ns,
        ("skipped", "queue_full"),
        ("skipped", "queue_full"),
        ("pending", "queued"),
        ("running", None),
    )
    assert [(row["due"], row["reason"]) for row in world.waiting(ns, "it")] == [
        (status["recent"][2]["due"], "queued")
    ]
    assert len(world.jobs(ns)) == 1
