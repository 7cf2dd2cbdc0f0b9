"""Asks an API server one question, without a client library: is it there yet?

Called by control_plane.py and kwok.py while they wait. Not guaranteed: anything about why not.
"""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

from .pki import Certificate


class Api:
    def __init__(self, *, address: str, port: int, authority: Path, user: Certificate) -> None:
        self._address = address
        self._port = port
        self._trust = ssl.create_default_context(cafile=str(authority))
        self._trust.load_cert_chain(user.certificate, user.key)

    def answers(self, path: str) -> bool:
        return self._get(path)[0] == 200

    def node_ready(self, name: str) -> bool:
        status, body = self._get(f"/api/v1/nodes/{name}")
        if status != 200:
            return False
        node: dict[str, Any] = json.loads(body)
        conditions = node.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection(
            self._address, self._port, context=self._trust, timeout=5
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):  # not listening yet, or cut off while starting
            return 0, b""
        finally:
            connection.close()
