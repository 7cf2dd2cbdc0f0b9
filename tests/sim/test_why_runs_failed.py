"""The exit codes of failed runs, as their Pods tell them: with Pods that may be listed and without,
and over crashes at every call."""

from __future__ import annotations

from tests.sim.controllers import Fate, exit_code
from tests.sim.network import CrashPoint, Rule
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.scenario import counts, right, with_faults, world
from tests.sim.server import Json
from tests.sim.world import create, every

RETRIES = {"limit": 1, "delaySeconds": 4, "factor": 1}


def _fate(job: Json) -> Fate:
    return Fate(0.5, 2, succeeds=False)


STORY = world(create(1, "a", every(30, retry=RETRIES)), lasts_s=85, fate=_fate)


def _rows(outcome: Outcome) -> list[tuple[str, int | None]]:
    return [(row["state"], row.get("exitCode")) for row in outcome.status("a")["recent"]]


def test_a_failed_run_shows_how_its_last_attempt_ended() -> None:
    outcome = right(play(STORY))

    assert _rows(outcome) == [("failed", exit_code(2))] * 2
    assert counts(outcome) == {"failed": 2}


def test_without_the_right_to_list_pods_runs_fail_as_ever() -> None:
    forbidden = "refuse:403|Forbidden|pods is forbidden"

    outcome = with_faults(STORY, Rule("GET", "/pods", forbidden))

    assert _rows(outcome) == [("failed", None)] * 2
    degraded = [c for c in outcome.status("a")["conditions"] if c["type"] == "Degraded"]
    assert [c["reason"] for c in degraded] == ["PodsUnreadable"]


def test_pods_that_cannot_be_listed_for_long_hold_no_run_back_for_more_than_ten_seconds() -> None:
    outcome = with_faults(STORY, Rule("GET", "/pods", "lost request", until_s=50))

    assert [state for state, _ in _rows(outcome)] == ["failed", "failed"]
    assert counts(outcome) == {"failed": 2}


def test_a_crash_at_any_call_neither_loses_an_end_nor_tells_it_twice() -> None:
    calls = play(STORY).processes[0].connection.calls
    explained = 0
    for call in range(10, calls, 3):
        for after in (False, True):
            outcome = right(play(STORY, Trouble(crash_point=CrashPoint(call, after))))
            assert counts(outcome) == {"failed": 2}, (call, after)
            explained += sum(code is not None for _, code in _rows(outcome))
    assert explained > calls // 3


def test_the_oracle_finds_an_exit_code_of_another_attempt() -> None:
    outcome = right(play(STORY))
    outcome.status("a")["recent"][0]["exitCode"] = exit_code(1)

    assert "which is not that of" in " ".join(violations(outcome))
