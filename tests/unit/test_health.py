"""/livez and /readyz: a loop that stands still is said to be dead, not only slow."""

from dataclasses import replace

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from evenkeel.errors import BadSetting
from evenkeel.web.health import ALIVE_WITHIN_S, HealthServer, Signs

WELL = Signs(listed=True, idle_s=0.0)

PROBES = {
    "well": (WELL, 200, 200),
    "a loop that is slow": (replace(WELL, idle_s=ALIVE_WITHIN_S), 200, 200),
    "a loop that stands still": (replace(WELL, idle_s=ALIVE_WITHIN_S + 1), 503, 200),
    "still listing": (replace(WELL, listed=False), 200, 503),
    "a watch that is quiet": (replace(WELL, unanswered_s=89), 200, 200),
    "a watch that is silent": (replace(WELL, unanswered_s=121), 200, 503),
    "a watch that stays silent": (replace(WELL, unanswered_s=301, answering_s=301), 503, 503),
    "an API server that is away": (replace(WELL, unanswered_s=999), 200, 503),
    "an API server that has just come back": (
        replace(WELL, unanswered_s=999, answering_s=20),
        200,
        503,
    ),
    "Jobs that may not be watched any more": (replace(WELL, silence_s=400), 200, 503),
    "a watch of ScheduledJobs that is quiet": (
        replace(WELL, schedules_silence_s=95, schedules_unanswered_s=95),
        200,
        200,
    ),
    "a watch of ScheduledJobs that stays silent": (
        replace(WELL, schedules_unanswered_s=301, answering_s=301),
        503,
        503,
    ),
    "ScheduledJobs that may not be watched any more": (
        replace(WELL, schedules_silence_s=400, answering_s=400),
        200,
        503,
    ),
    "a CRD that is not there": (replace(WELL, listed=False, installed=False), 200, 503),
    "one namespace that cannot be written to": (replace(WELL, behind=1), 200, 200),
    "two namespaces that cannot be written to": (replace(WELL, behind=2), 200, 503),
}


@pytest.mark.parametrize(("signs", "livez", "readyz"), PROBES.values(), ids=PROBES)
async def test_the_probes_say_how_it_is(signs: Signs, livez: int, readyz: int) -> None:
    server = HealthServer("127.0.0.1:0", CollectorRegistry(), signs=lambda: signs)
    assert await probes(server) == [livez, readyz]


async def probes(server: HealthServer) -> list[int]:
    async with server, aiohttp.ClientSession(f"http://{server.address}") as session:
        return [(await session.get(path)).status for path in ("/livez", "/readyz")]


@pytest.mark.parametrize(("idle_s", "livez"), [(60.0, 200), (ALIVE_WITHIN_S + 61, 503)])
async def test_a_loop_that_rests_for_long_is_alive(idle_s: float, livez: int) -> None:
    """With loopInterval at 60 it may."""
    server = HealthServer(
        "127.0.0.1:0",
        CollectorRegistry(),
        signs=lambda: replace(WELL, idle_s=idle_s),
        alive_within_s=ALIVE_WITHIN_S + 60,
    )
    assert await probes(server) == [livez, 200]


@pytest.mark.parametrize("listen", ["8081", "", "127.0.0.1", "127.0.0.1:http", ":70000"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    """A bare port would mean every address of the machine, which nobody has written."""
    with pytest.raises(BadSetting, match="is not an address such as"):
        HealthServer(listen, CollectorRegistry(), signs=lambda: WELL)
