"""/livez and /readyz: a loop that stands still is said to be dead, not only slow."""

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from evenkeel.errors import BadSetting
from evenkeel.web.health import ALIVE_WITHIN_S, HealthServer


@pytest.mark.parametrize(
    ("idle_s", "ready", "livez", "readyz"),
    [
        (0.0, True, 200, 200),
        (ALIVE_WITHIN_S, True, 200, 200),
        (ALIVE_WITHIN_S + 1, True, 503, 200),
        (0.0, False, 200, 503),
    ],
    ids=["well", "slow", "its loop stands still", "it is still listing"],
)
async def test_the_probes_say_how_it_is(
    idle_s: float, ready: bool, livez: int, readyz: int
) -> None:
    server = HealthServer(
        "127.0.0.1:0", CollectorRegistry(), idle_s=lambda: idle_s, ready=lambda: ready
    )
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
        idle_s=lambda: idle_s,
        ready=lambda: True,
        alive_within_s=ALIVE_WITHIN_S + 60,
    )
    assert await probes(server) == [livez, 200]


@pytest.mark.parametrize("listen", ["8080", "", "127.0.0.1", "127.0.0.1:http", ":70000"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    """A bare port would mean every address of the machine, which nobody has written."""
    with pytest.raises(BadSetting, match="is not an address such as"):
        HealthServer(listen, CollectorRegistry(), idle_s=lambda: 0, ready=lambda: True)
