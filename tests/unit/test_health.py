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
    async with server, aiohttp.ClientSession(f"http://{server.address}") as session:
        found = [(await session.get(path)).status for path in ("/livez", "/readyz")]
    assert found == [livez, readyz]


@pytest.mark.parametrize("listen", ["8080", "", "127.0.0.1", "127.0.0.1:http", ":70000"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    """A bare port would mean every address of the machine, which nobody has written."""
    with pytest.raises(BadSetting, match="is not an address such as"):
        HealthServer(listen, CollectorRegistry(), idle_s=lambda: 0, ready=lambda: True)
