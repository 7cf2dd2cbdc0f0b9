"""A fake node by kwok: Pods are scheduled to it, run for a moment and end, without any container.

Called by control_plane.py. A Job's Pod runs `pod_seconds` and succeeds, unless an annotation of
the Pod says otherwise: `test.evenkeel.dev/fate` = fail (exit code 1), hang (runs for ever) or
pending (never starts); `test.evenkeel.dev/runs-for` = a duration such as 1.5s. A Pod that no Job
owns runs until it is deleted. Not guaranteed: image pulls, logs, probes, init containers,
restarts.
"""

from __future__ import annotations

import json
from pathlib import Path

NODE_NAME = "kwok-0"

_ROOM = {"cpu": "100k", "memory": "10Ti", "pods": "1M"}  # the node is never what limits a test

NODE = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE_NAME,
            "labels": {"kubernetes.io/hostname": NODE_NAME, "kubernetes.io/os": "linux"},
        },
        "status": {"allocatable": _ROOM, "capacity": _ROOM},
    }
)


def write_config(directory: Path, *, pod_seconds: float) -> None:
    template = Path(__file__).with_name("kwok-config.yaml").read_text()
    milliseconds = str(round(pod_seconds * 1000))
    _config(directory).write_text(template.replace("@RUN_MILLISECONDS@", milliseconds))


def command(directory: Path, kubeconfig: Path) -> list[str]:
    return [
        "kwok",
        f"--kubeconfig={kubeconfig}",
        f"--config={_config(directory)}",
        f"--manage-single-node={NODE_NAME}",
        "--v=WARN",
    ]


def _config(directory: Path) -> Path:
    return directory / "kwok.yaml"
