"""`evenkeel plan` and `load` as processes: 10,000 manifests, 24 hours; processor time, memory."""

import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
            program = f"from evenkeel.cli import {command}; {command}.{command}()"
            arguments = ["-f", str(file), "--from", MORNING, "-o", "json"]
            wall_s, processor_s, lines = [], [], 0
            for _ in range(ROUNDS):
                started, used = time.perf_counter(), children_s()
                done = subprocess.run(
                    [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, check=True
                )
                wall_s.append(time.perf_counter() - started)
                processor_s.append(children_s() - used)
                lines = done.stdout.count(b"\n")
            yield {
                "name": f"{command} {MANIFESTS:,} manifests x 24 h",
                "value": statistics.median(processor_s),
                "unit": "s of processor",
                "beside": {"wall_s": statistics.median(wall_s), "lines": lines},
            }
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    yield {"name": "peak memory of plan and load", "value": peak_kib / 1024, "unit": "MiB"}


def children_s() -> float:
    """Processor time of all ended children: other people's load does not count in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
