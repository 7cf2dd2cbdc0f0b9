"""Picks a loopback port that stays ours.

Called by control_plane.py. The port lies below the range from which the kernel takes the near
ends of outgoing connections: an API server that a test stops must find its port free when it
comes back. Not guaranteed: that no foreign program takes the port in the moment before the server
binds it.
"""

from __future__ import annotations

import random
import socket

LOWEST, HIGHEST = 20_000, 29_999


def free(*, taken: set[int]) -> int:
    """A port that nobody listens on and no other cluster of ours has reserved."""
    # Not the seeded generator: test sessions of one seed would try the same ports at the same time.
    for port in random.SystemRandom().sample(range(LOWEST, HIGHEST + 1), k=1_000):
        if port not in taken and _bindable(port):
            return port
    raise OSError("no free port")


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        # As Go's listeners do: connections that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
