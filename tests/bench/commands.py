"""`evenkeel plan` and `load` as processes: 10,000 manifests, 24 hours, wall time and memory."""

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench._measure import say
from tests.bench.expansion import cron_texts

MORNING = "2026-03-01T06:20:00Z"
MANIFESTS = 10_000
ROUNDS = 3
POD = "{restartPolicy: Never, containers: [{name: main, image: busybox, command: [sh, -c, date]}]}"


def manifests() -> str:
    """Half cron, half intervals that wait to be placed, each a small YAML document."""
    rng = random.Random(17)
    texts = cron_texts(MANIFESTS)
    documents = []
    for number, text in enumerate(texts):
        rule = (
            f"schedule: '{text}'"
            if number % 2
            else f"interval: {{every: {rng.choice(('25m', '1h', '90m', '6h', '1d'))}}}"
        )
        documents.append(
            "apiVersion: evenkeel.dev/v1alpha1\n"
            "kind: ScheduledJob\n"
            f"metadata: {{name: job-{number:05}, namespace: team-{number % 20}}}\n"
            "spec:\n"
            f"  {rule}\n"
            f"  placement: {{weight: {rng.randint(1, 5)}}}\n"
            f"  jobTemplate: {{spec: {{template: {{spec: {POD}}}}}}}\n"
        )
    return "---\n".join(documents)


def rows() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="evenkeel-bench-") as directory:
        file = Path(directory) / "set.yaml"
        file.write_text(manifests())
        for command in ("plan", "load"):
            took_s, lines = [], 0
            for _ in range(ROUNDS):
                started = time.perf_counter()
                done = subprocess.run(
                    [
                        sys.executable, "-c", f"from evenkeel.cli import {command}; {command}.{command}()",
                        "-f", str(file), "--from", MORNING, "-o", "json",
                    ],
                    stdout=subprocess.PIPE,
                    check=True,
                )  # fmt: skip
                took_s.append(time.perf_counter() - started)
                lines = done.stdout.count(b"\n")
            yield {
                "name": f"{command} {MANIFESTS:,} manifests x 24 h",
                "value": sorted(took_s)[ROUNDS // 2],
                "unit": "s",
                "beside": {"lines": lines},
            }
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    say("peak memory is that of the larger of the two")
    yield {"name": "peak memory of plan and load", "value": peak_kib / 1024, "unit": "MiB"}
