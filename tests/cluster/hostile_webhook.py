"""An admission webhook of one namespace, whose owner decides what it does: hang, or any answer.

    with hostile_webhook(world, ns, directory=tmp_path, of="scheduledjobs/status") as webhook:
        webhook.answer = denial(429, retry_after_s=60)      # instead of hanging

Listens on loopback, with a certificate of its own. Runs in threads that end with the block.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.cluster.harness.pki import Authority
from tests.cluster.world import Json, World, eventually

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
GROUPS = {"jobs": "batch", "scheduledjobs/status": "evenkeel.dev"}
OPERATIONS = {"jobs": "CREATE", "scheduledjobs/status": "UPDATE"}
HANGS_S = 25


def denial(code: int, *, retry_after_s: int) -> Json:
    """What a tenant may have its webhook say."""
    details = {"retryAfterSeconds": retry_after_s}
    return {"allowed": False, "status": {"code": code, "message": "no", "details": details}}


class HostileWebhook:
    def __init__(self) -> None:
        self.answer: Json | None = None
        """The response of an AdmissionReview; none: it hangs."""
        self.asked = 0
        self.over = threading.Event()

    def respond(self, review: Json) -> Json | None:
        self.asked += 1
        if self.answer is None:
            self.over.wait(HANGS_S)
            return None
        uid = review["request"]["uid"]
        kind = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview"}
        return {**kind, "response": {"uid": uid, **self.answer}}


@contextmanager
def hostile_webhook(world: World, ns: str, *, directory: Path, of: str) -> Iterator[HostileWebhook]:
    """In force for one namespace until the block ends."""
    authority = Authority(directory / f"webhook-{ns}")
    authority.create()
    certificate = authority.server("webhook", ["IP:127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    found = HostileWebhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if (said := found.respond(review)) is None:
                self.close_connection = True
                return
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hook = {
        "name": "hostile.evenkeel.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 30,
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.server_port}/",
            "caBundle": base64.b64encode(authority.certificate.read_bytes()).decode(),
        },
        "rules": [
            {
                "apiGroups": [GROUPS[of]],
                "apiVersions": ["*"],
                "resources": [of],
                "operations": [OPERATIONS[of]],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}},
    }
    configuration = {"metadata": {"name": f"hostile-{ns}"}, "webhooks": [hook]}
    world.call("POST", CONFIGURATIONS, configuration)
    try:
        yield found
        assert found.asked, "the webhook was never asked"
    finally:
        world.call("DELETE", f"{CONFIGURATIONS}/hostile-{ns}")
        found.over.set()
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def wait_until_in_force(webhook: HostileWebhook) -> None:
    """It takes the API server a second or so to read a configuration."""
    eventually(lambda: webhook.asked, "the webhook is asked")
